/// @file calls_test.cpp
/// @brief A rung that is called by its name checks what it is given, before it computes anything.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/arguments.hpp"
#include "core/array.hpp"
#include "core/array_names.hpp"
#include "core/error.hpp"
#include "core/implementation.hpp"
#include "core/voxel_grid.hpp"
#include "ladders/ladders.hpp"

namespace convladder::testing {
namespace {

/// What BadInput says; empty if the call returns.
std::string refused(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

/// Memory that is never read.
alignas(256) float memory[64];
alignas(256) std::int32_t integers[64];

void give(Input& array) { array = memory; }
void give(Output& array) { array = memory; }
void give(const float*& array) { array = memory; }
void give(float*& array) { array = memory; }
void give(const std::int32_t*& array) { array = integers; }
void give(std::int32_t*& array) { array = integers; }
void give(OutputCreator& create) {
  create = [](const std::string&, const Shape&) { return integers; };
}
void give(FloatOutputCreator& create) {
  create = [](const std::string&, const Shape&) { return memory; };
}

template <class A>
int runs = 0;

/// A rung that counts its runs.
template <class A>
Implementation<A> counter() {
  return {.run = [](const typename A::Problem&, const A&, const Context&) { ++runs<A>; }};
}

bool is_of_rulebook(std::string_view name) {
  for (const char* form : {"pairs", "offsets", "nbr", "mask", "order", "split_order"}) {
    if (name.starts_with(form)) return true;
  }
  return false;
}

/// A valid problem, and the same without what validated() computes.
template <class A>
void calls_are_checked(const typename A::Problem& valid, const typename A::Problem& raw) {
  const Implementation<A> rung = counter<A>();
  runs<A> = 0;
  A all;
  std::vector<std::string> names;
  for_each_array(all, [&](std::string_view name, auto& array) {
    give(array);
    names.emplace_back(name);
  });
  rung(valid, all);
  CHECK(runs<A> == 1);
  const auto without = [&](const auto& is_missing) {
    A some = all;
    for_each_array(some, [&](std::string_view name, auto& array) {
      if (is_missing(name)) array = {};
    });
    return refused([&] { rung(valid, some); });
  };
  for (const std::string& missing : names) {
    CAPTURE(missing);
    const std::string said = without([&](std::string_view name) { return name == missing; });
    if (is_of_rulebook(missing) && std::ranges::count_if(names, is_of_rulebook) > 1) {
      CHECK(said == "");  // it may be of another form
    } else if (is_of_rulebook(missing)) {
      CHECK(said.starts_with("rulebook = null: "));
    } else {
      CHECK(said.starts_with(missing + " = "));
    }
  }
  const std::string said = without(is_of_rulebook);
  if (std::ranges::any_of(names, is_of_rulebook)) {
    CHECK(said.starts_with("rulebook = null: "));
  } else {
    CHECK(said == "");
  }
  CHECK(refused([&] { rung(raw, all); }).find("validated()") != std::string::npos);
}

/// The same of a problem that validated() adds nothing to: others than valid ones have another
/// fault.
template <class A>
void calls_are_checked(const typename A::Problem& valid, const typename A::Problem& raw,
                       const char* fault) {
  const Implementation<A> rung = counter<A>();
  A all;
  for_each_array(all, [&](std::string_view, auto& array) { give(array); });
  runs<A> = 0;
  rung(valid, all);
  CHECK(runs<A> == 1);
  for_each_array(all, [&](std::string_view missing, auto& array) {
    CAPTURE(missing);
    array = {};
    CHECK(refused([&] { rung(valid, all); }).starts_with(std::string(missing) + " = "));
    give(array);
  });
  CHECK(refused([&] { rung(raw, all); }).starts_with(fault));
}

const RulebookProblem kRawBook = {.mode = SparseMode::strided,
                                  .ndim = 2,
                                  .sites = 2,
                                  .shape = {{5, 5}},
                                  .kernel = {{2, 2}},
                                  .stride = {{2, 2}}};

}  // namespace

TEST_SUITE("calls") {
  TEST_CASE("calls: every array that a problem has, and nothing but what validated() made") {
    const Conv2dProblem conv = {.C = 2, .H = 3, .W = 4, .K = 2, .R = 2, .S = 2, .bias = true};
    calls_are_checked<Conv2dArrays>(validated(conv), conv);
    calls_are_checked<Conv2dDgradArrays>(validated(conv), conv);
    calls_are_checked<Conv2dWgradArrays>(validated(conv), conv);
    const Im2colProblem columns = {
        .C = 2, .height = {.size = 4, .kernel = 2}, .width = {.size = 3, .kernel = 2}};
    calls_are_checked<Im2colArrays>(validated(columns), columns);
    calls_are_checked<Col2imArrays>(validated(columns), columns);
    const RulebookProblem book = validated(kRawBook);
    calls_are_checked<RulebookArrays>(book, kRawBook);
    SparseConvProblem sparse = {
        .book = book, .Cin = 2, .N = 2, .M = 1, .pairs = 1, .most_pairs = 1, .bias = true};
    SparseConvProblem raw_sparse = sparse;
    raw_sparse.book = kRawBook;
    calls_are_checked<SparseConvArrays>(validated(sparse), raw_sparse);
    calls_are_checked<SparseDgradArrays>(validated(sparse), raw_sparse);
    calls_are_checked<SparseWgradArrays>(validated(sparse), raw_sparse);
    const SparsePoolProblem pool = {.book = book, .C = 2, .N = 2, .M = 1, .pairs = 1};
    SparsePoolProblem raw_pool = pool;
    raw_pool.book = kRawBook;
    calls_are_checked<SparseMaxPoolArrays>(validated(pool), raw_pool);
    calls_are_checked<SparseMaxPoolDgradArrays>(validated(pool), raw_pool);
    calls_are_checked<SparseAvgPoolArrays>(validated(pool), raw_pool);
    const SparseToDenseProblem dense = {
        .grid = {.ndim = 2, .sites = 2, .shape = {{5, 5}}, .kernel = every_axis(1)}};
    calls_are_checked<SparseToDenseArrays>(validated(dense), dense);
    const SparseGlobalPoolProblem images = {.grid = dense.grid, .C = 2};
    calls_are_checked<SparseGlobalPoolArrays>(validated(images), images);

    calls_are_checked<GemmArrays>(validated(GemmProblem{.M = 2, .N = 3, .K = 4, .bias = true}),
                                  {.M = 0}, "m = 0");
    calls_are_checked<FftArrays>(validated(FftProblem{.L = 4}), {.L = 0}, "length = 0");
    calls_are_checked<TileMapArrays>(validated(TileMapProblem{}), {.tiles_m = 0}, "tiles_m = 0");
    calls_are_checked<VoxelizeArrays>(
        {.grid = voxel_grid({0, 0, 0, 1, 1, 1}, 0.5F), .points = 2, .columns = 3}, {.columns = 2},
        "c = 2");
  }

  TEST_CASE("calls: what a problem has not may be null, and what has no elements") {
    const Implementation<Conv2dArrays> rung = counter<Conv2dArrays>();
    runs<Conv2dArrays> = 0;
    rung(validated(Conv2dProblem{}), {.x = memory, .weights = memory, .y = memory});  // no bias
    rung(validated(Conv2dProblem{.N = 0}), {.x = {}, .weights = memory, .y = {}});
    CHECK(runs<Conv2dArrays> == 2);
    const Implementation<Col2imArrays> columns = counter<Col2imArrays>();
    runs<Col2imArrays> = 0;
    columns(validated(Im2colProblem{.request = Request::none}), {});
    CHECK(runs<Col2imArrays> == 1);
    const Implementation<SparseConvArrays> sparse = counter<SparseConvArrays>();
    runs<SparseConvArrays> = 0;
    sparse(validated(SparseConvProblem{.book = validated(RulebookProblem{})}), {.weights = memory});
    CHECK(runs<SparseConvArrays> == 1);
  }

  TEST_CASE("calls: a workspace that is missing, or begins elsewhere") {
    static Implementation<GemmArrays> rung = counter<GemmArrays>();
    rung.workspace_bytes = [](const GemmProblem& p) { return static_cast<std::size_t>(p.M) - 1; };
    const GemmArrays arrays = {.a = memory, .b = memory, .c = memory};
    const GemmProblem with = validated(GemmProblem{.M = 9});
    CHECK(refused([&] { rung(with, arrays); }) ==
          "workspace = null: must have 8 bytes for this problem: see workspace_bytes");
    CHECK(refused([&] {
            rung(with, arrays, {.workspace = memory + 1});
          }).find("must begin at a multiple of 256 bytes") != std::string::npos);
    CHECK(refused([&] { rung(with, arrays, {.workspace = memory}); }) == "");
    CHECK(refused([&] { rung(validated(GemmProblem{}), arrays); }) == "");  // needs none
  }

  TEST_CASE("calls: rungs on the CPU name the form of the rulebook that they read") {
    const RulebookProblem book = validated(kRawBook);
    const Problem conv =
        validated(SparseConvProblem{.book = book, .N = 2, .M = 1, .pairs = 1, .most_pairs = 1});
    const Problem pool = validated(SparsePoolProblem{.book = book, .N = 2, .M = 1, .pairs = 1});
    int named = 0;
    for (const char* name : {"sparse_conv", "sparse_dgrad", "sparse_wgrad", "sparse_max_pool",
                             "sparse_max_pool_dgrad"}) {
      const Ladder& of = ladder(name);
      const Problem& problem =
          std::string_view(name).find("pool") == std::string::npos ? conv : pool;
      const Signature signature = of.signature(problem);
      for (const ArraySpec& missing : signature.inputs) {
        if (!is_of_rulebook(missing.name)) continue;
        const auto slots = [&](const std::vector<ArraySpec>& specs) {
          std::vector<Arguments::Slot> given;
          for (const ArraySpec& spec : specs) {
            void* const data = spec.dtype == DType::i32 ? static_cast<void*>(integers) : memory;
            given.push_back({spec.name, spec.dtype, spec.name == missing.name ? nullptr : data});
          }
          return given;
        };
        const Arguments arguments(slots(signature.inputs), slots(signature.outputs),
                                  {.workspace = memory}, {});
        for (const Rung& rung : of.rungs) {
          if (!rung.code_at(Where::cpu)) continue;
          CAPTURE(rung.name);
          const std::string said =
              refused([&] { rung.code_at(Where::cpu)->run(problem, arguments); });
          if (said == "") continue;  // it reads another form
          CHECK(said == missing.name + " = null: this rung reads it");
          ++named;
        }
      }
    }
    CHECK(named == 11);  // all pairs; offsets, too, of three; nbr_back of one
  }
}

}  // namespace convladder::testing
