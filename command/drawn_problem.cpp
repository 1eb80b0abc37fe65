#include "command/drawn_problem.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <variant>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

/// What the simplest value of a number is, by the option's name.
int simplest(const std::string& option) {
  return option == "pad" || option == "out-padding" || option == "sites" ? 0 : 1;
}

/// Options that may be left out: their default is simplest. Of the others it is the ladder's
/// example.
bool may_be_left_out(const std::string& option) {
  constexpr std::array kSizes = {"n",   "c",    "h",      "w",     "k",     "r",     "s",   "m",
                                 "cin", "cout", "kernel", "tiles", "sites", "shape", "size"};
  return std::ranges::find(kSizes, option) == kSizes.end();
}

/// "3" or "1,0,2" as numbers; empty for words.
std::vector<int> numbers_in(const std::string& value) {
  std::vector<int> numbers;
  const char* at = value.data();
  const char* const end = at + value.size();
  while (at != end) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (rest != end && *rest != ',')) return {};
    numbers.push_back(number);
    at = rest == end ? end : rest + 1;
  }
  return numbers;
}

/// Numbers as an option's value: one, if all axes have the same.
std::string value_of(const std::string& option, const std::vector<int>& numbers) {
  const bool lists_alone = option == "size" || option == "shape" || option == "tiles";
  const bool same = std::ranges::count(numbers, numbers.front()) == std::ssize(numbers);
  return same && !lists_alone ? text(numbers.front()) : joined(numbers, ",");
}

void set(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers) {
  problem.options[option] = value_of(option, numbers);
}

/// Sets what is not the default.
void set_unless(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers) {
  const int usual = simplest(option);
  if (std::ranges::count(numbers, usual) != std::ssize(numbers)) set(problem, option, numbers);
}

/// Numbers from `least` up to `number` - 1 that are worth a try instead of it, the least first.
std::vector<int> steps_down(int number, int least) {
  std::vector<int> steps;
  for (const int smaller : {least, least + (number - least) / 2, number - 1}) {
    if (smaller >= least && smaller < number && (steps.empty() || smaller > steps.back()))
      steps.push_back(smaller);
  }
  return steps;
}

/// The largest value that varied() makes of a number: beyond, problems only take long.
int most_of(const std::string& option) {
  constexpr int kMany = 1 << 16;
  if (option == "sites") return 4000;
  for (const char* small : {"kernel", "r", "s", "batch", "n", "tiles", "pad", "stride", "dilation"})
    if (option == small) return 300;
  return kMany;
}

/// What else a ladder's problems have, in words; the first is the default.
struct WordOption {
  const char* name;
  std::vector<const char*> words;
  std::vector<const char*> ladders;  ///< That take it, or what their names begin with.
};

const std::vector<WordOption>& word_options() {
  static const std::vector<WordOption> all = {
      {"layout", {"nchw", "nhwc"}, {"conv2d", "im2col", "col2im"}},
      {"dtype", {"fp32", "tf32"}, {"conv2d", "gemm"}},
      {"dtype", {"fp32", "tf32", "fp16", "bf16"}, {"sparse_conv", "sparse_dgrad", "sparse_wgrad"}},
      {"activation", {"none", "relu"}, {"conv2d!", "sparse_conv"}},
      {"bias", {"no", ""}, {"conv2d!", "sparse_conv"}},
      {"map",
       {"row_major", "identity2", "identity8", "horizontal", "grouped", "hilbert"},
       {"conv2d!", "gemm"}}};
  return all;
}

bool takes(const WordOption& option, const std::string& ladder) {
  return std::ranges::any_of(option.ladders, [&](std::string name) {
    if (!name.ends_with('!')) return ladder.starts_with(name);
    name.pop_back();
    return ladder == name;
  });
}

}  // namespace

std::string command_line(const DrawnProblem& problem, const std::string& rung, Where where) {
  std::string line = "./ladder compare " + problem.ladder;
  for (const auto& [name, value] : problem.options)
    line += " --" + name + (value.empty() ? "" : " " + value);
  return line + " --rung " + rung + " --backend " + name_of(where);
}

Options options_of(const DrawnProblem& problem) {
  Options options;
  options.command = Command::compare;
  options.ladder = problem.ladder;
  for (const auto& [name, value] : problem.options) {
    if (name == "seed") {
      options.seed = static_cast<std::uint64_t>(parse_whole("seed", value));
    } else if (name == "data") {
      options.data = value == "real" ? Data::real : Data::integer;
    } else if (std::ranges::find(kConditions, name) != kConditions.end()) {
      set_condition(options.conditions, name, value);
    } else {
      options.problem.set(name, value);
    }
  }
  return options;
}

double work_of(const Problem& problem) {
  struct Work {
    double operator()(const Conv2dProblem& p) const {
      const double outputs = 1.0 * p.N * p.K * p.P * p.Q, inputs = 1.0 * p.N * p.C * p.H * p.W;
      return outputs * (p.C / p.groups) * p.R * p.S + outputs + inputs +
             1.0 * p.K * (p.C / p.groups) * p.R * p.S;
    }
    double operator()(const Im2colProblem& p) const {
      return static_cast<double>(p.N) *
             (static_cast<double>(p.rows()) * static_cast<double>(p.columns()) +
              static_cast<double>(p.C) * static_cast<double>(p.channel_size()));
    }
    double operator()(const GemmProblem& p) const {
      return 1.0 * p.M * p.N * p.K + 1.0 * p.M * p.N + 1.0 * p.M * p.K + 1.0 * p.K * p.N;
    }
    double operator()(const TileMapProblem& p) const {
      return 64.0 * p.tiles_m * p.tiles_n * p.batch * p.splits + p.blocks;
    }
    double operator()(const RulebookProblem& p) const {
      return 32.0 * p.sites * p.KV +
             static_cast<double>(key_count(p, p.out_shape) + key_count(p, p.shape)) / 256;
    }
    double operator()(const SparseConvProblem& p) const {
      return static_cast<double>(p.pairs) * p.Cin * p.Cout + 32.0 * p.book.KV * (p.N + p.M) +
             1.0 * p.book.KV * p.Cin * p.Cout;
    }
    double operator()(const SparsePoolProblem& p) const {
      return static_cast<double>(p.pairs) * p.C + 32.0 * p.book.KV * (p.N + p.M);
    }
    double operator()(const SparseToDenseProblem& p) const {
      return static_cast<double>(cells_of(p)) * p.grid.batch * p.C;
    }
  };
  return std::visit(Work{}, problem);
}

// --- Drawing ------------------------------------------------------------------------------------

int Drawer::between(int low, int high) {
  const auto range = static_cast<std::uint64_t>(std::int64_t{high} - low + 1);
  return low + static_cast<int>((random_() >> 32) * range >> 32);
}

template <class List>
auto& Drawer::any_of(List& list) {
  return *(std::begin(list) + between(0, static_cast<int>(std::size(list)) - 1));
}

template <class T>
T Drawer::one_of(std::initializer_list<T> list) {
  return any_of(list);
}

int Drawer::edge(int low, int high) {
  if (high <= low) return low;
  const auto around = [&](int unit) {
    const int multiple = between(1, std::clamp(high / unit, 1, 3)) * unit;
    return multiple + between(-1, 1);
  };
  int drawn = low;
  switch (between(0, 7)) {
    case 0: drawn = low + between(0, 2); break;
    case 1: drawn = between(low, std::min(high, low + 8)); break;
    case 2: drawn = around(one_of({4, 8, 16})); break;
    case 3: drawn = around(one_of({32, 64, 128})); break;
    case 4: drawn = one_of({3, 5, 7, 11, 13, 17, 31, 37, 61, 67, 127, 131, 257}); break;
    case 5:
      if (!tiles_.empty()) {
        drawn = around(any_of(tiles_));
        break;
      }
      [[fallthrough]];
    default:
      drawn = static_cast<int>(std::exp(
          std::log(std::max(low, 1)) +
          between(0, 1000) / 1000.0 * std::log(static_cast<double>(high) / std::max(low, 1))));
  }
  return std::clamp(drawn, low, high);
}

DrawnProblem Drawer::draw(const std::string& ladder, double work) {
  DrawnProblem problem = ladder == "gemm"                           ? draw_gemm(work)
                         : ladder == "tile_map"                     ? draw_tile_map()
                         : ladder == "im2col" || ladder == "col2im" ? draw_columns(work)
                         : ladder.starts_with("conv2d")             ? draw_conv(work)
                                                                    : draw_sparse(ladder, work);
  problem.ladder = ladder;
  draw_words(problem);
  draw_conditions(problem);
  return problem;
}

void Drawer::draw_words(DrawnProblem& problem) {
  for (const WordOption& option : word_options()) {
    if (!takes(option, problem.ladder)) continue;
    const auto last = static_cast<int>(option.words.size()) - 1;
    const int chosen = between(0, last);
    if (chosen != 0) problem.options[option.name] = option.words[static_cast<std::size_t>(chosen)];
  }
}

void Drawer::draw_conditions(DrawnProblem& problem) {
  problem.options["seed"] = text(between(1, 1000));
  if (problem.ladder != "tile_map" && problem.ladder != "rulebook" && one_in(4))
    problem.options["data"] = "real";
  if (!one_in(3)) problem.options["thread-order"] = one_of({"reverse", "shuffled"});
  if (one_in(4)) problem.options["most-blocks"] = text(between(1, 4));
  if (one_in(6)) problem.options["offset"] = text(4 * between(1, 7));
  if (problem.ladder == "rulebook" && one_in(8)) {
    problem.options["bad-sites"] = text(one_of({"repeated:", "outside:"}), edge(1, 200));
  }
}

Drawer::Axis Drawer::draw_axis(int most, int kernel) {
  Axis axis;
  axis.kernel = kernel;
  if (one_in(5)) axis.dilation = one_in(4) ? edge(2, 24) : between(2, 4);
  const int window = (kernel - 1) * axis.dilation + 1;
  if (one_in(2)) {
    axis.stride = one_in(3) ? window + edge(0, 6) : between(1, 4);
    if (one_in(12)) axis.stride = edge(5, 120);
  }
  switch (between(0, 5)) {
    case 0: axis.before = axis.after = (window - 1) / 2; break;
    case 1: axis.before = axis.after = window - 1; break;
    case 2: axis.before = edge(0, 2 * window), axis.after = edge(0, 2 * window); break;
    case 3: axis.before = between(0, 3), axis.after = between(0, 3); break;
    default: break;
  }
  axis.out = edge(1, most);
  const std::int64_t rest = one_in(2) ? 0 : between(0, axis.stride - 1);
  const std::int64_t size = (axis.out - 1) * axis.stride + window + rest - axis.before - axis.after;
  axis.size = static_cast<int>(std::clamp<std::int64_t>(size, 1, 1 << 16));
  return axis;
}

DrawnProblem Drawer::draw_conv(double work) {
  for (;;) {
    // What the problem has much of. 0: of nothing.
    const int much = between(0, 7);
    const bool wide = much == 1 || much == 2, tall = much == 3, deep = much == 4;
    const bool many_filters = much == 5, many_images = much == 6;
    const int n = one_in(60) ? 0 : edge(1, many_images ? 40 : 3);
    int groups = 1, c = edge(1, deep ? 300 : 20), k = edge(1, many_filters ? 300 : 24);
    if (one_in(3)) {  // depthwise
      groups = c;
      k = c * (one_in(3) ? between(2, 3) : 1);
    } else if (one_in(4)) {
      groups = between(2, 5);
      c = groups * edge(1, deep ? 70 : 6);
      k = groups * edge(1, many_filters ? 70 : 6);
    }
    int r = one_of({1, 1, 2, 3, 3, 3, 4, 5, 6, 7}), s = r;
    if (one_in(3)) s = one_of({1, 2, 3, 4, 5, 7});
    if (one_in(15)) r = edge(1, 40);
    if (one_in(15)) s = edge(1, 40);
    const Axis rows = draw_axis(tall ? 700 : 40, r);
    Axis columns = draw_axis(wide ? 700 : 40, s);
    if (one_in(2)) columns.stride = rows.stride, columns.dilation = rows.dilation;
    DrawnProblem problem;
    set(problem, "n", {n}), set(problem, "c", {c}), set(problem, "k", {k});
    set(problem, "h", {rows.size}), set(problem, "w", {columns.size});
    set(problem, "r", {r}), set(problem, "s", {s});
    set_unless(problem, "pad", {rows.before, rows.after, columns.before, columns.after});
    set_unless(problem, "stride", {rows.stride, columns.stride});
    set_unless(problem, "dilation", {rows.dilation, columns.dilation});
    set_unless(problem, "groups", {groups});
    const double outputs = 1.0 * n * k * static_cast<double>(rows.out * columns.out);
    if (outputs * (1.0 * c / groups) * r * s > work ||
        1.0 * n * c * rows.size * columns.size > work)
      continue;
    return problem;
  }
}

DrawnProblem Drawer::draw_columns(double work) {
  for (;;) {
    const auto rank = static_cast<std::size_t>(one_of({1, 2, 2, 2, 3}));
    const bool wide = one_in(3);
    std::vector<int> sizes, kernel, pad, stride, dilation;
    const int n = one_in(60) ? 0 : edge(1, 4), c = edge(1, one_in(3) ? 100 : 9);
    double columns = 1, taps = 1, pixels = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      const int most = i + 1 == rank && wide ? 900 : rank == 3 ? 12 : 40;
      const int size = one_in(10) ? edge(1, 20) : one_of({1, 2, 3, 3, 4, 5, 7});
      const Axis axis = draw_axis(most, size);
      sizes.push_back(axis.size), kernel.push_back(axis.kernel), stride.push_back(axis.stride);
      dilation.push_back(axis.dilation), pad.push_back(axis.before), pad.push_back(axis.after);
      columns *= static_cast<double>(axis.out), taps *= axis.kernel, pixels *= axis.size;
    }
    if (n * c * (columns * taps + pixels) > work / 4) continue;
    DrawnProblem problem;
    set(problem, "n", {n}), set(problem, "c", {c});
    set(problem, "size", sizes), set(problem, "kernel", kernel);
    set_unless(problem, "pad", pad);
    set_unless(problem, "stride", stride), set_unless(problem, "dilation", dilation);
    if (one_in(3)) problem.options["request"] = one_of({"add", "none"});
    return problem;
  }
}

DrawnProblem Drawer::draw_gemm(double work) {
  for (;;) {
    const int much = between(0, 4);
    const int m = edge(1, much == 1 ? 2000 : 300), n = edge(1, much == 2 ? 2000 : 300),
              k = edge(1, much == 3 ? 4000 : 300);
    if (1.0 * m * n * k > 4 * work) continue;
    DrawnProblem problem;
    set(problem, "m", {m}), set(problem, "n", {n}), set(problem, "k", {k});
    return problem;
  }
}

DrawnProblem Drawer::draw_tile_map() {
  DrawnProblem problem;
  const TileMapName& map = any_of(kTileMaps);
  problem.options["map"] = map.name;
  set(problem, "tiles", {edge(1, 70), edge(1, 70), edge(1, 40)});
  if (map.map == TileMap::split_k) set(problem, "splits", {edge(1, 9)});
  if (map.map == TileMap::batched) set(problem, "batch", {edge(1, 5)});
  if (one_in(2)) set(problem, "blocks", {edge(1, 300)});
  return problem;
}

DrawnProblem Drawer::draw_sparse(const std::string& ladder, double work) {
  DrawnProblem problem;
  const bool to_dense = ladder == "sparse_to_dense", book = ladder == "rulebook";
  const auto ndim = static_cast<std::size_t>(one_of({1, 2, 2, 3, 3, 3, 4}));
  const char* const mode = one_of({"subm", "subm", "strided", "strided", "transposed", "inverse"});
  const bool subm = mode == std::string("subm");
  const bool huge = book && one_in(25);  // a grid of up to 2^31 cells
  std::vector<int> shape, kernel, stride, pad, dilation, out_padding;
  double taps = 1;
  const int most = ndim == 1 ? 4000 : ndim == 2 ? 90 : ndim == 3 ? 40 : 9;
  for (std::size_t i = 0; i < ndim; ++i) {
    shape.push_back(
        huge ? edge(16, static_cast<int>(std::pow(2.0, 30.0 / static_cast<double>(ndim))))
             : edge(1, most));
    const int k = one_of({1, 2, 3, 3, 3, 4, 5});
    kernel.push_back(subm ? k | 1 : k);
    dilation.push_back(one_in(4) ? between(2, one_in(4) ? 33 : 3) : 1);
    stride.push_back(subm || one_in(2) ? 1 : between(2, one_in(4) ? 7 : 3));
    pad.push_back(subm ? 0 : between(0, one_in(4) ? 9 : 2));
    out_padding.push_back(one_in(2) ? 0 : between(0, std::max(stride.back(), dilation.back()) - 1));
    taps *= kernel.back();
  }
  if (one_in(10)) {  // many taps
    kernel.back() = edge(1, 70) | 1;
  }
  if (!to_dense) {
    problem.options["mode"] = mode;
    set(problem, "kernel", kernel);
    set_unless(problem, "dilation", dilation);
    if (!subm) set_unless(problem, "stride", stride), set_unless(problem, "pad", pad);
    if (mode == std::string("transposed")) set_unless(problem, "out-padding", out_padding);
  }
  set(problem, "shape", shape);
  if (one_in(4)) set(problem, "batch", {edge(1, 4)});
  const int sites = one_in(30) ? 0 : edge(1, one_in(6) ? 3000 : 300);
  const double most_sites = std::max(1.0, work / 64 / taps);
  set(problem, "sites", {static_cast<int>(std::min<double>(sites, most_sites))});
  if (!one_in(3))
    problem.options["places"] = one_of({"cluster", "cluster", "block", "plane", "line", "corners"});
  if (one_in(2)) problem.options["order"] = one_of({"sorted", "reversed", "innermost"});
  if (book) {
    if (!one_in(4)) problem.options["form"] = one_of({"table", "sorted", "split"});
  } else {
    const int most_channels = one_in(4) ? 150 : 40;
    set(problem, "cin", {edge(1, most_channels)});
    if (!to_dense && !ladder.starts_with("sparse_max_pool"))
      set(problem, "cout", {edge(1, most_channels)});
  }
  return problem;
}

DrawnProblem Drawer::varied(const DrawnProblem& problem) {
  DrawnProblem other = problem;
  for (int changes = between(1, 2); changes > 0; --changes) {
    std::vector<std::string> names;
    for (const auto& [name, value] : other.options) {
      const bool condition = std::ranges::find(kConditions, name) != kConditions.end();
      if (!condition && name != "seed" && !numbers_in(value).empty()) names.push_back(name);
    }
    for (const char* name : {"pad", "stride", "dilation"}) {
      if (other.options.contains("kernel") || other.options.contains("r")) names.emplace_back(name);
    }
    const std::string name = any_of(names);
    std::string& value = other.options[name];
    if (value.empty()) value = text(simplest(name));
    std::vector<int> numbers = numbers_in(value);
    const bool list = name == "pad" || name == "stride" || name == "dilation";
    if (list && problem.options.contains("r") && one_in(2))
      numbers.resize(name == "pad" ? 4 : 2, numbers.front());
    int& number = any_of(numbers);
    switch (between(0, 4)) {
      case 0: number = edge(simplest(name), 600); break;
      case 1: number *= 2; break;
      case 2: number /= 2; break;
      case 3: ++number; break;
      default: --number;
    }
    number = std::clamp(number, simplest(name), most_of(name));
    value = value_of(name, numbers);
  }
  return other;
}

void Drawer::offset_one(DrawnProblem& problem, const Signature& signature) {
  std::vector<std::string> names;
  for (const auto* specs : {&signature.inputs, &signature.outputs})
    for (const ArraySpec& spec : *specs) names.push_back(spec.name);
  problem.options["offset"] = text(any_of(names), ":", 4 * between(1, 7));
}

// --- Simpler problems ----------------------------------------------------------------------------

std::vector<DrawnProblem> simpler(const DrawnProblem& problem) {
  std::vector<DrawnProblem> list;
  const auto add = [&](DrawnProblem candidate) {
    if (candidate != problem) list.push_back(std::move(candidate));
  };
  for (const auto& [name, value] : problem.options) {
    if (!may_be_left_out(name)) continue;
    DrawnProblem without = problem;
    without.options.erase(name);
    add(std::move(without));
  }
  // Groups and the channels of each, which belong together.
  if (const auto given = problem.options.find("groups"); given != problem.options.end()) {
    const int groups = numbers_in(given->second).front();
    const std::array now = {groups, numbers_in(problem.options.at("c")).front() / groups,
                            numbers_in(problem.options.at("k")).front() / groups};
    for (std::size_t part = 0; part < now.size(); ++part) {
      for (const int fewer : steps_down(now[part], 1)) {
        std::array next = now;
        next[part] = fewer;
        DrawnProblem smaller = problem;
        set(smaller, "c", {next[0] * next[1]}), set(smaller, "k", {next[0] * next[2]});
        set(smaller, "groups", {next[0]});
        add(std::move(smaller));
      }
    }
  }
  // An axis less, where all lists have one number an axis.
  for (const char* extents : {"shape", "size"}) {
    const auto found = problem.options.find(extents);
    if (found == problem.options.end()) continue;
    const std::size_t rank = numbers_in(found->second).size();
    for (std::size_t axis = 0; rank > 1 && axis < rank; ++axis) {
      DrawnProblem flat = problem;
      for (auto& [name, value] : flat.options) {
        std::vector<int> numbers = numbers_in(value);
        const std::size_t each = numbers.size() / rank;
        if (numbers.size() < 2 || numbers.size() % rank != 0 || name == "tiles") continue;
        const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(axis * each);
        numbers.erase(first, first + static_cast<std::ptrdiff_t>(each));
        value = value_of(name, numbers);
      }
      add(std::move(flat));
    }
  }
  for (const auto& [name, value] : problem.options) {
    const std::vector<int> numbers = numbers_in(value);
    if (name == "seed") continue;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (const int smaller : steps_down(numbers[i], simplest(name)))
        add(with_value(problem, {name, i, numbers.size()}, smaller));
    }
  }
  // Two that depend on each other, by the same amount.
  for (auto one = problem.options.begin(); one != problem.options.end(); ++one) {
    for (auto two = std::next(one); two != problem.options.end(); ++two) {
      const std::vector<int> a = numbers_in(one->second), b = numbers_in(two->second);
      if (a.size() != 1 || b.size() != 1 || one->first == "seed" || two->first == "seed") continue;
      const int room = std::min(a[0] - simplest(one->first), b[0] - simplest(two->first));
      for (const int less : {room / 2, 1}) {
        if (less < 1 || less > room) continue;
        DrawnProblem smaller = problem;
        set(smaller, one->first, {a[0] - less}), set(smaller, two->first, {b[0] - less});
        add(std::move(smaller));
      }
    }
  }
  return list;
}

std::optional<OneDifference> one_difference(const DrawnProblem& a, const DrawnProblem& b) {
  std::optional<OneDifference> difference;
  std::set<std::string> names;
  for (const DrawnProblem* problem : {&a, &b})
    for (const auto& [name, value] : problem->options) names.insert(name);
  for (const std::string& name : names) {
    const auto numbers = [&](const DrawnProblem& problem) {
      const auto given = problem.options.find(name);
      return given == problem.options.end() ? std::vector{simplest(name)}
                                            : numbers_in(given->second);
    };
    std::vector<int> x = numbers(a), y = numbers(b);
    if (x == y && a.options.contains(name) == b.options.contains(name) &&
        (!x.empty() || a.options.at(name) == b.options.at(name)))
      continue;
    if (x.empty() || y.empty() || difference) return {};  // words
    const std::size_t count = std::max(x.size(), y.size());
    x.resize(count, x.front()), y.resize(count, y.front());
    for (std::size_t i = 0; i < count; ++i) {
      if (x[i] == y[i]) continue;
      if (difference) return {};
      difference = OneDifference{name, i, count, x[i], y[i]};
    }
  }
  return difference;
}

DrawnProblem with_value(DrawnProblem problem, const OneDifference& place, int value) {
  std::string& option = problem.options[place.option];
  std::vector<int> numbers = numbers_in(option);
  if (numbers.empty()) numbers = {simplest(place.option)};
  numbers.resize(place.count, numbers.front());
  numbers.at(place.index) = value;
  option = value_of(place.option, numbers);
  return problem;
}

}  // namespace convladder::command
