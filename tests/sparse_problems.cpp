#include "tests/sparse_problems.hpp"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::testing {
namespace {

struct Named {
  std::string name;
  SparseCase sites;
  Size size = Size::small;
};

constexpr auto kSubm = SparseMode::subm, kStrided = SparseMode::strided,
               kTransposed = SparseMode::transposed, kInverse = SparseMode::inverse;

RulebookProblem book_of(SparseMode mode, int ndim, PerAxis shape, PerAxis kernel) {
  return {.mode = mode, .ndim = ndim, .shape = shape, .kernel = kernel};
}

/// k3 s2 p1 in 3-D: the layer that makes a sparse network's next level.
RulebookProblem downsampling(SparseMode mode, PerAxis shape) {
  RulebookProblem book = book_of(mode, 3, shape, every_axis(3));
  book.stride = every_axis(2);
  book.pad = every_axis(1);
  return book;
}

std::vector<Named> edge_cases() {
  std::vector<Named> list;
  Dice dice(4711);
  const auto add = [&](const std::string& name, const SparseCase& sites, Size size = Size::small) {
    list.push_back({name, sites, size});
  };
  const auto everywhere = [](const Site&) { return true; };

  for (const SparseMode mode : {kSubm, kStrided, kTransposed, kInverse}) {
    const bool subm = mode == kSubm;
    RulebookProblem book = book_of(mode, 3, {{5, 6, 7}}, every_axis(3));
    if (!subm) book.stride = every_axis(2), book.pad = every_axis(1);
    add("no sites", case_of(book, {}));
    add("one site", case_of(book, {{0, 2, 3, 4}}));
    add("the eight corners", case_where(book, [&](const Site& site) {
          for (int axis = 0; axis < 3; ++axis) {
            if (site.at[axis] != 0 && site.at[axis] != book.shape[axis] - 1) return false;
          }
          return true;
        }));
    add("all sites", case_where(book, everywhere));
    RulebookProblem gaps = book;
    gaps.batch = 6;
    add("batch ids with gaps",
        case_of(gaps, {{4, 2, 2, 2}, {1, 2, 2, 2}, {4, 2, 2, 3}, {1, 3, 3, 3}, {5, 0, 0, 0}}));
    add("rows in no order", random_case(book, 90, dice));
    RulebookProblem blocks = book_of(mode, 2, {{40, 31}}, every_axis(3));
    if (!subm) blocks.stride = {{2, 1, 1, 1}}, blocks.pad = every_axis(1);
    add("more rows than a block has threads", random_case(blocks, 700, dice), Size::full);
    // 2^32 + 2^16 cells: keys of two sites agree in their low 32 bits.
    RulebookProblem wide = book_of(mode, 2, {{65537, 65536}}, every_axis(3));
    if (!subm) wide.pad = every_axis(1);
    add("keys that collide in 32 bits", case_of(wide, {{0, 65536, 0}, {0, 0, 0}, {0, 0, 1}}));
    for (int ndim = 1; ndim <= 4; ++ndim) {
      RulebookProblem axes = book_of(mode, ndim, {{5, 4, 6, 3}}, {{3, 1, 3, 1}});
      if (!subm) {
        axes.kernel = {{3, 2, 1, 2}};
        axes.stride = {{2, 1, 2, 1}};
        axes.pad = {{1, 0, 0, 1}};
      }
      add(text("each axis another, ", ndim, "-D"), random_case(axes, 40, dice));
      axes.dilation = {{2, 1, 2, 2}};
      if (!subm) axes.pad = {{2, 1, 1, 2}};
      if (mode == kTransposed) axes.out_padding = {{1, 0, 1, 1}};
      add(text("each axis another, dilated, ", ndim, "-D"), random_case(axes, 40, dice));
    }
  }

  // Kernel volumes around the 32 bits of a mask's word.
  add("1 tap", random_case(book_of(kSubm, 2, {{9, 9}}, every_axis(1)), 30, dice));
  add("33 taps", random_case(book_of(kSubm, 1, {{90}}, {{33}}), 60, dice));
  add("125 taps", random_case(book_of(kSubm, 3, {{6, 7, 8}}, every_axis(5)), 60, dice));
  for (const int last : {31, 32, 64, 65}) {
    RulebookProblem book = book_of(kStrided, 2, {{3, 80}}, {{1, last}});
    book.stride = {{1, 3}};
    add(text(last, " taps"), random_case(book, 70, dice));
  }
  // Windows that do not overlap, that leave gaps, and that reach far beyond the border.
  RulebookProblem pooling = book_of(kStrided, 3, {{6, 8, 7}}, every_axis(2));
  pooling.stride = every_axis(2);
  add("windows side by side", random_case(pooling, 120, dice));
  RulebookProblem gaps = book_of(kStrided, 2, {{17, 19}}, every_axis(1));
  gaps.stride = every_axis(3);
  add("inputs that no window holds", random_case(gaps, 100, dice));
  RulebookProblem vanish = book_of(kStrided, 1, {{9}}, {{1}});
  vanish.stride = {{2}};
  add("no output at all", case_of(vanish, {{0, 1}, {0, 3}, {0, 7}}));
  RulebookProblem far = book_of(kStrided, 2, {{5, 5}}, every_axis(3));
  far.pad = every_axis(6);
  add("padding beyond the kernel", random_case(far, 12, dice));
  RulebookProblem cropped = book_of(kTransposed, 2, {{6, 5}}, every_axis(3));
  cropped.stride = every_axis(2);
  cropped.pad = every_axis(3);
  add("outputs cut off by padding", random_case(cropped, 20, dice));
  // Dilation over the stride and the other way round, with and without a common divisor.
  for (const auto& [stride, dilation] :
       {std::array{2, 2}, {2, 3}, {3, 2}, {4, 2}, {2, 4}, {3, 3}}) {
    for (const SparseMode mode : {kStrided, kTransposed, kInverse}) {
      RulebookProblem book = book_of(mode, 2, {{14, 13}}, every_axis(3));
      book.stride = every_axis(stride);
      book.dilation = every_axis(dilation);
      book.pad = {{dilation, 1}};
      add(text("stride ", stride, ", dilation ", dilation), random_case(book, 60, dice));
    }
  }
  add("subm, dilation 3", [&] {
    RulebookProblem book = book_of(kSubm, 2, {{14, 13}}, {{3, 5}});
    book.dilation = {{3, 2}};
    return random_case(book, 80, dice);
  }());
  // Shapes whose pairs can be counted by hand (sparse_test.cpp counts them).
  const RulebookProblem volume = book_of(kSubm, 3, every_axis(9), every_axis(3));
  add("a line", case_where(volume, [](const Site& s) { return s.at[0] == 4 && s.at[1] == 4; }));
  add("a plane", case_where(volume, [](const Site& s) { return s.at[0] == 4; }));
  add("a checkerboard",
      case_where(book_of(kSubm, 3, every_axis(4), every_axis(3)),
                 [](const Site& s) { return (s.at[0] + s.at[1] + s.at[2]) % 2 == 0; }));
  add("a shell", case_where(volume, [](const Site& s) {
        int distance = 0;
        for (int axis = 0; axis < 3; ++axis) distance += (s.at[axis] - 4) * (s.at[axis] - 4);
        return distance >= 9 && distance <= 16;
      }));
  // Larger than any int32 volume (traveller59/spconv#745).
  RulebookProblem large = book_of(kTransposed, 3, every_axis(1224), every_axis(2));
  large.stride = every_axis(2);
  add("an output volume over 2^31", case_of(large, {{0, 285, 280, 256}}));
  Dice more(8);
  add("a level of a network", random_case(downsampling(kStrided, {{12, 14, 13}}), 500, more),
      Size::full);
  add("back from a level of a network",
      random_case(downsampling(kInverse, {{12, 14, 13}}), 500, more), Size::full);
  for (const GoldenCase& golden : golden_cases()) add(text("golden ", golden.name), golden.sites);
  // Sorted rows on lines of several words of 32 cells, and taps in one word, in two, and further
  // apart.
  const auto scattered = [](const Site& s) { return (s.at[0] * 7 + s.at[1] * 5 / 3) % 4 < 2; };
  add("sorted rows, lines of 70 cells",
      case_where(book_of(kSubm, 3, {{2, 3, 70}}, every_axis(3)),
                 [](const Site& s) { return (s.at[0] + s.at[1] * 5 + s.at[2] * 7 / 3) % 4 < 2; }));
  RulebookProblem apart = book_of(kSubm, 2, {{3, 100}}, {{1, 5}});
  apart.dilation = {{1, 21}};
  add("sorted rows, taps 21 cells apart", case_where(apart, scattered));
  RulebookProblem samples = book_of(kSubm, 2, {{4, 33}}, {{3, 5}});
  samples.batch = 3;
  samples.dilation = {{1, 7}};
  add("sorted rows, three samples", case_where(samples, scattered));
  return list;
}

/// Channels for the i-th problem: all of them over the list.
constexpr std::array<std::array<int, 2>, 6> kChannels = {
    {{1, 1}, {3, 7}, {16, 16}, {17, 4}, {5, 33}, {33, 17}}};

SparseMode mode_of_golden(const std::string& word) {
  return word == "subm" ? kSubm : word == "conv" ? kStrided : kTransposed;
}

PerAxis per_axis(const nlohmann::json& numbers, int otherwise) {
  PerAxis values = every_axis(otherwise);
  for (std::size_t axis = 0; axis < numbers.size(); ++axis)
    values[static_cast<int>(axis)] = numbers[axis].get<int>();
  return values;
}

GoldenCase golden_case(const nlohmann::json& json) {
  GoldenCase golden;
  golden.name = json["name"];
  golden.why = json["why"];
  RulebookProblem book{.mode = mode_of_golden(json["mode"]),
                       .ndim = static_cast<int>(json["shape"].size()),
                       .shape = per_axis(json["shape"], 1),
                       .kernel = per_axis(json["K"], 1),
                       .stride = per_axis(json["stride"], 1),
                       .pad = per_axis(json["pad"], 0),
                       .dilation = per_axis(json["dil"], 1)};
  if (!json["out_padding"].is_null()) book.out_padding = per_axis(json["out_padding"], 0);
  const auto sites = json["coords"].get<std::vector<std::vector<int>>>();
  for (const auto& site : sites) book.batch = std::max(book.batch, site[0] + 1);
  golden.sites = case_of(book, sites);
  for (const auto& site : json["out_coords"]) {
    for (const auto& number : site) golden.out_coords.push_back(number.get<std::int32_t>());
  }
  for (int k = 0; k < golden.sites.book.KV; ++k) {
    const auto pairs = json["pairs_in_out"].find(std::to_string(k));
    if (pairs == json["pairs_in_out"].end()) continue;
    auto in_out = pairs->get<std::vector<std::array<std::int32_t, 2>>>();
    std::ranges::sort(in_out, {}, [](const auto& pair) { return pair[1]; });
    for (const auto& [in, out] : in_out) golden.pairs.insert(golden.pairs.end(), {k, in, out});
  }
  if (json.contains("all_ones_output"))
    golden.all_ones_output = json["all_ones_output"].get<std::vector<int>>();
  return golden;
}

}  // namespace

bool is_sparse(const std::string& ladder) {
  return ladder == "rulebook" || ladder.starts_with("sparse_");
}

TestProblem sparse_problem(const std::string& ladder, const std::string& name,
                           const SparseCase& sites, const SparseConvProblem& layer) {
  if (ladder == "rulebook") {
    TestProblem test{.name = name, .problem = sites.book};
    test.given.emplace("coords", sites.coords);
    return test;
  }
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  TestProblem test{.name = name, .problem = convolution_over(book, layer)};
  test.given = rulebook_inputs(book, convladder::ladder(ladder).signature(test.problem));
  return test;
}

std::vector<TestProblem> sparse_problems(const std::string& ladder) {
  std::vector<TestProblem> list;
  std::size_t next = 0;
  for (const Named& entry : edge_cases()) {
    const auto& [Cin, Cout] = kChannels[next % kChannels.size()];
    SparseConvProblem layer{.Cin = Cin, .Cout = Cout};
    if (ladder == "sparse_conv") {
      layer.bias = next % 3 == 1;
      if (next % 4 == 1) layer.activation = Activation::relu;
    }
    list.push_back(sparse_problem(ladder, entry.name, entry.sites, layer));
    list.back().size = entry.size;
    list.back().misalignment = next % 4 * sizeof(float);
    ++next;
  }
  return list;
}

std::vector<TestProblem> random_sparse_problems(const std::string& ladder, int count,
                                                std::uint64_t seed) {
  Dice dice(seed);
  std::vector<TestProblem> list;
  while (static_cast<int>(list.size()) < count) {
    RulebookProblem book{.mode = static_cast<SparseMode>(dice(0, 3)), .ndim = dice(1, 4)};
    book.batch = dice(1, 3);
    int cells = book.batch;
    for (int axis = 0; axis < book.ndim; ++axis) {
      book.shape[axis] = dice(1, book.ndim == 1 ? 200 : book.ndim == 4 ? 6 : 16);
      book.kernel[axis] = dice(1, book.ndim == 4 ? 3 : 4);
      book.dilation[axis] = dice(1, 3);
      cells *= book.shape[axis];
      if (book.mode == kSubm) {
        book.kernel[axis] |= 1;
        continue;
      }
      book.stride[axis] = dice(1, 3);
      book.pad[axis] = dice(0, 4);
      if (book.mode == kTransposed)
        book.out_padding[axis] = dice(0, std::max(book.stride[axis], book.dilation[axis]) - 1);
    }
    try {
      const SparseCase sites = random_case(book, dice(0, std::min(cells, 150)), dice);
      list.push_back(sparse_problem(ladder, text("random ", list.size() + 1, " of seed ", seed),
                                    sites, {.Cin = dice(1, 20), .Cout = dice(1, 20)}));
    } catch (const BadInput&) {
      continue;  // a kernel that does not fit
    }
  }
  return list;
}

const std::vector<GoldenCase>& golden_cases() {
  static const std::vector<GoldenCase> cases = [] {
    std::ifstream stream(CONVLADDER_GOLDEN_FILE);
    std::vector<GoldenCase> all;
    for (const nlohmann::json& json : nlohmann::json::parse(stream))
      all.push_back(golden_case(json));
    return all;
  }();
  return cases;
}

}  // namespace convladder::testing
