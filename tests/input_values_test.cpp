/// @file input_values_test.cpp
/// @brief What programs refuse before a rung indexes memory by it.
#include "oracle/input_values.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"
#include "tests/array_of.hpp"
#include "tests/dice.hpp"
#include "tests/problems.hpp"
#include "tests/sites.hpp"

namespace convladder::testing {
namespace {

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();

/// What require_valid_values() says, or "" if it accepts.
std::string said(const std::string& name, const Problem& problem, const Arrays& inputs) {
  try {
    require_valid_values(ladder(name), problem, inputs);
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

/// A pooling of three of its four input rows into two, and into one that none meets.
struct Pooling {
  Rulebook book;
  SparsePoolProblem problem;
  Arrays inputs;
};

Pooling pooling() {
  RulebookProblem line{.mode = SparseMode::inverse, .ndim = 1, .shape = {{9}}, .kernel = {{1}}};
  line.stride = {{3}};
  const SparseCase sites = case_of(line, {{0, 3}, {0, 0}, {0, 4}});
  Rulebook book = make_rulebook(sites.book, sites.coords);
  const SparsePoolProblem problem = pooling_over(book, 2);
  Arrays inputs = rulebook_inputs(book, sparse_max_pool_dgrad_signature(problem));
  inputs.emplace("argmax", array_of<std::int32_t>({1, 1, 0, 0, -1, -1}, {3, 2}));
  return {std::move(book), problem, std::move(inputs)};
}

}  // namespace

TEST_SUITE_BEGIN("input values");

TEST_CASE("every input of indices is restricted, or made with the rulebook") {
  const std::set<std::string> of_rulebooks = {
      "pairs",       "offsets",  "nbr",       "mask",       "order",
      "split_order", "nbr_back", "mask_back", "order_back", "split_order_back"};
  std::set<std::string> restricted;
  for (const Ladder& each : ladders()) {
    for (const TestProblem& test : problems_of(each.name)) {
      if (test.size != Size::small) continue;
      const std::vector<std::string> names = restricted_inputs(each, test.problem);
      for (const ArraySpec& spec : each.signature(test.problem).inputs) {
        if (spec.dtype != DType::i32 || of_rulebooks.contains(spec.name)) continue;
        INFO(each.name, ": ", spec.name);
        CHECK(std::ranges::find(names, spec.name) != names.end());
        restricted.insert(each.name + "." + spec.name);
      }
      CHECK(said(each.name, test.problem, test.given) == "");
    }
  }
  CHECK(restricted == std::set<std::string>{"rulebook.coords", "sparse_max_pool_dgrad.argmax",
                                            "sparse_global_pool.coords", "sparse_to_dense.coords"});
}

TEST_CASE("an index with a value that it cannot have is refused, wherever it stands") {
  Dice dice(1);
  int tried = 0;
  for (const char* name :
       {"rulebook", "sparse_global_pool", "sparse_to_dense", "sparse_max_pool_dgrad"}) {
    for (const TestProblem& test : problems_of(name)) {
      if (test.size != Size::small) continue;
      const std::string array = restricted_inputs(ladder(name), test.problem).front();
      const auto given = test.given.find(array);
      if (given == test.given.end() || given->second.size() == 0) continue;
      for (const std::int32_t value : {kLowest, -2, 1'000'000'000, kHighest}) {
        Arrays inputs = test.given;
        const auto numbers = inputs.at(array).as<std::int32_t>();
        const auto at = static_cast<std::size_t>(dice(0, static_cast<int>(numbers.size()) - 1));
        const auto* grid = std::get_if<RulebookProblem>(&test.problem);
        const auto* dense = std::get_if<SparseToDenseProblem>(&test.problem);
        const auto* images = std::get_if<SparseGlobalPoolProblem>(&test.problem);
        if (dense != nullptr) grid = &dense->grid;
        if (images != nullptr) grid = &images->grid;
        if (grid != nullptr && value >= 0) {  // huge grids have such sites
          const auto column = static_cast<int>(at % static_cast<std::size_t>(1 + grid->ndim));
          if (value < (column == 0 ? grid->batch : grid->shape[column - 1])) continue;
        }
        numbers[at] = value;
        INFO(name, ": ", title_of(test), ": ", array, ", element ", at, " = ", value);
        CHECK(said(name, test.problem, inputs).starts_with(array));
        ++tried;
      }
    }
  }
  CHECK(tried > 100);
}

TEST_CASE("sites: the message names row, axis, value and limit") {
  const SparseCase sites =
      case_of({.ndim = 2, .batch = 2, .shape = {{4, 5}}}, {{0, 1, 4}, {1, 3, 0}});
  const Problem dense = validated(SparseToDenseProblem{.grid = sites.book});
  const auto says = [&](const std::vector<std::int32_t>& coords) {
    const Arrays inputs = {{"coords", array_of(coords, {2, 3})}};
    CHECK(said("rulebook", sites.book, inputs) == said("sparse_to_dense", dense, inputs));
    return said("rulebook", sites.book, inputs);
  };
  CHECK(says({0, 1, 4, 1, 3, 0}) == "");
  CHECK(says({0, 1, 4, 1, 4, 0}) ==
        "coords: 1 of 2 rows lie outside of batch 2 and shape 4,5; the first is row 1 (1,4,0), "
        "where axis 0 must be from 0 to 3 and is 4");
  CHECK(says({0, 1, -1, 2, 3, 0}) ==
        "coords: 2 of 2 rows lie outside of batch 2 and shape 4,5; the first is row 0 (0,1,-1), "
        "where axis 1 must be from 0 to 4 and is -1");
  CHECK(says({2, 1, 4, 1, 3, 0}).ends_with("where the batch index must be from 0 to 1 and is 2"));
  CHECK(says({1, 3, 0, 1, 3, 0}) ==
        "coords: 1 of 2 rows repeat the site of a row before; the first is row 1 (1,3,0)");
}

TEST_CASE("winners: an input row that the output meets, or -1 where it meets none") {
  Pooling pool = pooling();
  REQUIRE(pool.problem.M == 3);
  REQUIRE(pool.problem.N == 2);
  const auto says = [&](const std::vector<std::int32_t>& argmax) {
    pool.inputs.insert_or_assign("argmax", array_of(argmax, {3, 2}));
    return said("sparse_max_pool_dgrad", pool.problem, pool.inputs);
  };
  CHECK(says({1, 1, 0, 0, -1, -1}) == "");
  CHECK(says({1, 1, 0, 77, -1, -1}) ==
        "argmax = 77: argmax[m=1, c=1] must be an input row, 0 to 1");
  CHECK(says({1, -1, 0, 0, -1, -1}) ==
        "argmax = -1: argmax[m=0, c=1] must be an input row, 0 to 1");
  CHECK(says({0, 1, 0, 0, -1, -1}) ==
        "argmax = 0: argmax[m=0, c=0] must be one of the input rows of its output row");
  CHECK(says({1, 1, 0, 0, -1, 0}) ==
        "argmax = 0: argmax[m=2, c=1] must be -1: its output row has no input row");
  CHECK(restricted_inputs(ladder("sparse_max_pool"), pool.problem).empty());
}

TEST_CASE("the ring accepts integers up to 2^24 in magnitude") {
  FftProblem fft{.N = 1, .L = 2, .ring = FftRing::mersenne};
  const auto says = [&](float number) {
    return said("fft", fft, {{"x", array_of({0, 1, 2, number}, {1, 2, 2})}});
  };
  for (const float number : {0.0f, -1.0f, 131071.0f, 16777216.0f, -16777216.0f})
    CHECK(says(number) == "");
  const float inf = std::numeric_limits<float>::infinity();
  for (const float number : {0.5f, -1e-40f, 16777218.0f, -0x1p31f, 0x1p33f, 1e30f, inf, -inf,
                             std::numeric_limits<float>::quiet_NaN()})
    CHECK(says(number).ends_with(
        "x[n=0, j=1, c=1] must be an integer from -2^24 to 2^24 for the ring mersenne"));
  fft.ring = FftRing::complex;
  CHECK(says(0.5f) == "");
}

TEST_CASE("a number that a type would make infinite does not fit it") {
  const auto says = [](float number, DType dtype) -> std::string {
    const ArraySpec spec = {"a", "mk", {1, 2}, dtype};
    try {
      const Array rounded = rounded_input(spec, array_of({1, number}, {1, 2}));
      CHECK(rounded.dtype() == dtype);
      return "";
    } catch (const BadInput& error) {
      return error.what();
    }
  };
  const float inf = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8}) {
    for (const float number : {0.0f, -240.0f, inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
      if (dtype != DType::f8) CHECK(says(number, dtype) == "");
    }
  }
  CHECK(says(65519.996f, DType::f16) == "");
  CHECK(says(65520, DType::f16) ==
        "a = 65520: a[m=0, k=1] does not fit float16, whose largest number is 65504");
  CHECK(says(-70000, DType::f16).starts_with("a = -70000: a[m=0, k=1]"));
  CHECK(says(0x1.fefffep127f, DType::bf16) == "");
  CHECK(says(0x1.ffp127f, DType::bf16)
            .ends_with("does not fit bfloat16, whose largest number is 3.38953139e+38"));
  CHECK(says(1e30f, DType::f8) == "");  // 448, as in hardware
  CHECK(says(inf, DType::f8).ends_with("does not fit float8_e4m3fn, whose largest number is 448"));
}

TEST_SUITE_END();

}  // namespace convladder::testing
