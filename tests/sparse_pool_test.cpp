/// @file sparse_pool_test.cpp
/// @brief Poolings over a rulebook and the step to a dense tensor beyond the common problems:
/// answers by hand, NaN and the signs of zeros, and what must be refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"
#include "oracle/runner.hpp"
#include "tests/sites.hpp"

namespace convladder::testing {
namespace {

Array floats_of(Shape shape, const std::vector<float>& values) {
  Array array(DType::f32, std::move(shape));
  std::ranges::copy(values, array.as<float>().begin());
  return array;
}

Array integers_of(Shape shape, const std::vector<std::int32_t>& values) {
  Array array(DType::i32, std::move(shape));
  std::ranges::copy(values, array.as<std::int32_t>().begin());
  return array;
}

/// The bits, which tell zeros and NaN apart.
std::vector<std::uint32_t> bits_of(const Array& array) {
  std::vector<std::uint32_t> bits;
  for (const float value : array.as<float>()) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

std::vector<std::int32_t> numbers(const Array& array) {
  const auto span = array.as<std::int32_t>();
  return {span.begin(), span.end()};
}

/// Calls check(outputs) for every rung of the ladder, in every place that is there.
template <class Check>
void for_each_rung(const char* name, const Problem& problem, const Arrays& inputs,
                   const Check& check) {
  for (const Rung& rung : ladder(name).rungs) {
    for (const Where where : kEverywhere) {
      if (!rung.code_at(where) || device_at(where) == nullptr) continue;
      INFO(rung.name, " (", name_of(where), ")");
      const RungRun run = run_guarded(ladder(name), problem, inputs, *rung.code_at(where), where);
      CHECK(run.damage.empty());
      if (run.damage.empty()) check(run.outputs);
    }
  }
}

/// All rungs of sparse_max_pool give these bits, and these winners.
void check_pooling(const SparseCase& sites, int C, const std::vector<float>& features,
                   const std::vector<float>& y, const std::vector<std::int32_t>& argmax) {
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  const SparsePoolProblem pool = pooling_over(book, C);
  Arrays inputs = rulebook_inputs(book, sparse_max_pool_signature(pool));
  inputs.emplace("features", floats_of({pool.N, C}, features));
  CHECK(numbers(argmax_over(book.nbr, inputs.at("features"))) == argmax);
  for_each_rung("sparse_max_pool", pool, inputs, [&](const Arrays& outputs) {
    CHECK(bits_of(outputs.at("y")) == bits_of(floats_of({pool.M, C}, y)));
    CHECK(numbers(outputs.at("argmax")) == argmax);
  });
}

/// All rungs of sparse_avg_pool give these bits.
void check_averages(const SparseCase& sites, int C, const std::vector<float>& features,
                    const std::vector<float>& y) {
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  const SparsePoolProblem pool = pooling_over(book, C);
  Arrays inputs = rulebook_inputs(book, sparse_avg_pool_signature(pool));
  inputs.emplace("features", floats_of({pool.N, C}, features));
  for_each_rung("sparse_avg_pool", pool, inputs, [&](const Arrays& outputs) {
    CHECK(bits_of(outputs.at("y")) == bits_of(floats_of({pool.M, C}, y)));
  });
}

/// Three sites at x = 1, 2 and 4 under 3 taps, submanifold: row 0 has the candidates 0 and 1 (taps
/// 1 and 2), row 1 has 0 and 1 (taps 0 and 1), row 2 has itself.
SparseCase three_sites() {
  return case_of({.mode = SparseMode::subm, .ndim = 1, .shape = {{6}}}, {{0, 1}, {0, 2}, {0, 4}});
}

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

template <class Run>
std::string refusal(const Run& run) {
  try {
    run();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_SUITE_BEGIN("sparse pool");

TEST_CASE("max pooling by hand: the larger wins, of equal ones the lower tap") {
  check_pooling(three_sites(), 2, {3, 5, 8, 5, -2, 0}, {8, 5, 8, 5, -2, 0}, {1, 0, 1, 0, 2, 2});
  // The rows in another order: it is the tap that decides between equals, not the row.
  const SparseCase turned =
      case_of({.mode = SparseMode::subm, .ndim = 1, .shape = {{6}}}, {{0, 4}, {0, 2}, {0, 1}});
  check_pooling(turned, 1, {1, 5, 5}, {1, 5, 5}, {0, 2, 2});
}

TEST_CASE("max pooling: negative features stay negative, where spconv's native path gives 0") {
  const float low = std::numeric_limits<float>::lowest();
  const float inf = std::numeric_limits<float>::infinity();
  check_pooling(three_sites(), 4, {-3, low, -inf, -1, -8, -inf, -inf, -2, -1e-45f, low, -inf, inf},
                {-3, low, -inf, -1, -3, low, -inf, -1, -1e-45f, low, -inf, inf},
                {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2});
}

TEST_CASE("max pooling: zeros are equal, and y has the sign of the first") {
  check_pooling(three_sites(), 4,
                {0.0f, -0.0f, -0.0f, -0.0f, -0.0f, 0.0f, -1, 1e-45f, -0.0f, 1, 2, 3},
                {0.0f, -0.0f, -0.0f, 1e-45f, 0.0f, -0.0f, -0.0f, 1e-45f, -0.0f, 1, 2, 3},
                {0, 0, 0, 1, 0, 0, 0, 1, 2, 2, 2, 2});
}

TEST_CASE("max pooling: NaN goes on, the first one with all its bits") {
  const float nan = float_of(0x7fc01234u), other = float_of(0xffc00001u);
  const float inf = std::numeric_limits<float>::infinity();
  check_pooling(three_sites(), 4, {nan, 1, nan, other, 2, other, other, nan, -inf, 1, 2, inf},
                {nan, other, nan, other, nan, other, nan, other, -inf, 1, 2, inf},
                {0, 1, 0, 0, 0, 1, 0, 0, 2, 2, 2, 2});
  CHECK(exceeds(nan, inf));
  CHECK(!exceeds(inf, nan));
  CHECK(!exceeds(nan, other));
  CHECK(!exceeds(0.0f, -0.0f));
  CHECK(exceeds(2, 1));
}

TEST_CASE("max pooling: an output without candidates is 0, and has no argmax") {
  // Of x = 0 ... 4 a window of 1 with stride 3 holds 0 and 3; the way back has nothing for 1 and 4.
  const SparseCase sites = case_of(
      {.mode = SparseMode::inverse, .ndim = 1, .shape = {{5}}, .kernel = {{1}}, .stride = {{3}}},
      {{0, 4}, {0, 3}, {0, 1}, {0, 0}});
  check_pooling(sites, 2, {-5, -6, -7, -8}, {0, 0, -7, -8, 0, 0, -5, -6},
                {-1, -1, 1, 1, -1, -1, 0, 0});
}

TEST_CASE("max pooling: windows side by side, and windows that overlap") {
  RulebookProblem book{.mode = SparseMode::strided, .ndim = 1, .shape = {{6}}, .kernel = {{2}}};
  book.stride = {{2}};
  const std::vector<std::vector<int>> rows = {{0, 0}, {0, 1}, {0, 3}, {0, 5}};
  check_pooling(case_of(book, rows), 1, {-1, -4, 2, 2}, {-1, 2, 2}, {0, 2, 3});
  book.kernel = {{3}};
  book.pad = {{1}};  // windows -1 ... 1, 1 ... 3, 3 ... 5
  check_pooling(case_of(book, rows), 1, {-1, -4, 2, 2}, {-1, 2, 2}, {0, 2, 2});
}

TEST_CASE("average pooling by hand: divided by the sites that exist, not by the taps") {
  check_averages(three_sites(), 2, {3, 5, 8, 6, -2, 0}, {5.5f, 5.5f, 5.5f, 5.5f, -2, 0});
  // A window of three sites, whose mean has no end in binary: divided once, not multiplied by 1/3.
  const SparseCase line = case_of(
      {.mode = SparseMode::strided, .ndim = 1, .shape = {{3}}, .kernel = {{3}}, .stride = {{3}}},
      {{0, 0}, {0, 1}, {0, 2}});
  check_averages(line, 2, {1, 2, 0, 2, 0, 1}, {1.0f / 3.0f, 5.0f / 3.0f});
}

TEST_CASE("average pooling: an output without candidates is 0, and infinities and NaN arrive") {
  const SparseCase sites = case_of(
      {.mode = SparseMode::inverse, .ndim = 1, .shape = {{5}}, .kernel = {{1}}, .stride = {{3}}},
      {{0, 4}, {0, 3}, {0, 1}, {0, 0}});
  check_averages(sites, 2, {-5, -6, -7, -8}, {0, 0, -7, -8, 0, 0, -5, -6});
  const float inf = std::numeric_limits<float>::infinity();
  check_averages(three_sites(), 1, {inf, 1, -inf}, {inf, inf, -inf});
}

TEST_CASE("average pooling: what its bound says of a sum, and what is too large for one") {
  // Rows 0 and 1 have two candidates each: the bound is of their mean, not of their sum.
  const SparseCase sites = three_sites();
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  const SparsePoolProblem pool = pooling_over(book, 1);
  const auto expected = [&](const std::vector<float>& features) {
    Arrays inputs = rulebook_inputs(book, sparse_avg_pool_signature(pool));
    inputs.emplace("features", floats_of({3, 1}, features));
    return reference("sparse_avg_pool", pool, inputs).front();
  };
  CHECK(expected({3, -5, 7}).magnitude == std::vector<double>{4, 4, 7});
  CHECK(expected({3, -5, 7}).values == std::vector<double>{-1, -1, 7});
  CHECK(longest_sum("sparse_avg_pool", pool) == 3);
  // The mean of two numbers of 3e38 fits float, and their sum does not.
  Arrays inputs = rulebook_inputs(book, sparse_avg_pool_signature(pool));
  inputs.emplace("features", floats_of({3, 1}, {3e38f, 3e38f, 1}));
  const Comparison large(ladder("sparse_avg_pool"), pool, Data::real, std::move(inputs),
                         Roundings::any);
  CHECK(refusal([&] { require_float_range(large); }).find("such a sum does not fit float32") !=
        std::string::npos);
}

TEST_CASE("the gradient by hand: to the one winner, and several add up") {
  RulebookProblem line{.mode = SparseMode::strided, .ndim = 1, .shape = {{6}}, .kernel = {{3}}};
  line.stride = {{2}};
  line.pad = {{1}};
  const SparseCase sites = case_of(line, {{0, 0}, {0, 1}, {0, 3}, {0, 5}});
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  const SparsePoolProblem pool = pooling_over(book, 2);
  REQUIRE(pool.M == 3);
  Arrays inputs = rulebook_inputs(book, sparse_max_pool_dgrad_signature(pool));
  // Channel 0: row 2 wins twice, though row 3 has an equal feature; spconv would pay row 3 as well.
  const Array features = floats_of({4, 2}, {-1, 1, -4, 9, 2, 3, 2, 4});
  inputs.emplace("argmax", argmax_over(book.nbr, features));
  CHECK(numbers(inputs.at("argmax")) == std::vector<std::int32_t>{0, 1, 2, 1, 2, 3});
  inputs.emplace("dy", floats_of({3, 2}, {1, 2, 10, 20, 100, 200}));
  for_each_rung("sparse_max_pool_dgrad", pool, inputs, [&](const Arrays& outputs) {
    CHECK(bits_of(outputs.at("dx")) == bits_of(floats_of({4, 2}, {1, 0, 0, 22, 110, 0, 0, 200})));
  });
}

TEST_CASE("the gradient of an output without candidates goes nowhere") {
  const SparseCase sites = case_of(
      {.mode = SparseMode::inverse, .ndim = 1, .shape = {{5}}, .kernel = {{1}}, .stride = {{3}}},
      {{0, 4}, {0, 3}});
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  const SparsePoolProblem pool = pooling_over(book, 1);
  Arrays inputs = rulebook_inputs(book, sparse_max_pool_dgrad_signature(pool));
  inputs.emplace("argmax", integers_of({2, 1}, {-1, 0}));
  inputs.emplace("dy", floats_of({2, 1}, {5, 7}));
  for_each_rung("sparse_max_pool_dgrad", pool, inputs, [](const Arrays& outputs) {
    CHECK(bits_of(outputs.at("dx")) == bits_of(floats_of({1, 1}, {7})));
  });
}

/// All rungs of sparse_global_pool give these bits, of rows 0 and 2 in image 0 and row 1 in
/// image 2.
void check_global(PoolReduction reduce, const std::vector<float>& features,
                  const std::vector<float>& y) {
  const SparseCase sites = case_of(
      {.mode = SparseMode::subm, .ndim = 1, .batch = 3, .shape = {{6}}}, {{0, 1}, {2, 1}, {0, 4}});
  const int C = static_cast<int>(features.size() / 3);
  const SparseGlobalPoolProblem problem =
      validated(SparseGlobalPoolProblem{.grid = sites.book, .C = C, .reduce = reduce});
  const Arrays inputs = {{"features", floats_of({3, C}, features)}, {"coords", sites.coords}};
  for_each_rung("sparse_global_pool", problem, inputs, [&](const Arrays& outputs) {
    CHECK(bits_of(outputs.at("y")) == bits_of(floats_of({3, C}, y)));
  });
}

TEST_CASE("global pooling by hand: an image without a site is 0, and negative maxima stay") {
  check_global(PoolReduction::max, {-3, 5, -8, 6, -2, 0}, {-2, 5, 0, 0, -8, 6});
  check_global(PoolReduction::mean, {-3, 5, -8, 6, -2, 0}, {-2.5f, 2.5f, 0, 0, -8, 6});
}

TEST_CASE("global pooling: infinities and NaN arrive in their image") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = float_of(0x7fc00000u);
  check_global(PoolReduction::max, {-inf, nan, -inf, 1, -inf, inf}, {-inf, nan, 0, 0, -inf, 1});
  check_global(PoolReduction::mean, {inf, 1, -inf, 1, 2, inf}, {inf, inf, 0, 0, -inf, 1});
}

TEST_CASE("to dense by hand: channels become planes, and every bit arrives") {
  const SparseCase sites =
      case_of({.mode = SparseMode::subm, .ndim = 2, .batch = 2, .shape = {{2, 3}}},
              {{1, 0, 1}, {0, 1, 2}, {0, 0, 0}});
  const SparseToDenseProblem problem = validated(SparseToDenseProblem{.grid = sites.book, .C = 2});
  const float nan = float_of(0x7fc01234u);
  const Arrays inputs = {{"features", floats_of({3, 2}, {1, 2, 3, -0.0f, nan, 6})},
                         {"coords", sites.coords}};
  for_each_rung("sparse_to_dense", problem, inputs, [&](const Arrays& outputs) {
    const Array& x = outputs.at("x");
    CHECK(x.shape() == Shape{2, 2, 2, 3});
    CHECK(bits_of(x) == bits_of(floats_of({24}, {nan, 0, 0, 0, 0, 3, 6, 0, 0, 0, 0, -0.0f,  //
                                                 0,   1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0})));
  });
}

TEST_CASE("parameters and sites that make no sense are refused") {
  const SparseCase sites = three_sites();
  CHECK(refusal([] { validated(SparsePoolProblem{.C = 0}); }) == "cin = 0: must be at least 1");
  CHECK(refusal([] { validated(SparsePoolProblem{.N = -1}); }).find("rows = -1") == 0);
  CHECK(refusal([] { validated(SparsePoolProblem{.pairs = std::int64_t{1} << 31}); }) ==
        "pairs = 2147483648: must be less than 2^31");
  CHECK(refusal([&] { validated(SparseToDenseProblem{.grid = sites.book, .C = 0}); }) ==
        "cin = 0: must be at least 1");
  CHECK(refusal([&] { validated(SparseGlobalPoolProblem{.grid = sites.book, .C = 0}); }) ==
        "cin = 0: must be at least 1");
  RulebookProblem wide{.ndim = 4, .shape = every_axis(30000)};
  CHECK(refusal([&] {
          validated(SparseToDenseProblem{.grid = wide, .C = 16});
        }).find("bytes of the dense tensor") != std::string::npos);
  // The reference refuses bad sites before any rung runs.
  const auto says = [](const std::vector<std::vector<int>>& rows) {
    const SparseCase bad = case_of({.mode = SparseMode::subm, .ndim = 1, .shape = {{6}}}, rows);
    const SparseToDenseProblem problem = validated(SparseToDenseProblem{.grid = bad.book});
    return refusal([&] {
      Comparison(ladder("sparse_to_dense"), problem, Data::integer, 1, {{"coords", bad.coords}});
    });
  };
  CHECK(says({{0, 1}, {0, 6}}).find("1 of 2 rows lie outside of batch 1 and shape 6") !=
        std::string::npos);
  CHECK(says({{0, 1}, {0, 1}}).find("1 of 2 rows repeat the site of a row before") !=
        std::string::npos);
}

TEST_CASE("describe and signatures of poolings and dense tensors") {
  const SparseCase sites = three_sites();
  const SparsePoolProblem pool = pooling_over(make_rulebook(sites.book, sites.coords), 1);
  CHECK(describe(pool) == "subm, 3 sites in 6, kernel 3, 1 channel, 5 pairs");
  CHECK(sparse_max_pool_signature(pool).outputs[1].dtype == DType::i32);
  const SparseToDenseProblem dense = validated(SparseToDenseProblem{
      .grid = {.ndim = 3, .batch = 2, .sites = 9, .shape = {{4, 5, 6}}}, .C = 7});
  CHECK(describe(dense) == "9 sites in 4x5x6, batch 2, 7 channels");
  CHECK(sparse_to_dense_signature(dense).outputs[0].shape == Shape{2, 7, 4, 5, 6});
  CHECK(sparse_to_dense_signature(dense).outputs[0].axes == "nczyx");
  const SparseGlobalPoolProblem images =
      validated(SparseGlobalPoolProblem{.grid = dense.grid, .C = 7, .reduce = PoolReduction::mean});
  CHECK(describe(images) == "9 sites in 4x5x6, batch 2, 7 channels, mean");
  CHECK(sparse_global_pool_signature(images).outputs[0].shape == Shape{2, 7});
}

TEST_SUITE_END();

}  // namespace convladder::testing
