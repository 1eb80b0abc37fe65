/// @file runner_test.cpp
/// @brief The runner: what a rung must not do to be accepted, and what messages say.
#include "oracle/runner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <set>

#include "core/device.hpp"
#include "ladders/best_rung.hpp"
#include "ladders/ladders.hpp"
#include "ladders/rows.hpp"
#include "tests/array_of.hpp"
#include "tests/contains.hpp"

namespace convladder::testing {
namespace {

/// The convolution that the faulty rungs below start from: y has 4 x 5 x 6 elements.
const Conv2dProblem kConv = validated(Conv2dProblem{
    .C = 3, .H = 6, .W = 7, .K = 4, .R = 3, .S = 3, .pad = {1, 0, 1, 0}, .bias = true});
constexpr std::int64_t kSizeOfY = 4 * 5 * 6;

/// The definition, as a rung does it.
void compute(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& = {}) {
  const auto slot = [](const char* name, const auto& array) {
    return Arguments::Slot{name, DType::f32, const_cast<float*>(array.template as<const float>())};
  };
  ladder("conv2d")
      .rungs.front()
      .code_at(Where::cpu)
      ->run(conv, Arguments({slot("x", arrays.x), slot("weights", arrays.weights),
                             slot("bias", arrays.bias)},
                            {slot("y", arrays.y)}, {}, {}));
}

using Run = decltype(Implementation<Conv2dArrays>::run);

Rung rung_of(const Implementation<Conv2dArrays>& code) {
  return cpu_row("test/conv2d/faulty", AnyImplementation(code), "", "made to fail");
}

Outcome outcome_of(Run run, Data data = Data::integer, const RunOptions& options = {}) {
  const Comparison comparison(ladder("conv2d"), kConv, data, 7);
  return comparison.run(rung_of({.run = run}), Where::cpu, options);
}

void check_differs(const Outcome& outcome, const std::string& message) {
  CAPTURE(outcome.reason);
  CHECK(outcome.status == Status::differs);
  CHECK(outcome.reason.find(message) != std::string::npos);
}

}  // namespace

TEST_SUITE_BEGIN("oracle");

TEST_CASE("a message names the element, both values, the tile and the halo") {
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  const Implementation<Conv2dArrays> code{
      .run =
          [](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
            compute(conv, arrays);
            arrays.y.as<float>()[(2 * 5 + 1) * 6 + 3] += 1;  // k = 2, p = 1, q = 3
          },
      .tile =
          [](const Conv2dProblem&) {
            return OutputTile{2, 4};
          }};
  const Outcome outcome = comparison.run(rung_of(code), Where::cpu);
  const auto right = static_cast<int>(comparison.expected()[0].values[(2 * 5 + 1) * 6 + 3]);
  CAPTURE(outcome.reason);
  CHECK(outcome.status == Status::differs);
  CHECK(contains(outcome.reason, "y[n=0, k=2, p=1, q=3]"));
  CHECK(contains(outcome.reason, text("expected ", right, ", found ", right + 1)));
  CHECK(contains(outcome.reason, "tile (0, 0) of 2 x 4, at (1, 3) in it"));
  CHECK(contains(outcome.reason, "reaches into the halo"));
  CHECK_FALSE(contains(outcome.reason, "padding"));
  CHECK(outcome.ran);
  CHECK(outcome.max_error == 1);
}

TEST_CASE("a message says when the window reaches into the padding") {
  const auto reason = [](std::size_t element) {
    const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
    Array y = array_of(std::vector<float>(kSizeOfY), {1, 4, 5, 6});
    const auto& expected = comparison.expected()[0];
    for (std::size_t i = 0; i < y.as<float>().size(); ++i) {
      y.as<float>()[i] = static_cast<float>(expected.values[i]) + (i == element ? 1.0f : 0.0f);
    }
    return judge(expected, y, Data::integer, kConv, {4, 5}).difference;
  };
  CHECK(contains(reason(0), "reaches into the padding"));  // p = 0, q = 0
  CHECK_FALSE(contains(reason(1 * 6 + 1), "padding"));     // its window starts at (0, 0)
  CHECK_FALSE(contains(reason(1 * 6 + 1), "halo"));        // and lies inside of the tile
  CHECK(contains(reason(3 * 6 + 1), "reaches into the halo"));
}

TEST_CASE("a right rung agrees, and is exact") {
  const Outcome exact = outcome_of(compute);
  CHECK(exact.status == Status::agrees);
  CHECK(exact.exact);
  CHECK(exact.max_error == 0);
  const Outcome real = outcome_of(compute, Data::real);
  CHECK(real.status == Status::agrees);
  CHECK(real.max_error > 0);
  CHECK(real.max_error < 1e-5);
}

TEST_CASE("a pixel far above the others hides no error of other pixels, also in TF32") {
  Conv2dProblem conv = kConv;
  conv.precision = Precision::tf32;
  Arrays inputs;
  for (const ArraySpec& spec : conv2d_signature(conv).inputs) {
    Array array(spec.dtype, spec.shape);
    std::ranges::fill(array.as<float>(), 0.01f);
    inputs.emplace(spec.name, std::move(array));
  }
  inputs.at("x").as<float>()[0] = 3e38f;
  const Comparison comparison(ladder("conv2d"), conv, Data::real, inputs, Roundings::any);
  const auto status_of = [&](Run run) {
    Rung rung = rung_of({.run = run});
    rung.tf32 = Tf32::operands;
    return comparison.run(rung, Where::cpu, {}).status;
  };
  CHECK(status_of(compute) == Status::agrees);
  CHECK(status_of([](const Conv2dProblem& problem, const Conv2dArrays& arrays, const Context&) {
          compute(problem, arrays);
          arrays.y.as<float>()[kSizeOfY - 1] += 0.02f;
        }) == Status::differs);
}

TEST_CASE("an output that is not written is rejected") {
  check_differs(outcome_of([](const Conv2dProblem&, const Conv2dArrays&, const Context&) {}),
                "found NaN");
  check_differs(
      outcome_of([](const Conv2dProblem&, const Conv2dArrays&, const Context&) {}, Data::real),
      "found NaN");
}

TEST_CASE("an element that is not written is rejected") {
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        std::vector<float> y(kSizeOfY);
        compute(conv, {arrays.x, arrays.weights, arrays.bias, y.data()});
        std::copy(y.begin(), y.end() - 1, arrays.y.as<float>());
      }),
      "y[n=0, k=3, p=4, q=5]");
}

TEST_CASE("an output left from the run before is rejected") {
  static int runs = 0;
  runs = 0;
  check_differs(outcome_of(
                    [](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
                      if (++runs == 1) compute(conv, arrays);
                    },
                    Data::integer, {.warm_up_runs = 1}),
                "found NaN");
  CHECK(runs == 2);
}

TEST_CASE("a rung that adds to what it should overwrite is rejected") {
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        const float before = arrays.y.as<float>()[0];
        compute(conv, arrays);
        arrays.y.as<float>()[0] += before * 0;
      }),
      "found NaN");
}

TEST_CASE("writes before and past an array are rejected, for each array") {
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        compute(conv, arrays);
        *(arrays.y.as<float>() - 1) = 0;
      }),
      "wrote before the beginning of y");
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        compute(conv, arrays);
        *(arrays.y.as<float>() - 1) += 1;  // a NaN plus 1 is a NaN
      }),
      "wrote before the beginning of y");
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        compute(conv, arrays);
        arrays.y.as<float>()[kSizeOfY] = 0;
      }),
      "wrote past the end of y");
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        compute(conv, arrays);
        const_cast<float*>(arrays.x.as<const float>())[3 * 6 * 7 + 100] = 0;
      }),
      "wrote past the end of x");
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  check_differs(
      comparison.run(
          rung_of({.workspace_bytes = [](const Conv2dProblem&) { return std::size_t{12}; },
                   .run =
                       [](const Conv2dProblem& conv, const Conv2dArrays& arrays,
                          const Context& context) {
                         compute(conv, arrays);
                         context.workspace_as<float>()[3] = 0;
                       }}),
          Where::cpu),
      "wrote past the end of the workspace");
}

TEST_CASE("a read past an array yields NaN, which is rejected") {
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        compute(conv, arrays);
        arrays.y.as<float>()[0] += 0 * arrays.x.as<const float>()[3 * 6 * 7];
      }),
      "found NaN");
}

TEST_CASE("a changed input is rejected") {
  check_differs(
      outcome_of([](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        compute(conv, arrays);
        const_cast<float*>(arrays.weights.as<const float>())[5] += 1;
      }),
      "changed its input weights");
}

/// A CUDA rung on cuda_on_cpu that runs `before` first.
Rung rung_that_first(std::function<void()> before) {
  for (Rung rung : ladder("conv2d").rungs) {
    if (!rung.code_at(Where::emulated)) continue;
    auto& run = rung.code[static_cast<std::size_t>(Where::emulated)]->run;
    run = [before = std::move(before), then = run](const Problem& problem,
                                                   const Arguments& arrays) {
      before();
      then(problem, arrays);
    };
    return rung;
  }
  throw std::logic_error("no rung runs on cuda_on_cpu");
}

TEST_CASE("device memory that is left behind is rejected, also where inputs are refused") {
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  Device& device = *device_at(Where::emulated);
  void* left = nullptr;
  const auto leak = [&] { left = device.allocate(40); };
  check_differs(comparison.run(rung_that_first(leak), Where::emulated),
                "left device memory behind: 40 bytes in 1 allocation");
  void* const earlier = left;  // which the next runs are not blamed for
  CHECK(comparison.run(rung_that_first([] {}), Where::emulated).status == Status::agrees);
  const auto leak_and_refuse = [&] {
    leak();
    throw BadInput("bad rows");
  };
  check_differs(
      comparison.run(rung_that_first(leak_and_refuse), Where::emulated),
      "left device memory behind: 40 bytes in 1 allocation, as it refused its inputs: bad");
  device.release(left);
  device.release(earlier);
}

TEST_CASE("an error of the device is a difference, with its text") {
  check_differs(outcome_of([](const Conv2dProblem&, const Conv2dArrays&, const Context&) {
                  throw DeviceError("cudaErrorIllegalAddress");
                }),
                "cudaErrorIllegalAddress");
}

TEST_CASE("declined and skipped are told apart, with a reason") {
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  const Outcome declined =
      comparison.run(rung_of({.supports = [](const Conv2dProblem&) { return Declined("no bias"); },
                              .run = compute}),
                     Where::cpu);
  CHECK(declined.status == Status::declined);
  CHECK(declined.reason == "no bias");
  CHECK_FALSE(declined.ran);
  const Outcome skipped = comparison.run(rung_of({.run = compute}), Where::gpu);
  CHECK(skipped.status == Status::skipped);
  CHECK(!skipped.reason.empty());
}

TEST_CASE("arrays begin where RunOptions::misalignment says") {
  static std::set<std::uintptr_t> offsets;
  for (const std::size_t misalignment : {0u, 4u, 8u, 12u}) {
    offsets.clear();
    const Outcome outcome = outcome_of(
        [](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
          for (const Input& input : {arrays.x, arrays.weights, arrays.bias}) {
            offsets.insert(reinterpret_cast<std::uintptr_t>(input.as<const float>()) % 256);
          }
          offsets.insert(reinterpret_cast<std::uintptr_t>(arrays.y.as<float>()) % 256);
          compute(conv, arrays);
        },
        Data::integer, {.misalignment = misalignment});
    CHECK(outcome.status == Status::agrees);
    CHECK(offsets == std::set<std::uintptr_t>{misalignment});
  }
}

TEST_CASE("an array that RunOptions::offsets names begins where it says, and no other") {
  static std::map<std::string, std::uintptr_t> offsets;
  const Rung rung = rung_of(
      {.workspace_bytes = [](const Conv2dProblem&) { return std::size_t{8}; },
       .run =
           [](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
             const auto note = [](const char* name, const float* array) {
               offsets[name] = reinterpret_cast<std::uintptr_t>(array) % 256;
             };
             note("x", arrays.x.as<const float>());
             note("weights", arrays.weights.as<const float>());
             note("y", arrays.y.as<float>());
             note("the workspace", context.workspace_as<float>());
             compute(conv, arrays);
           }});
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  const auto run = [&](const RunOptions& options) {
    CHECK(comparison.run(rung, Where::cpu, options).status == Status::agrees);
    return offsets;
  };
  using Offsets = std::map<std::string, std::uintptr_t>;
  CHECK(run({.offsets = {{"weights", 4}, {"absent", 8}}}) ==
        Offsets{{"x", 0}, {"weights", 4}, {"y", 0}, {"the workspace", 0}});
  CHECK(run({.misalignment = 12, .offsets = {{"x", 0}, {"y", 8}}}) ==
        Offsets{{"x", 0}, {"weights", 12}, {"y", 8}, {"the workspace", 0}});
  CHECK(run({.offsets = {{"the workspace", 16}}})["the workspace"] == 16);
}

TEST_CASE("a rung whose workspace does not fit beside the arrays declines") {
  const Rung rung =
      rung_of({.workspace_bytes = [](const Conv2dProblem&) { return std::size_t{1} << 60; },
               .run = compute});
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  const Outcome outcome = comparison.run(rung, Where::cpu);
  CHECK(outcome.status == Status::declined);
  CHECK(outcome.reason.find("needs a workspace of 1.2e+09 GB, more than the ") == 0);
  CHECK_FALSE(outcome.ran);
  CHECK_THROWS_AS(run_guarded(ladder("conv2d"), kConv, comparison.inputs(),
                              *rung.code_at(Where::cpu), Where::cpu),
                  BadInput);
}

TEST_CASE("a rung that runs out of memory declines") {
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  const Outcome outcome =
      comparison.run(rung_of({.run = [](const Conv2dProblem&, const Conv2dArrays&,
                                        const Context&) { throw std::bad_alloc(); }}),
                     Where::cpu);
  CHECK(outcome.status == Status::declined);
  CHECK(outcome.reason.find("more memory") != std::string::npos);
  CHECK_FALSE(outcome.ran);
}

TEST_CASE("what would take longer than the limit is declined, with the estimate") {
  const Rung& direct = ladder("gemm").rungs.front();
  const Rung& naive =
      *std::ranges::find(ladder("gemm").rungs, "cuda_naive/gemm/direct", &Rung::name);
  const Comparison comparison(ladder("gemm"), validated(GemmProblem{.M = 150, .N = 150, .K = 150}),
                              Data::integer, 7);
  for (const auto& [rung, where] : {std::pair{&direct, Where::cpu}, {&naive, Where::emulated}}) {
    CAPTURE(rung->name);
    const auto expected = [&](const Rung& of) {
      return expected_seconds(comparison.ladder(), of, comparison.problem()).value_or(0);
    };
    const Outcome declined =
        comparison.run(*rung, where, {.limit = 1e-3, .expected_seconds = expected});
    CHECK(declined.status == Status::declined);
    CHECK(declined.reason.find("would take about ") == 0);
    CHECK(contains(declined.reason, " s, more than the limit of 0.001 s"));
    CHECK_FALSE(declined.ran);
    // Neither a limit that is enough nor none makes a difference; nothing is left of the one
    // before.
    for (const double limit : {1e6, 0.0})
      CHECK(comparison.run(*rung, where, {.limit = limit, .expected_seconds = expected}).status ==
            Status::agrees);
  }
}

TEST_CASE("a failure within the limit stays a failure") {
  const Comparison comparison(ladder("conv2d"), kConv, Data::integer, 7);
  const auto fail = [] { throw DeviceError("cudaErrorIllegalAddress"); };
  check_differs(comparison.run(rung_that_first(fail), Where::emulated, {.limit = 1000}),
                "cudaErrorIllegalAddress");
}

TEST_CASE("this machine's speed is a number, and always the same") {
  CHECK(slowness_of_this_machine() > 0.01);
  CHECK(slowness_of_this_machine() == slowness_of_this_machine());
}

TEST_CASE("a problem that does not fit into memory is bad input before anything runs") {
  // a alone would take 8 PB.
  const GemmProblem large = validated(GemmProblem{.M = 2'000'000'000, .N = 1, .K = 1'000'000});
  const Rung& rung = ladder("gemm").rungs.front();
  CHECK_THROWS_AS(run_guarded(ladder("gemm"), large, {}, *rung.code_at(Where::cpu), Where::cpu),
                  BadInput);
}

TEST_CASE("outputs of unknown size: missing, of a wrong shape, created twice") {
  const TileMapProblem problem = validated(TileMapProblem{.tiles_m = 2, .tiles_n = 3});
  const Comparison comparison(ladder("tile_map"), problem, Data::integer, 1);
  const auto run = [&](decltype(Implementation<TileMapArrays>::run) code) {
    const Implementation<TileMapArrays> implementation{.run = code};
    return comparison.run(
        cpu_row("test/tile_map/faulty", AnyImplementation(implementation), "", ""), Where::cpu);
  };
  check_differs(run([](const TileMapProblem&, const TileMapArrays&, const Context&) {}),
                "did not create its output units");
  check_differs(run([](const TileMapProblem&, const TileMapArrays& arrays, const Context&) {
                  std::fill_n(arrays.create("units", {5, 6}), 30, 0);
                }),
                "units has shape 5 x 6");
  check_differs(run([](const TileMapProblem&, const TileMapArrays& arrays, const Context&) {
                  arrays.create("units", {6, 6});
                }),
                "found 2.14122486e+09");  // as it was poisoned
  check_differs(run([](const TileMapProblem&, const TileMapArrays& arrays, const Context&) {
                  std::int32_t* units = arrays.create("units", {6, 6});
                  std::fill_n(units, 37, 0);
                }),
                "wrote past the end of units");
  CHECK_THROWS_AS(run([](const TileMapProblem&, const TileMapArrays& arrays, const Context&) {
                    arrays.create("units", {6, 6});
                    arrays.create("units", {6, 6});
                  }),
                  std::logic_error);
}

TEST_SUITE_END();

}  // namespace convladder::testing
