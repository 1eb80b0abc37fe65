/// @file oracle_test.cpp
/// @brief The oracle itself: what it must reject, and what its messages say.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <set>

#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "ladders/rows.hpp"
#include "oracle/memory_order.hpp"
#include "oracle/runner.hpp"
#include "oracle/samples.hpp"

namespace convladder::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The convolution that the faulty rungs below start from: y has 4 x 5 x 6 elements.
const Conv2dProblem kConv = validated(Conv2dProblem{
    .C = 3, .H = 6, .W = 7, .K = 4, .R = 3, .S = 3, .pad = {1, 0, 1, 0}, .bias = true});
constexpr std::int64_t kSizeOfY = 4 * 5 * 6;

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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Expected values of one float output, with magnitude 1 in sums of one product.
Expected expected_values(std::vector<double> values, Shape shape, std::string axes) {
  const std::vector<double> ones(values.size(), 1.0);
  return {{"y", std::move(axes), std::move(shape)}, std::move(values), ones, {}, 1};
}

Array array_of(const std::vector<float>& values, Shape shape) {
  Array array(DType::f32, std::move(shape));
  std::copy(values.begin(), values.end(), array.as<float>().begin());
  return array;
}

Verdict judge_values(const std::vector<double>& right, const std::vector<float>& found, Data data) {
  const Shape shape = {static_cast<std::int64_t>(right.size())};
  return judge(expected_values(right, shape, "k"), array_of(found, shape), data, GemmProblem{}, {});
}

}  // namespace

TEST_SUITE_BEGIN("oracle");

TEST_CASE("judge accepts the right bits, and nothing else in exact mode") {
  CHECK(judge_values({1, -2, 0}, {1, -2, 0}, Data::integer).agrees);
  CHECK(judge_values({1, -2, 0}, {1, -2, 0}, Data::integer).exact);
  CHECK(judge_values({0}, {-0.0f}, Data::integer).agrees);  // the sign of a zero sum means nothing
  CHECK_FALSE(judge_values({1, -2}, {1, 2}, Data::integer).agrees);
  CHECK_FALSE(judge_values({1}, {std::nextafter(1.0f, 2.0f)}, Data::integer).agrees);
  CHECK_FALSE(judge_values({3}, {-3}, Data::integer).agrees);
  CHECK_FALSE(judge_values({1}, {0}, Data::integer).agrees);
}

TEST_CASE("judge rejects NaN and infinity in both modes, wherever they stand") {
  for (const Data data : {Data::integer, Data::real}) {
    for (const float wrong : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (std::size_t i = 0; i < 3; ++i) {
        std::vector<float> found = {1, 2, 3};
        found[i] = wrong;
        const Verdict verdict = judge_values({1, 2, 3}, found, data);
        CHECK_FALSE(verdict.agrees);
        CHECK_FALSE(verdict.exact);
        CHECK(std::isinf(verdict.max_error));
      }
    }
    CHECK_FALSE(judge_values({1, 2}, {kNan, kNan}, data).agrees);
  }
}

TEST_CASE("judge allows rounding within (4 + 2 sqrt(L)) 2^-24 S, not beyond") {
  // L = 1 and S = 1: six units of 2^-24.
  const double bound = 6 * std::ldexp(1.0, -24);
  CHECK(judge_values({0}, {static_cast<float>(bound)}, Data::real).agrees);
  CHECK_FALSE(judge_values({0}, {static_cast<float>(bound * 1.0001)}, Data::real).agrees);
  CHECK(judge_values({0}, {static_cast<float>(-bound)}, Data::real).agrees);
  CHECK_FALSE(judge_values({0}, {static_cast<float>(bound * 1.0001)}, Data::integer).agrees);
  const Verdict rounded = judge_values({0.1}, {0.1f}, Data::real);
  CHECK(rounded.agrees);
  CHECK(rounded.exact);
  CHECK(rounded.max_error == std::abs(double{0.1f} - 0.1));
}

TEST_CASE("judge bounds each element by its own sum, so that one wrong pixel cannot hide") {
  std::vector<double> right(10000, 1000.0);
  std::vector<float> found(10000, 1000.0f);
  Expected expected = expected_values(right, {10000}, "k");
  for (double& magnitude : expected.magnitude) magnitude = 1000.0;
  expected.values[5000] = 0.001;
  expected.magnitude[5000] = 0.001;
  found[5000] = 0.0011f;  // relative to the norm of all: 1e-9
  const Verdict verdict = judge(expected, array_of(found, {10000}), Data::real, GemmProblem{}, {});
  CHECK_FALSE(verdict.agrees);
  CHECK(contains(verdict.difference, "y[k=5000]"));
}

TEST_CASE("judge without magnitudes allows no rounding at all") {
  Expected expected = expected_values({0.5}, {1}, "k");
  expected.magnitude.clear();
  CHECK(judge(expected, array_of({0.5f}, {1}), Data::real, GemmProblem{}, {}).agrees);
  CHECK_FALSE(
      judge(expected, array_of({std::nextafter(0.5f, 1.0f)}, {1}), Data::real, GemmProblem{}, {})
          .agrees);
}

TEST_CASE("judge rejects another shape or element type") {
  const Expected expected = expected_values({1, 2}, {2}, "k");
  const Verdict longer =
      judge(expected, array_of({1, 2, 3}, {3}), Data::integer, GemmProblem{}, {});
  CHECK_FALSE(longer.agrees);
  CHECK(contains(longer.difference, "y has shape 3"));
  CHECK_FALSE(judge(expected, array_of({1, 2}, {1, 2}), Data::integer, GemmProblem{}, {}).agrees);
  CHECK_FALSE(judge(expected, Array(DType::i32, {2}), Data::integer, GemmProblem{}, {}).agrees);
  CHECK_FALSE(judge(expected, array_of({}, {0}), Data::integer, GemmProblem{}, {}).agrees);
}

TEST_CASE("judge compares integers exactly, also beyond what a float holds") {
  Expected expected{{"units", "uc", {1, 2}, DType::i32}, {}, {}, {(1 << 24) + 1, -7}, 1};
  Array found(DType::i32, {1, 2});
  found.as<std::int32_t>()[0] = (1 << 24) + 1;
  found.as<std::int32_t>()[1] = -7;
  CHECK(judge(expected, found, Data::real, GemmProblem{}, {}).agrees);
  found.as<std::int32_t>()[0] = 1 << 24;
  const Verdict verdict = judge(expected, found, Data::real, GemmProblem{}, {});
  CHECK_FALSE(verdict.agrees);
  CHECK(contains(verdict.difference, "units[u=0, c=0]: expected 16777217, found 16777216"));
}

/// TF32 has 13 bits fewer. Adding half of the last bit that stays makes the cut a rounding.
float cut_to_tf32(float value, bool round) {
  const std::uint32_t half = round ? 0x1000 : 0;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + half) & 0xffffe000u);
}

/// The product in float, of factors that went through `convert`.
template <class Convert>
Array product_of(const GemmProblem& gemm, const Arrays& inputs, const Convert& convert) {
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const auto N = static_cast<std::size_t>(gemm.N), K = static_cast<std::size_t>(gemm.K);
  Array c(DType::f32, {gemm.M, gemm.N});
  for (std::size_t m = 0; m < static_cast<std::size_t>(gemm.M); ++m) {
    for (std::size_t n = 0; n < N; ++n) {
      float sum = 0;
      for (std::size_t k = 0; k < K; ++k) sum += convert(a[m * K + k]) * convert(b[k * N + n]);
      c.as<float>()[m * N + n] = sum;
    }
  }
  return c;
}

TEST_CASE("judge tells float from products rounded or truncated to TF32") {
  const GemmProblem gemm = validated(GemmProblem{.M = 4, .N = 4, .K = 256});
  const Comparison comparison(ladder("gemm"), gemm, Data::real, 3);
  const auto agrees = [&](const auto& convert) {
    const Array c = product_of(gemm, comparison.inputs(), convert);
    return judge(comparison.expected().at(0), c, Data::real, gemm, {}).agrees;
  };
  CHECK(agrees([](float value) { return value; }));
  CHECK_FALSE(agrees([](float value) { return cut_to_tf32(value, false); }));
  CHECK_FALSE(agrees([](float value) { return cut_to_tf32(value, true); }));
}

TEST_CASE("judge tells factors rounded to TF32 from truncated ones, by data without a sign") {
  const GemmProblem gemm =
      validated(GemmProblem{.M = 5, .N = 40, .K = 300, .precision = Precision::tf32});
  const auto agrees = [&](Data data, bool round) {
    const Comparison comparison(ladder("gemm"), gemm, data, 3);
    const Array c = product_of(gemm, comparison.inputs(),
                               [&](float value) { return cut_to_tf32(value, round); });
    return judge(comparison.expected().at(0), c, data, gemm, {}).agrees;
  };
  for (const Data data : {Data::integer, Data::real, Data::positive}) CHECK(agrees(data, true));
  CHECK(agrees(Data::integer, false));
  CHECK(agrees(Data::real, false));  // errors of both signs cancel
  CHECK_FALSE(agrees(Data::positive, false));
}

TEST_CASE("memory order: nhwc by hand, and back") {
  const Conv2dProblem conv =
      validated(Conv2dProblem{.N = 2, .C = 3, .H = 2, .W = 4, .layout = Layout::nhwc});
  const ArraySpec x = conv2d_signature(conv).inputs.at(0);
  Array array(DType::f32, x.shape);
  const auto values = array.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Array stored = in_memory(array, x.order);
  const auto in_order = stored.as<float>();
  // Pixel (0, 0) of image 0, its three channels; then pixel (0, 1); the second image begins at 24.
  CHECK(in_order[0] == 0);
  CHECK(in_order[1] == 8);
  CHECK(in_order[2] == 16);
  CHECK(in_order[3] == 1);
  CHECK(in_order[24] == 24);
  CHECK(in_order[25] == 32);
  const LayoutIndex4 at{conv.layout, conv.C, conv.H, conv.W};
  CHECK(in_order[static_cast<std::size_t>(at(1, 2, 1, 3))] == 47);
  CHECK(at(1, 2, 1, 3) == 47);
  CHECK(at(0, 1, 1, 2) == 19);
  CHECK(in_order[19] == 8 + 4 + 2);
  const Array back = from_memory(stored, x.order);
  CHECK(std::ranges::equal(back.as<float>(), values));
}

TEST_CASE("memory order: columns become rows in nhwc") {
  const Im2colProblem rows = validated(Im2colProblem{
      .N = 2, .C = 2, .rank = 1, .width = {4, 2}, .request = Request::add, .layout = Layout::nhwc});
  const Signature signature = im2col_signature(rows);
  const ArraySpec &x = signature.inputs.at(0), &into = signature.inputs.at(1);
  CHECK(place_in_memory(5, x.order) == 3);          // channel 1 of pixel 1
  CHECK(place_in_memory(8 + 6, x.order) == 8 + 5);  // of image 1, channel 1 of pixel 2
  // [n][c * tap][window] = [2][4][3]: row 3 (channel 1, tap 1) of window 2 is the last of its row.
  const ArraySpec& col = signature.outputs.at(0);
  CHECK(place_in_memory(3 * 3 + 2, col.order) == 2 * 4 + 3);
  CHECK(place_in_memory(1 * 3 + 0, col.order) == 2);  // tap 1 of channel 0, after tap 0 of both
  CHECK(place_in_memory(12 + 2 * 3 + 1, col.order) == 12 + 4 + 1);
  CHECK(into.order.axes == col.order.axes);
}

TEST_CASE("reference: ReLU comes after the bias, and bounds stay those of the sum") {
  Conv2dProblem conv = validated(Conv2dProblem{.W = 3, .bias = true});
  const Arrays inputs = {{"x", array_of({-5, 1, 2}, {1, 1, 1, 3})},
                         {"weights", array_of({2}, {1, 1, 1, 1})},
                         {"bias", array_of({-3}, {1})}};
  CHECK(reference("conv2d", conv, inputs)[0].values == std::vector<double>{-13, -1, 1});
  conv.activation = Activation::relu;
  const Expected y = reference("conv2d", conv, inputs)[0];
  CHECK(y.values == std::vector<double>{0, 0, 1});
  CHECK(y.magnitude == std::vector<double>{13, 5, 7});
  const std::int64_t places[] = {0, 1, 2};
  const auto sampled = reference_at("conv2d", conv, inputs, "y", places);
  for (std::size_t i = 0; i < 3; ++i) CHECK(sampled.at(i).value == y.values[i]);
}

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
                "found -4128832");  // as it was poisoned
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

TEST_CASE("data: integers whose sums stay exact") {
  for (const std::int64_t longest : {1LL, 1000LL, 262143LL, 262144LL, 1000000LL, 4000000LL}) {
    const GemmProblem gemm{.M = 50, .N = 50, .K = 50};
    const Arrays inputs = make_inputs(gemm_signature(gemm), Data::integer, 1, longest);
    float largest = 0;
    for (const auto& [name, array] : inputs) {
      for (const float value : array.as<float>()) {
        REQUIRE(value == std::trunc(value));
        largest = std::max(largest, std::abs(value));
      }
    }
    CAPTURE(longest);
    CHECK(largest >= 1);
    CHECK(largest <= 8);
    CHECK(static_cast<double>(longest) * largest * largest + largest < 16777216.0);
  }
  CHECK_THROWS_AS(
      make_inputs(gemm_signature({.M = 1, .N = 1, .K = 1}), Data::integer, 1, 1LL << 24), BadInput);
}

TEST_CASE("data: reals on both sides of zero, no two arrays alike") {
  const GemmProblem gemm{.M = 40, .N = 40, .K = 40};
  const Arrays inputs = make_inputs(gemm_signature(gemm), Data::real, 1, 1);
  int negative = 0, positive = 0;
  for (const float value : inputs.at("a").as<float>()) {
    REQUIRE(value >= -1.0f);
    REQUIRE(value < 1.0f);
    (value < 0 ? negative : positive)++;
  }
  CHECK(negative > 600);
  CHECK(positive > 600);
  CHECK(!std::equal(inputs.at("a").as<float>().begin(), inputs.at("a").as<float>().end(),
                    inputs.at("b").as<float>().begin()));
}

TEST_CASE("data: the same seed gives the same numbers on every machine") {
  const Conv2dProblem conv = validated(Conv2dProblem{.H = 1, .W = 8});
  const auto first = [&](Data data, std::uint64_t seed) {
    const Arrays inputs = make_inputs(conv2d_signature(conv), data, seed, 1);
    const auto x = inputs.at("x").as<float>();
    return std::vector<float>(x.begin(), x.end());
  };
  CHECK(first(Data::integer, 1) == first(Data::integer, 1));
  CHECK(first(Data::integer, 1) != first(Data::integer, 2));
  CHECK(first(Data::integer, 1) == std::vector<float>{-1, -1, -6, -2, 2, -5, -4, -5});
  CHECK(first(Data::real, 1) != first(Data::real, 2));
}

TEST_CASE("data: one array does not depend on another's size") {
  const auto x = [](int filters) {
    const Conv2dProblem conv = validated(Conv2dProblem{.C = 2, .H = 5, .W = 5, .K = filters});
    const Arrays inputs = make_inputs(conv2d_signature(conv), Data::integer, 1, 9);
    const auto values = inputs.at("x").as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  CHECK(x(1) == x(77));
}

TEST_CASE("reference: a convolution by hand, with padding, stride and dilation") {
  // x = 1 2 3 4 5, w = 1 10, dilation 2, padding 1 before and 2 after, stride 2: columns -1, 1,
  // 3, 5.
  const Conv2dProblem conv = validated(Conv2dProblem{
      .W = 5, .S = 2, .pad = {0, 0, 1, 2}, .stride = {1, 2}, .dilation = {1, 2}, .bias = true});
  REQUIRE(conv.Q == 3);
  const Arrays inputs = {{"x", array_of({1, 2, 3, 4, 5}, {1, 1, 1, 5})},
                         {"weights", array_of({1, 10}, {1, 1, 1, 2})},
                         {"bias", array_of({100}, {1})}};
  const std::vector<Expected> y = reference("conv2d", conv, inputs);
  CHECK(y[0].values == std::vector<double>{100 + 0 + 20, 100 + 2 + 40, 100 + 4 + 0});
  CHECK(y[0].magnitude == std::vector<double>{120, 142, 104});
  CHECK(y[0].longest_sum == 3);
}

TEST_CASE("reference: both gradients of the same convolution by hand") {
  const Conv2dProblem conv = validated(
      Conv2dProblem{.W = 5, .S = 2, .pad = {0, 0, 1, 2}, .stride = {1, 2}, .dilation = {1, 2}});
  const Array dy = array_of({1, 2, 3}, {1, 1, 1, 3});
  const auto dx =
      reference("conv2d_dgrad", conv, {{"dy", dy}, {"weights", array_of({1, 10}, {1, 1, 1, 2})}});
  // Window q reads columns 2q - 1 and 2q + 1: column 1 is read by q = 0 (tap 1) and q = 1 (tap 0).
  CHECK(dx[0].values == std::vector<double>{0, 10 * 1 + 1 * 2, 0, 10 * 2 + 1 * 3, 0});
  const auto dw =
      reference("conv2d_wgrad", conv, {{"dy", dy}, {"x", array_of({1, 2, 3, 4, 5}, {1, 1, 1, 5})}});
  CHECK(dw[0].values == std::vector<double>{2 * 2 + 3 * 4, 1 * 2 + 2 * 4});
  CHECK(dw[1].values == std::vector<double>{6});
}

TEST_CASE("reference: im2col and col2im by hand, with each request") {
  Im2colProblem p = validated(Im2colProblem{.rank = 1, .width = {4, 2, 1, 0, 2, 1}});
  REQUIRE(p.columns() == 2);
  const Array x = array_of({1, 2, 3, 4}, {1, 1, 4});
  CHECK(reference("im2col", p, {{"x", x}})[0].values == std::vector<double>{0, 2, 1, 3});
  const Array col = array_of({1, 2, 3, 4}, {1, 2, 2});
  CHECK(reference("col2im", p, {{"col", col}})[0].values == std::vector<double>{3, 2, 4, 0});
  p.request = Request::add;
  const Array into = array_of({10, 20, 30, 40}, {1, 2, 2});
  CHECK(reference("im2col", p, {{"x", x}, {"into", into}})[0].values ==
        std::vector<double>{10, 22, 31, 43});
  const Array into_x = array_of({10, 20, 30, 40}, {1, 1, 4});
  CHECK(reference("col2im", p, {{"col", col}, {"into", into_x}})[0].values ==
        std::vector<double>{13, 22, 34, 40});
  p.request = Request::none;
  CHECK(reference("im2col", p, {{"x", x}, {"into", into}})[0].values ==
        std::vector<double>{10, 20, 30, 40});
  CHECK(reference("col2im", p, {{"col", col}, {"into", into_x}})[0].values ==
        std::vector<double>{10, 20, 30, 40});
}

TEST_CASE("reference: a matrix product by hand") {
  const GemmProblem p = validated(GemmProblem{.M = 2, .N = 2, .K = 3});
  const auto c = reference(
      "gemm", p,
      {{"a", array_of({1, 2, 3, 4, 5, 6}, {2, 3})}, {"b", array_of({1, 0, -1, 1, 2, 2}, {3, 2})}});
  CHECK(c[0].values == std::vector<double>{5, 8, 11, 17});
  CHECK(c[0].magnitude == std::vector<double>{9, 8, 21, 17});
}

TEST_CASE("an unknown ladder has no reference") {
  CHECK_THROWS_AS(reference("conv4d", GemmProblem{}, {}), std::logic_error);
}

TEST_SUITE_END();

}  // namespace convladder::testing
