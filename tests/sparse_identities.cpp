#include "tests/sparse_identities.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "oracle/canonical.hpp"
#include "oracle/rulebook.hpp"
#include "tests/sparse_pool_identities.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

/// k, in, out.
using Pair = std::array<std::int32_t, 3>;

// --- Rulebooks

/// A rulebook as a rung found it, in canonical order.
struct Found {
  RulebookProblem book;
  Array coords, out_coords;
  std::vector<Pair> pairs;

  Site in_site(std::int32_t row) const { return site_of(book, integers(coords).data(), row); }
  Site out_site(std::int32_t row) const { return site_of(book, integers(out_coords).data(), row); }
};

Found find(const Subject& f, const SparseCase& sites) {
  const Arrays outputs = canonical(sites.book, f(sites.book, {{"coords", sites.coords}}));
  Found found{sites.book, sites.coords, outputs.at("out_coords"), {}};
  const auto numbers = integers(outputs.at("pairs"));
  for (std::size_t i = 0; i < numbers.size(); i += 3)
    found.pairs.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  return found;
}

std::string pair_text(const Pair& pair) {
  return text("(k ", pair[0], ", in ", pair[1], ", out ", pair[2], ")");
}

/// in = out * stride - pad + k * dilation, or for transposed with the roles changed, on every axis.
bool obeys(const RulebookProblem& book, const Site& in, const Site& out, int k) {
  if (in.batch != out.batch) return false;
  const PerAxis tap = tap_of(book, k);
  const bool transposed = book.mode == SparseMode::transposed;
  for (int axis = 0; axis < book.ndim; ++axis) {
    const int fine = transposed ? out.at[axis] : in.at[axis];
    const int coarse = transposed ? in.at[axis] : out.at[axis];
    if (fine != coarse * book.stride[axis] - book.pad[axis] + tap[axis] * book.dilation[axis])
      return false;
  }
  return true;
}

/// Every pair obeys the equation, and every two sites and tap that obey it are a pair: by trying
/// all. Not for `inverse`, whose inputs are not listed.
void expect_equation(const Found& found) {
  std::vector<Pair> all;
  for (int k = 0; k < found.book.KV; ++k) {
    for (int out = 0; out < found.out_coords.shape()[0]; ++out) {
      for (int in = 0; in < found.book.sites; ++in) {
        if (obeys(found.book, found.in_site(in), found.out_site(out), k))
          all.push_back({k, in, out});
      }
    }
  }
  if (all == found.pairs) return;
  const std::set<Pair> right(all.begin(), all.end()), has(found.pairs.begin(), found.pairs.end());
  for (const Pair& pair : has) {
    if (!right.contains(pair)) throw Broken{pair_text(pair) + " does not obey the equation"};
  }
  for (const Pair& pair : right) {
    if (!has.contains(pair)) throw Broken{pair_text(pair) + " is missing"};
  }
  throw Broken{"a pair stands there twice"};
}

/// At one tap no row has two pairs, on either side.
void expect_injective(const Found& found) {
  std::set<std::array<std::int32_t, 2>> ins, outs;
  for (const Pair& pair : found.pairs) {
    if (!ins.insert({pair[0], pair[1]}).second || !outs.insert({pair[0], pair[2]}).second)
      throw Broken{pair_text(pair) + ": one of its rows has another pair at this tap"};
  }
}

/// Every output has a pair, in every mode but `inverse`, whose inputs have.
void expect_all_used(const Found& found) {
  std::set<std::int32_t> used;
  const bool inverse = found.book.mode == SparseMode::inverse;
  for (const Pair& pair : found.pairs) used.insert(pair[inverse ? 1 : 2]);
  const std::int64_t rows =
      inverse ? (used.empty() ? 0 : *used.rbegin() + 1) : found.out_coords.shape()[0];
  if (static_cast<std::int64_t>(used.size()) != rows)
    throw Broken{text(rows, " rows were found, but only ", used.size(), " have a pair")};
}

/// Submanifold: the pairs at the opposite tap are the same with in and out exchanged, and the
/// centre pairs every row with itself.
void expect_mirror(const Found& found) {
  std::set<Pair> all(found.pairs.begin(), found.pairs.end());
  for (const Pair& pair : found.pairs) {
    const Pair mirrored = {found.book.KV - 1 - pair[0], pair[2], pair[1]};
    if (!all.contains(mirrored)) throw Broken{pair_text(pair) + " has no mirror"};
  }
  for (int row = 0; row < found.book.sites; ++row) {
    if (!all.contains({found.book.KV / 2, row, row}))
      throw Broken{text("row ", row, " does not meet itself at the centre")};
  }
}

SparseCase permuted_rows(const SparseCase& sites, const std::vector<int>& old_of_new) {
  SparseCase result = sites;
  const auto columns = static_cast<std::size_t>(1 + sites.book.ndim);
  for (std::size_t row = 0; row < old_of_new.size(); ++row)
    std::copy_n(
        integers(sites.coords).begin() + static_cast<std::ptrdiff_t>(at(old_of_new[row]) * columns),
        columns,
        result.coords.as<std::int32_t>().begin() + static_cast<std::ptrdiff_t>(row * columns));
  return result;
}

/// The rows, sorted by what key(site) says.
template <class Key>
std::vector<int> sorted_rows(const SparseCase& sites, const Key& key) {
  std::vector<int> order(at(sites.book.sites));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int row) {
    return key(site_of(sites.book, integers(sites.coords).data(), row));
  });
  return order;
}

/// The pairs of permuted rows are the permuted pairs.
void expect_permutation(const Subject& f, const SparseCase& sites,
                        const std::vector<int>& old_of_new) {
  const Found straight = find(f, sites), permuted = find(f, permuted_rows(sites, old_of_new));
  const bool in_moves = sites.book.mode != SparseMode::inverse;
  const bool out_moves = sites.book.mode == SparseMode::subm || !in_moves;
  std::set<Pair> expected(straight.pairs.begin(), straight.pairs.end()), found;
  for (Pair pair : permuted.pairs) {
    if (in_moves) pair[1] = old_of_new[at(pair[1])];
    if (out_moves) pair[2] = old_of_new[at(pair[2])];
    found.insert(pair);
  }
  if (found != expected) throw Broken{"permuted rows have other pairs"};
}

/// In whatever order: none, that of cells, its reverse, and with the innermost axis first.
void expect_permutations(const Subject& f, const SparseCase& sites) {
  expect_permutation(f, sites, permutation(sites.book.sites, 5));
  std::vector<int> order = sorted_rows(
      sites, [&](const Site& site) { return key_of(sites.book, sites.book.shape, site); });
  expect_permutation(f, sites, order);
  std::ranges::reverse(order);
  expect_permutation(f, sites, order);
  const auto innermost_first = [&](const Site& site) {
    std::vector<int> numbers(site.at.value, site.at.value + sites.book.ndim);
    numbers.insert(numbers.begin(), site.batch);
    std::ranges::reverse(numbers);
    return numbers;
  };
  expect_permutation(f, sites, sorted_rows(sites, innermost_first));
}

/// Samples of a batch do not see each other: each alone has the pairs that it has in the batch.
void expect_samples_apart(const Subject& f, const SparseCase& sites) {
  std::size_t pairs = 0;
  for (int sample = 0; sample < sites.book.batch; ++sample) {
    std::vector<std::vector<int>> rows;
    for (int row = 0; row < sites.book.sites; ++row) {
      const Site site = site_of(sites.book, integers(sites.coords).data(), row);
      if (site.batch != sample) continue;
      std::vector<int> numbers = {0};
      numbers.insert(numbers.end(), site.at.value, site.at.value + sites.book.ndim);
      rows.push_back(numbers);
    }
    RulebookProblem book = sites.book;
    book.batch = 1;
    pairs += find(f, case_of(book, rows)).pairs.size();
  }
  const std::size_t together = find(f, sites).pairs.size();
  if (pairs != together)
    throw Broken{text(together, " pairs in a batch, ", pairs, " of its samples alone")};
}

/// `inverse` is `strided` with in and out exchanged.
void expect_swap(const Subject& f, const SparseCase& sites) {
  RulebookProblem strided = sites.book;
  strided.mode = SparseMode::strided;
  const Found forth = find(f, with_parameters(sites, strided)), back = find(f, sites);
  std::set<Pair> expected, found(back.pairs.begin(), back.pairs.end());
  for (const Pair& pair : forth.pairs) expected.insert({pair[0], pair[2], pair[1]});
  if (found != expected) throw Broken{"its pairs are not those of strided, exchanged"};
}

std::vector<Identity<SparseCase>> rulebook_identities(const Subject& f) {
  const auto in_mode = [](SparseMode mode) {
    return [mode](const SparseCase& sites) { return sites.book.mode == mode; };
  };
  return {
      {"the equation holds for the pairs, and for nothing else",
       [](const SparseCase& sites) { return sites.book.mode != SparseMode::inverse; },
       [&f](const SparseCase& sites) { expect_equation(find(f, sites)); }},
      {"one pair a row and tap",
       {},
       [&f](const SparseCase& sites) { expect_injective(find(f, sites)); }},
      {"every site has a pair",
       {},
       [&f](const SparseCase& sites) { expect_all_used(find(f, sites)); }},
      {"opposite taps mirror each other", in_mode(SparseMode::subm),
       [&f](const SparseCase& sites) { expect_mirror(find(f, sites)); }},
      {"permuted rows", {}, [&f](const SparseCase& sites) { expect_permutations(f, sites); }},
      {"samples apart", {}, [&f](const SparseCase& sites) { expect_samples_apart(f, sites); }},
      {"inverse is strided, exchanged", in_mode(SparseMode::inverse),
       [&f](const SparseCase& sites) { expect_swap(f, sites); }},
  };
}

// --- Convolutions

/// A convolution's problem with all data of its three ladders.
struct ConvCase {
  SparseCase sites;
  Rulebook book;
  SparseConvProblem conv;
};

std::string describe(const ConvCase& c) { return convladder::describe(c.conv); }

std::vector<ConvCase> conv_cases() {
  std::vector<ConvCase> list;
  constexpr std::array<std::array<int, 2>, 4> channels = {{{3, 5}, {1, 1}, {8, 4}, {5, 18}}};
  for (const SparseCase& sites : identity_sites()) {
    const Rulebook book = make_rulebook(sites.book, sites.coords);
    const auto& [Cin, Cout] = channels[list.size() % channels.size()];
    list.push_back({sites, book, convolution_over(book, {.Cin = Cin, .Cout = Cout})});
  }
  return list;
}

const char* output_name(const std::string& ladder) {
  return ladder == "sparse_conv" ? "y" : ladder == "sparse_dgrad" ? "dx" : "dw";
}

Arrays inputs_of(const Subject& f, const ConvCase& c, std::uint64_t salt = 0) {
  return f.inputs(c.conv, salt, rulebook_inputs(c.book, f.ladder().signature(c.conv)));
}

Array result(const Subject& f, const ConvCase& c, const Arrays& inputs) {
  return f(c.conv, inputs).at(output_name(f.ladder().name));
}

/// <y, dy> = <features, dx> = <weights, dw>: what the subject computes, and what the bottom rung of
/// another ladder does.
void expect_adjoint(const Subject& f, const Subject& other, const ConvCase& c) {
  Arrays all = inputs_of(f, c);
  for (auto& [name, array] : inputs_of(other, c, 1)) all.emplace(name, array);
  const auto side = [&](const Subject& g) {
    const std::string& name = g.ladder().name;
    Arrays own;
    for (const ArraySpec& spec : g.ladder().signature(c.conv).inputs)
      own.emplace(spec.name, all.at(spec.name));
    const char* partner = name == "sparse_conv"    ? "dy"
                          : name == "sparse_dgrad" ? "features"
                                                   : "weights";
    return inner(result(g, c, own), all.at(partner));
  };
  expect_equal_inner(side(f), side(other));
}

void expect_linear(const Subject& f, const ConvCase& c) {
  const char* input = f.ladder().name == "sparse_conv" ? "features" : "dy";
  const Arrays one = inputs_of(f, c);
  Arrays two = one, both = one;
  two.at(input) = inputs_of(f, c, 3).at(input);
  both.at(input) = sum(one.at(input), two.at(input));
  expect_same(result(f, c, both), sum(result(f, c, one), result(f, c, two)));
}

/// The dense convolution of the scattered rows, by the bottom rung of conv2d: the same at the
/// outputs, and, unless submanifold, zero everywhere else.
void expect_dense(const Subject& f, const ConvCase& c, const CheckOptions& options) {
  const RulebookProblem& book = c.conv.book;
  const Conv2dProblem dense =
      validated(Conv2dProblem{.N = book.batch,
                              .C = c.conv.Cin,
                              .H = book.shape[0],
                              .W = book.shape[1],
                              .K = c.conv.Cout,
                              .R = book.kernel[0],
                              .S = book.kernel[1],
                              .pad = {book.pad[0], book.pad[0], book.pad[1], book.pad[1]},
                              .stride = {book.stride[0], book.stride[1]},
                              .dilation = {book.dilation[0], book.dilation[1]}});
  const Arrays inputs = inputs_of(f, c);
  Array x(DType::f32, {dense.N, dense.C, dense.H, dense.W});
  Array weights(DType::f32, {dense.K, dense.C, dense.R, dense.S});
  const Index4 x_at{dense.C, dense.H, dense.W}, w_at{dense.C, dense.R, dense.S},
      y_at{dense.K, dense.P, dense.Q};
  for (int row = 0; row < c.conv.N; ++row) {
    const Site site = site_of(book, integers(c.sites.coords).data(), row);
    for (int ci = 0; ci < dense.C; ++ci)
      x.as<float>()[at(x_at(site.batch, ci, site.at[0], site.at[1]))] =
          floats(inputs.at("features"))[at(row * std::int64_t{dense.C} + ci)];
  }
  for (int k = 0; k < book.KV; ++k) {
    for (int ci = 0; ci < dense.C; ++ci) {
      for (int co = 0; co < dense.K; ++co)
        weights.as<float>()[at(w_at(co, ci, k / dense.S, k % dense.S))] =
            floats(inputs.at("weights"))[at((std::int64_t{k} * dense.C + ci) * dense.K + co)];
    }
  }
  const Subject conv2d = first_cpu_rung("conv2d", options);
  Array rest = conv2d(dense, {{"x", x}, {"weights", weights}}).at("y");
  Array expected = zeros({c.conv.M, dense.K});
  for (int row = 0; row < c.conv.M; ++row) {
    const Site site = site_of(book, integers(c.book.out_coords).data(), row);
    for (int co = 0; co < dense.K; ++co) {
      float& value = rest.as<float>()[at(y_at(site.batch, co, site.at[0], site.at[1]))];
      expected.as<float>()[at(row * std::int64_t{dense.K} + co)] = value;
      value = 0;
    }
  }
  expect_same(result(f, c, inputs), expected);
  if (book.mode == SparseMode::strided)
    expect_same(rest, zeros(rest.shape()), "beside the outputs");
}

std::vector<Identity<ConvCase>> conv_identities(const Subject& f, const CheckOptions& options) {
  std::vector<Identity<ConvCase>> list;
  for (const char* name : {"sparse_conv", "sparse_dgrad", "sparse_wgrad"}) {
    if (f.ladder().name == name) continue;
    list.push_back({text("adjoint of ", name), {}, [&f, name, &options](const ConvCase& c) {
                      expect_adjoint(f, first_cpu_rung(name, options), c);
                    }});
  }
  list.push_back({"linear", {}, [&f](const ConvCase& c) { expect_linear(f, c); }});
  if (f.ladder().name == "sparse_conv") {
    list.push_back({"the dense convolution",
                    [](const ConvCase& c) {
                      return c.conv.book.ndim == 2 && (c.conv.book.mode == SparseMode::subm ||
                                                       c.conv.book.mode == SparseMode::strided);
                    },
                    [&f, &options](const ConvCase& c) { expect_dense(f, c, options); }});
  }
  return list;
}

}  // namespace

std::vector<SparseCase> identity_sites() {
  std::vector<SparseCase> list;
  Dice dice(99);
  for (const SparseMode mode :
       {SparseMode::subm, SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
    const bool subm = mode == SparseMode::subm;
    RulebookProblem plane{.mode = mode, .ndim = 2, .batch = 3, .shape = {{9, 11}}};
    RulebookProblem line{.mode = mode, .ndim = 1, .shape = {{60}}, .kernel = {{5}}};
    RulebookProblem volume{.mode = mode, .ndim = 3, .batch = 2, .shape = {{6, 5, 7}}};
    RulebookProblem hypervolume{.mode = mode, .ndim = 4, .shape = {{3, 4, 5, 3}}};
    if (!subm) {
      hypervolume.stride = {{1, 2, 1, 2}};
      hypervolume.pad = every_axis(1);
      plane.stride = {{2, 1}};
      plane.pad = {{1, 1}};
      line.stride = {{3}};
      line.dilation = {{2}};
      line.pad = {{4}};
      volume.kernel = {{2, 3, 3}};
      volume.stride = every_axis(2);
      volume.pad = {{0, 1, 1}};
    }
    list.push_back(random_case(plane, 120, dice));
    list.push_back(random_case(line, 35, dice));
    list.push_back(random_case(volume, 130, dice));
    list.push_back(random_case(hypervolume, 40, dice));
    plane.dilation = {{2, 3}};
    if (!subm) plane.pad = {{2, 3}};
    list.push_back(random_case(plane, 120, dice));
  }
  return list;
}

void check_sparse_identities(const Subject& subject, const CheckOptions& options,
                             CheckReport& report) {
  if (subject.ladder().name == "rulebook") {
    check_all(rulebook_identities(subject), identity_sites(), options, report);
  } else if (pools_over_rulebook(subject.ladder().name) ||
             subject.ladder().name == "sparse_global_pool" ||
             subject.ladder().name == "sparse_to_dense") {
    check_pool_identities(subject, options, report);
  } else {
    check_all(conv_identities(subject, options), conv_cases(), options, report);
  }
}

}  // namespace convladder::testing
