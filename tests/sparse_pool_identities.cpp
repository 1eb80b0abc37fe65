#include "tests/sparse_pool_identities.hpp"

#include <cmath>
#include <utility>

#include "oracle/rulebook.hpp"
#include "tests/sparse_identities.hpp"

namespace convladder::testing {
namespace {

/// A pooling's problem with its sites.
struct PoolCase {
  SparseCase sites;
  Rulebook book;
  SparsePoolProblem pool;
};

std::string describe(const PoolCase& c) { return convladder::describe(c.pool); }

std::vector<PoolCase> pool_cases() {
  std::vector<PoolCase> list;
  for (const SparseCase& sites : identity_sites()) {
    const Rulebook book = make_rulebook(sites.book, sites.coords);
    constexpr int kChannels[] = {3, 4, 1, 6, 33};
    list.push_back({sites, book, pooling_over(book, kChannels[list.size() % 5])});
  }
  return list;
}

// --- Forward

struct Pooled {
  Array y, argmax;
};

Arrays forward_inputs(const Subject& f, const PoolCase& c) {
  return f.inputs(c.pool, 0, rulebook_inputs(c.book, f.ladder().signature(c.pool)));
}

Array pooled_y(const Subject& f, const PoolCase& c, const Arrays& inputs) {
  return f(c.pool, inputs).at("y");
}

Pooled pooled(const Subject& f, const PoolCase& c, const Arrays& inputs) {
  Arrays outputs = f(c.pool, inputs);
  return {std::move(outputs.at("y")), std::move(outputs.at("argmax"))};
}

void expect_same_rows(const Array& found, const Array& expected) {
  if (!std::ranges::equal(integers(found), integers(expected)))
    throw Broken{"argmax names other rows"};
}

/// y is the feature of a candidate, the one that argmax names; no candidate exceeds it, and none of
/// a lower tap equals it.
void expect_definition(const Subject& f, const PoolCase& c) {
  const Arrays inputs = forward_inputs(f, c);
  const Pooled result = pooled(f, c, inputs);
  const auto features = floats(inputs.at("features"));
  const std::int64_t C = c.pool.C;
  const auto pairs = integers(c.book.pairs);
  std::vector<bool> offered(at(c.pool.M * C)), found(at(c.pool.M * C));
  for (std::size_t i = 0; i < pairs.size(); i += kPairColumns) {
    for (std::int64_t ch = 0; ch < C; ++ch) {
      const std::size_t to = at(pairs[i + 2] * C + ch);
      const float offer = features[at(pairs[i + 1] * C + ch)], y = floats(result.y)[to];
      const bool winner = integers(result.argmax)[to] == pairs[i + 1];
      offered[to] = true;
      if (offer > y) throw Broken{text("a candidate, ", offer, ", exceeds the maximum, ", y)};
      if (winner && offer != y) throw Broken{text("y is ", y, ", but its row has ", offer)};
      if (!winner && !found[to] && offer == y) throw Broken{"an equal candidate comes before"};
      found[to] = found[to] || winner;
    }
  }
  if (offered != found) throw Broken{"argmax names no candidate"};
  for (std::size_t i = 0; i < offered.size(); ++i) {
    if (!offered[i] && (floats(result.y)[i] != 0 || integers(result.argmax)[i] != -1))
      throw Broken{"an output without candidates is not 0 and -1"};
  }
}

/// 2 x + 3 keeps the order, so the maxima follow it, and the same rows win.
void expect_rising_map(const Subject& f, const PoolCase& c) {
  const Arrays plain = forward_inputs(f, c);
  Arrays mapped = plain;
  for (float& value : mapped.at("features").as<float>()) value = 2 * value + 3;
  const Pooled before = pooled(f, c, plain), after = pooled(f, c, mapped);
  Array expected = before.y;
  for (std::size_t i = 0; i < floats(expected).size(); ++i) {
    if (integers(before.argmax)[i] >= 0) expected.as<float>()[i] = 2 * floats(before.y)[i] + 3;
  }
  expect_same(after.y, expected);
  expect_same_rows(after.argmax, before.argmax);
}

/// Channels in another order have their maxima in that order.
void expect_channels_apart(const Subject& f, const PoolCase& c) {
  const std::vector<int> old_of_new = permutation(c.pool.C, 3);
  const auto permuted = [&](const Array& array) {
    Array result = array;
    const auto C = at(c.pool.C);
    for (std::size_t i = 0; i < floats(result).size(); ++i)
      result.as<float>()[i] = floats(array)[i / C * C + at(old_of_new[i % C])];
    return result;
  };
  const Arrays inputs = forward_inputs(f, c);
  Arrays other = inputs;
  other.at("features") = permuted(inputs.at("features"));
  expect_same(pooled_y(f, c, other), permuted(pooled_y(f, c, inputs)));
}

/// Dense max pooling of the same tensor, whose empty cells are 0: the same if all features are
/// positive.
void expect_dense(const Subject& f, const PoolCase& c, const CheckOptions& options) {
  Arrays inputs = forward_inputs(f, c);
  for (float& value : inputs.at("features").as<float>()) value = std::abs(value) + 1;
  const RulebookProblem& book = c.pool.book;
  const SparseToDenseProblem dense = validated(SparseToDenseProblem{.grid = book, .C = c.pool.C});
  const Array x = first_cpu_rung("sparse_to_dense", options)(
                      dense, {{"features", inputs.at("features")}, {"coords", c.sites.coords}})
                      .at("x");
  const std::int64_t cells = cells_of(dense);
  Array expected = zeros({c.pool.M, c.pool.C});
  for (int row = 0; row < c.pool.M; ++row) {
    const Site out = site_of(book, integers(c.book.out_coords).data(), row);
    for (int k = 0; k < book.KV; ++k) {
      Site in;
      if (!input_of(book, out, tap_of(book, k), &in)) continue;  // in the padding
      const std::int64_t key = key_of(book, book.shape, in);
      for (int ch = 0; ch < c.pool.C; ++ch) {
        float& best = expected.as<float>()[at(std::int64_t{row} * c.pool.C + ch)];
        best = std::max(best, floats(x)[at((key / cells * c.pool.C + ch) * cells + key % cells)]);
      }
    }
  }
  expect_same(pooled(f, c, inputs).y, expected);
}

// --- Average

/// y times the number of pairs is the sum over them, but for the rounding of one division.
void expect_mean_of_pairs(const Subject& f, const PoolCase& c) {
  const Arrays inputs = forward_inputs(f, c);
  const auto pairs = integers(c.book.pairs);
  const std::int64_t C = c.pool.C;
  Array expected = zeros({c.pool.M, C});
  std::vector<float> counts(at(c.pool.M));
  for (std::size_t i = 0; i < pairs.size(); i += kPairColumns) {
    counts[at(pairs[i + 2])] += 1;
    for (std::int64_t ch = 0; ch < C; ++ch)
      expected.as<float>()[at(pairs[i + 2] * C + ch)] +=
          floats(inputs.at("features"))[at(pairs[i + 1] * C + ch)];
  }
  for (std::size_t i = 0; i < floats(expected).size(); ++i) {
    const float count = counts[i / at(C)];
    if (count > 0) expected.as<float>()[i] /= count;
  }
  expect_same(pooled_y(f, c, inputs), expected);
}

/// The mean of equal numbers is that number, however many there are: 0 where there is none.
void expect_constant_kept(const Subject& f, const PoolCase& c) {
  Arrays inputs = forward_inputs(f, c);
  std::ranges::fill(inputs.at("features").as<float>(), 5.0f);
  Array expected = zeros({c.pool.M, c.pool.C});
  const auto pairs = integers(c.book.pairs);
  for (std::size_t i = 0; i < pairs.size(); i += kPairColumns)
    for (std::int64_t ch = 0; ch < c.pool.C; ++ch)
      expected.as<float>()[at(std::int64_t{pairs[i + 2]} * c.pool.C + ch)] = 5.0f;
  expect_same(pooled_y(f, c, inputs), expected);
}

// --- Gradient

Arrays gradient_inputs(const Subject& f, const PoolCase& c, std::uint64_t salt = 0) {
  const Signature forward = sparse_max_pool_signature(c.pool);
  const Arrays features =
      make_inputs(forward, Data::integer, 17, 1, rulebook_inputs(c.book, forward));
  Arrays given = rulebook_inputs(c.book, sparse_max_pool_dgrad_signature(c.pool));
  given.emplace("argmax", argmax_over(c.book.nbr, features.at("features")));
  return f.inputs(c.pool, salt, std::move(given));
}

Array gradient(const Subject& f, const PoolCase& c, const Arrays& inputs) {
  return f(c.pool, inputs).at("dx");
}

/// Each output with a candidate gives its gradient to one input, whole.
void expect_conserved(const Subject& f, const PoolCase& c) {
  const Arrays inputs = gradient_inputs(f, c);
  const auto C = at(c.pool.C);
  std::vector<double> sent(C), received(C);
  const auto dy = floats(inputs.at("dy"));
  for (std::size_t i = 0; i < dy.size(); ++i)
    if (integers(inputs.at("argmax"))[i] >= 0) sent[i % C] += dy[i];
  const Array dx = gradient(f, c, inputs);
  for (std::size_t i = 0; i < floats(dx).size(); ++i) received[i % C] += floats(dx)[i];
  if (sent != received) throw Broken{"gradients are lost, or arrive more than once"};
}

/// The gradient is the adjoint of choosing: <dx, f> = <dy, f[argmax]> for every f.
void expect_adjoint_of_choosing(const Subject& f, const PoolCase& c) {
  const Arrays inputs = gradient_inputs(f, c);
  Array any = zeros({c.pool.N, c.pool.C}), chosen = zeros({c.pool.M, c.pool.C});
  for (std::size_t i = 0; i < floats(any).size(); ++i)
    any.as<float>()[i] = static_cast<float>(i % 11) - 4;
  const auto C = at(c.pool.C);
  for (std::size_t i = 0; i < floats(chosen).size(); ++i) {
    const std::int32_t in = integers(inputs.at("argmax"))[i];
    if (in >= 0) chosen.as<float>()[i] = floats(any)[at(in) * C + i % C];
  }
  expect_equal_inner(inner(inputs.at("dy"), chosen), inner(gradient(f, c, inputs), any));
}

void expect_linear(const Subject& f, const PoolCase& c) {
  const Arrays one = gradient_inputs(f, c);
  Arrays two = one, both = one;
  two.at("dy") = gradient_inputs(f, c, 3).at("dy");
  both.at("dy") = sum(one.at("dy"), two.at("dy"));
  expect_same(gradient(f, c, both), sum(gradient(f, c, one), gradient(f, c, two)));
}

// --- To dense

/// A dense tensor's problem with its sites.
struct DenseCase {
  SparseCase sites;
  SparseToDenseProblem problem;
};

std::string describe(const DenseCase& c) { return convladder::describe(c.problem); }

std::vector<DenseCase> dense_cases() {
  std::vector<DenseCase> list;
  for (const SparseCase& sites : identity_sites()) {
    constexpr int kChannels[] = {3, 1, 32, 40};
    list.push_back({sites, validated(SparseToDenseProblem{.grid = sites.book,
                                                          .C = kChannels[list.size() % 4]})});
  }
  return list;
}

Arrays dense_inputs(const Subject& f, const DenseCase& c) {
  return f.inputs(c.problem, 0, {{"coords", c.sites.coords}});
}

/// Gathering the rows from the dense tensor gives the features back, and leaves only zeros.
void expect_gather_returns(const Subject& f, const DenseCase& c) {
  const Arrays inputs = dense_inputs(f, c);
  Array rest = f(c.problem, inputs).at("x");
  Array rows = zeros({c.problem.grid.sites, c.problem.C});
  const std::int64_t cells = cells_of(c.problem), C = c.problem.C;
  for (int row = 0; row < c.problem.grid.sites; ++row) {
    const Site site = site_of(c.problem.grid, integers(c.sites.coords).data(), row);
    const std::int64_t key = key_of(c.problem.grid, c.problem.grid.shape, site);
    for (std::int64_t ch = 0; ch < C; ++ch) {
      float& value = rest.as<float>()[at((key / cells * C + ch) * cells + key % cells)];
      rows.as<float>()[at(row * C + ch)] = std::exchange(value, 0.0f);
    }
  }
  expect_same(rows, inputs.at("features"), "gathered");
  expect_same(rest, zeros(rest.shape()), "beside the sites");
}

/// The order of the rows makes no difference, if features and sites go together.
void expect_order_free(const Subject& f, const DenseCase& c) {
  const Arrays straight = dense_inputs(f, c);
  Arrays turned = straight;
  const int rows = c.problem.grid.sites;
  const auto turn = [&]<class T>(const char* name, T) {
    const auto from = straight.at(name).as<T>();
    const auto to = turned.at(name).as<T>();
    const std::size_t columns = rows == 0 ? 0 : from.size() / at(rows);
    for (std::size_t i = 0; i < from.size(); ++i)
      to[i] = from[(at(rows) - 1 - i / columns) * columns + i % columns];
  };
  turn("features", float{});
  turn("coords", std::int32_t{});
  expect_same(f(c.problem, turned).at("x"), f(c.problem, straight).at("x"));
}

// --- Global

/// A global pooling's problem with its sites.
struct GlobalCase {
  SparseCase sites;
  SparseGlobalPoolProblem problem;
};

std::string describe(const GlobalCase& c) { return convladder::describe(c.problem); }

std::vector<GlobalCase> global_cases() {
  std::vector<GlobalCase> list;
  for (const SparseCase& sites : identity_sites()) {
    constexpr int kChannels[] = {3, 1, 32, 40, 33};
    for (const PoolReduction reduce : {PoolReduction::max, PoolReduction::mean})
      list.push_back(
          {sites, validated(SparseGlobalPoolProblem{
                      .grid = sites.book, .C = kChannels[list.size() % 5], .reduce = reduce})});
  }
  return list;
}

/// The rows of each image.
std::vector<int> counts_of_images(const GlobalCase& c) {
  std::vector<int> counts(at(c.problem.grid.batch));
  for (int row = 0; row < c.problem.grid.sites; ++row)
    ++counts[at(site_of(c.problem.grid, integers(c.sites.coords).data(), row).batch)];
  return counts;
}

/// The dense tensor's largest cells, which empty ones, 0, do not exceed where all features are
/// positive; or its sums over the number of sites.
void expect_dense_images(const Subject& f, const GlobalCase& c, const CheckOptions& options) {
  Arrays inputs = f.inputs(c.problem, 0, {{"coords", c.sites.coords}});
  const bool mean = c.problem.reduce == PoolReduction::mean;
  for (float& value : inputs.at("features").as<float>())
    if (!mean) value = std::abs(value) + 1;
  const SparseToDenseProblem dense =
      validated(SparseToDenseProblem{.grid = c.problem.grid, .C = c.problem.C});
  const Array x = first_cpu_rung("sparse_to_dense", options)(dense, inputs).at("x");
  const std::int64_t cells = cells_of(dense);
  const std::vector<int> counts = counts_of_images(c);
  Array expected = zeros({c.problem.grid.batch, c.problem.C});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    float& y = expected.as<float>()[at(i / cells)];
    const float value = floats(x)[at(i)];
    y = mean ? y + value : std::max(y, value);
  }
  for (std::size_t i = 0; mean && i < floats(expected).size(); ++i) {
    const int count = counts[i / at(c.problem.C)];
    if (count > 0) expected.as<float>()[i] /= static_cast<float>(count);
  }
  expect_same(f(c.problem, inputs).at("y"), expected);
}

/// Equal features stay as they are, also negative ones; an image without a site is 0.
void expect_constant_image(const Subject& f, const GlobalCase& c) {
  Arrays inputs = f.inputs(c.problem, 0, {{"coords", c.sites.coords}});
  std::ranges::fill(inputs.at("features").as<float>(), -3.0f);
  Array expected = zeros({c.problem.grid.batch, c.problem.C});
  const std::vector<int> counts = counts_of_images(c);
  for (std::size_t i = 0; i < floats(expected).size(); ++i)
    if (counts[i / at(c.problem.C)] > 0) expected.as<float>()[i] = -3.0f;
  expect_same(f(c.problem, inputs).at("y"), expected);
}

}  // namespace

void check_pool_identities(const Subject& subject, const CheckOptions& options,
                           CheckReport& report) {
  const std::string& name = subject.ladder().name;
  if (name == "sparse_max_pool") {
    const std::vector<Identity<PoolCase>> identities = {
        {"the first largest candidate",
         {},
         [&](const PoolCase& c) { expect_definition(subject, c); }},
        {"a rising map goes through",
         {},
         [&](const PoolCase& c) { expect_rising_map(subject, c); }},
        {"channels apart", {}, [&](const PoolCase& c) { expect_channels_apart(subject, c); }},
        {"dense max pooling of positive features",
         [](const PoolCase& c) { return c.pool.book.mode != SparseMode::inverse; },
         [&](const PoolCase& c) { expect_dense(subject, c, options); }}};
    check_all(identities, pool_cases(), options, report);
  } else if (name == "sparse_avg_pool") {
    const std::vector<Identity<PoolCase>> identities = {
        {"the mean of a row's pairs",
         {},
         [&](const PoolCase& c) { expect_mean_of_pairs(subject, c); }},
        {"equal features stay", {}, [&](const PoolCase& c) { expect_constant_kept(subject, c); }},
        {"channels apart", {}, [&](const PoolCase& c) { expect_channels_apart(subject, c); }}};
    check_all(identities, pool_cases(), options, report);
  } else if (name == "sparse_max_pool_dgrad") {
    const std::vector<Identity<PoolCase>> identities = {
        {"every gradient arrives once",
         {},
         [&](const PoolCase& c) { expect_conserved(subject, c); }},
        {"adjoint of choosing",
         {},
         [&](const PoolCase& c) { expect_adjoint_of_choosing(subject, c); }},
        {"linear", {}, [&](const PoolCase& c) { expect_linear(subject, c); }}};
    check_all(identities, pool_cases(), options, report);
  } else if (name == "sparse_global_pool") {
    const std::vector<Identity<GlobalCase>> identities = {
        {"images of the dense tensor",
         {},
         [&](const GlobalCase& c) { expect_dense_images(subject, c, options); }},
        {"equal features stay", {}, [&](const GlobalCase& c) {
           expect_constant_image(subject, c);
         }}};
    check_all(identities, global_cases(), options, report);
  } else {
    const std::vector<Identity<DenseCase>> identities = {
        {"gathering gives the rows back",
         {},
         [&](const DenseCase& c) { expect_gather_returns(subject, c); }},
        {"rows in any order", {}, [&](const DenseCase& c) { expect_order_free(subject, c); }}};
    check_all(identities, dense_cases(), options, report);
  }
}

}  // namespace convladder::testing
