/// @file core_test.cpp
/// @brief Sizes, messages and arrays: what everything else stands on.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "core/arithmetic.hpp"
#include "core/complex.hpp"
#include "core/conv2d_transpose.hpp"
#include "core/fast_division.hpp"
#include "core/float8.hpp"
#include "core/output_extent.hpp"
#include "core/parallel.hpp"
#include "core/problem.hpp"
#include "core/rung.hpp"
#include "core/same_padding.hpp"
#include "ladders/ladders.hpp"
#include "tests/problems.hpp"
#include "tests/refusal.hpp"

namespace convladder::testing {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

template <class P>
struct Refused {
  P problem;
  std::string message;
};

template <class P>
void check_refusals(const std::vector<Refused<P>>& cases) {
  for (const auto& [problem, message] : cases) {
    const std::string found = refusal(problem);
    CAPTURE(message);
    CAPTURE(found);
    CHECK(found.find(message) != std::string::npos);
    CHECK(found.find('\n') == std::string::npos);  // one line
  }
}

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("each fp16 and bf16 value converts to the float that the compiler's conversion gives") {
  int other = 0;
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(half.bits));
    other += std::bit_cast<std::uint32_t>(to_float(half)) != std::bit_cast<std::uint32_t>(expected);
  }
  CHECK(other == 0);
}

TEST_CASE("floor_div rounds down, also below zero") {
  for (int a = -50; a <= 50; ++a) {
    for (int b = 1; b <= 9; ++b) {
      CAPTURE(a);
      CAPTURE(b);
      CHECK(floor_div(a, b) == static_cast<std::int64_t>(std::floor(double(a) / b)));
      if (a >= 0) CHECK(ceil_div(a, b) == static_cast<int>(std::ceil(double(a) / b)));
    }
  }
  CHECK(floor_div(std::numeric_limits<std::int64_t>::min(), 3) == -3074457345618258603);
  CHECK(ceil_div(std::numeric_limits<std::int64_t>::max(), std::int64_t{2}) == 4611686018427387904);
}

TEST_CASE("output_extent counts the windows that fit") {
  for (int size = 1; size <= 12; ++size) {
    for (int taps = 1; taps <= 5; ++taps) {
      for (int stride = 1; stride <= 4; ++stride) {
        for (int dilation = 1; dilation <= 3; ++dilation) {
          for (int before = 0; before <= 3; ++before) {
            const int after = (before * 2) % 3;
            int fitting = 0;
            while (fitting * stride + (taps - 1) * dilation < size + before + after) ++fitting;
            const auto extent = output_extent(size, before, after, taps, stride, dilation);
            CAPTURE(size);
            CAPTURE(taps);
            if (fitting > 0) {
              CHECK(extent == fitting);
            } else {
              CHECK(extent < 1);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("checked_product and element_count refuse what 64 bits cannot hold") {
  CHECK(checked_product({3, 5, 7}, "x") == 105);
  CHECK(checked_product({}, "x") == 1);
  CHECK(checked_product({std::int64_t{1} << 31, (std::int64_t{1} << 31) - 1}, "x") ==
        4611686016279904256);
  CHECK_THROWS_AS(checked_product({std::int64_t{1} << 32, std::int64_t{1} << 31}, "rows"),
                  BadInput);
  CHECK(element_count({}) == 1);
  CHECK(element_count({0, 5}) == 0);
  CHECK(element_count({70000, 70000}) == 4900000000);
  CHECK_THROWS_AS(element_count({kMaxInt, kMaxInt, 3}), BadInput);
  try {
    element_count({kMaxInt, kMaxInt, 3});
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()).find("2147483647 x 2147483647 x 3") != std::string::npos);
  }
}

TEST_CASE("Index4 counts in 64 bits") {
  CHECK(Index4{2, 3, 5}(1, 1, 2, 4) == ((1 * 2 + 1) * 3 + 2) * 5 + 4);
  CHECK(Index4{70000, 70000, 4}(9, 69999, 69999, 3) == 10LL * 70000 * 70000 * 4 - 1);
}

TEST_CASE("Array refuses another element type") {
  Array array(DType::i32, {2, 3});
  CHECK(array.size() == 6);
  CHECK(array.size_bytes() == 24);
  CHECK(array.as<std::int32_t>()[5] == 0);
  CHECK_THROWS_AS(array.as<float>(), std::logic_error);
  CHECK(Array(DType::f32, {0, 4}).size() == 0);
}

TEST_CASE("Arguments finds arrays by name and type") {
  float x = 1;
  std::int32_t y = 2;
  int created = 0;
  const Arguments arguments({{"x", DType::f32, &x}}, {{"y", DType::i32, &y}},
                            {.workspace = &created},
                            [&](const std::string&, DType, const Shape& shape) {
                              created = static_cast<int>(shape[0]);
                              return static_cast<void*>(&y);
                            });
  CHECK(arguments.in<float>("x") == &x);
  CHECK(arguments.out<std::int32_t>("y") == &y);
  CHECK(arguments.in_or_null<float>("bias") == nullptr);
  CHECK(arguments.context().workspace_as<int>() == &created);
  CHECK_THROWS_AS(arguments.in<float>("w"), std::logic_error);
  CHECK_THROWS_AS(arguments.in<std::int32_t>("x"), std::logic_error);
  CHECK_THROWS_AS(arguments.out<float>("x"), std::logic_error);
}

TEST_CASE("fp8 values follow from their bits") {
  for (int bits = 0; bits < 256; ++bits) {
    CAPTURE(bits);
    const float value = to_float(Float8{static_cast<std::uint8_t>(bits)});
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    if (exponent == 15 && fraction == 7) {
      CHECK(std::isnan(value));
      CHECK(std::signbit(value) == (bits >= 128));
      continue;
    }
    const float magnitude = exponent == 0
                                ? std::ldexp(static_cast<float>(fraction), -9)
                                : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    CHECK(std::bit_cast<std::uint32_t>(value) ==
          std::bit_cast<std::uint32_t>(bits >= 128 ? -magnitude : magnitude));
    CHECK(rounded_to<Float8>(value).bits == bits);
  }
}

TEST_CASE("a float is rounded to the nearest fp8 value, ties to even") {
  const auto number = [](int bits) { return to_float(Float8{static_cast<std::uint8_t>(bits)}); };
  for (int bits = 0; bits < 0x7e; ++bits) {
    CAPTURE(bits);
    const float middle = (number(bits) + number(bits + 1)) / 2;
    CHECK(rounded_to<Float8>(std::nextafter(middle, 0.0f)).bits == bits);
    CHECK(rounded_to<Float8>(middle).bits == bits + bits % 2);
    CHECK(rounded_to<Float8>(std::nextafter(middle, 1000.0f)).bits == bits + 1);
    CHECK(rounded_to<Float8>(-middle).bits == 0x80 + bits + bits % 2);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float beyond : {448.0f, 449.0f, 464.0f, 1e30f, kInfinity}) {
    CHECK(rounded_to<Float8>(beyond).bits == 0x7e);
    CHECK(rounded_to<Float8>(-beyond).bits == 0xfe);
  }
  CHECK(rounded_to<Float8>(std::numeric_limits<float>::quiet_NaN()).bits == 0x7f);
  CHECK(rounded_to<Float8>(std::numeric_limits<float>::denorm_min()).bits == 0);
}

TEST_CASE("text tells any two floats apart") {
  CHECK(text(0.1f) != text(std::nextafter(0.1f, 1.0f)));
  CHECK(text("a", 1, "b") == "a1b");
  CHECK(joined(std::array{1, 2, 3}, "x") == "1x2x3");
  CHECK(joined(std::vector<int>(), "x").empty());
}

TEST_CASE("parallel_for visits each index once") {
  for (const double nanoseconds : {0.0, 1e9}) {  // nothing is known; threads start at once
    for (const int count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      const auto visit_one = [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; };
      parallel_for(count, visit_one, nanoseconds);
      for (const auto& visit : visits) CHECK(visit == 1);
      CHECK(visits.size() == static_cast<std::size_t>(count));
    }
  }
}

TEST_CASE("work is shared with helpers: by several threads at once, and in a child process") {
  const auto sum = [](std::int64_t count) {
    std::atomic<std::int64_t> total = 0;
    parallel_for(
        count, [&](std::int64_t i) { total += i; }, 1e9);
    return total == count * (count - 1) / 2;
  };
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        for (int run = 0; run < 200; ++run) right += sum(100);
      });
    }
  }
  CHECK(right == 800);
  std::atomic<int> calls = 0;
  work_with_helpers(5, [&] { ++calls; });
  CHECK(calls >= 1);
  CHECK(calls <= 6);
  work_with_helpers(0, [&] { ++calls; });
  // A child has none of the pool's threads.
  const pid_t child = fork();
  if (child == 0) _exit(sum(1000) ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("validated(Conv2dProblem) names the parameter, its value and the rule") {
  using P = Conv2dProblem;
  const P fits{.C = 2, .H = 8, .W = 9, .K = 4, .R = 3, .S = 3};
  CHECK(refusal(fits).empty());
  CHECK(validated(fits).P == 6);
  CHECK(validated(fits).Q == 7);
  std::vector<Refused<P>> cases;
  const auto refuse = [&](const auto& change, const std::string& message) {
    P problem = fits;
    change(problem);
    cases.push_back({problem, message});
  };
  refuse([](P& p) { p.N = -1; }, "n = -1: must be at least 0");
  refuse([](P& p) { p.C = 0; }, "c = 0: must be at least 1");
  refuse([](P& p) { p.H = 0; }, "h = 0: must be at least 1");
  refuse([](P& p) { p.W = -5; }, "w = -5: must be at least 1");
  refuse([](P& p) { p.K = 0; }, "k = 0: must be at least 1");
  refuse([](P& p) { p.R = 0; }, "r = 0: must be at least 1");
  refuse([](P& p) { p.S = 0; }, "s = 0: must be at least 1");
  refuse([](P& p) { p.stride.h = 0; }, "stride = 0: must be at least 1");
  refuse([](P& p) { p.stride.w = -1; }, "stride = -1: must be at least 1");
  refuse([](P& p) { p.dilation.h = 0; }, "dilation = 0: must be at least 1");
  refuse([](P& p) { p.dilation.w = 0; }, "dilation = 0: must be at least 1");
  refuse([](P& p) { p.groups = 0; }, "groups = 0: must be at least 1");
  refuse([](P& p) { p.pad.top = -1; }, "pad = -1: must be at least 0");
  refuse([](P& p) { p.pad.bottom = -2; }, "pad = -2: must be at least 0");
  refuse([](P& p) { p.pad.left = -3; }, "pad = -3: must be at least 0");
  refuse([](P& p) { p.pad.right = -4; }, "pad = -4: must be at least 0");
  refuse([](P& p) { p.groups = 3; }, "groups = 3: must divide c = 2");
  refuse([](P& p) { p.groups = 2, p.K = 5; }, "groups = 2: must divide k = 5");
  refuse([](P& p) { p.dtype = DType::i32; }, "dtype = int32: must be fp32, tf32, fp16 or bf16");
  refuse([](P& p) { p.R = 9; }, "p = 0: the filter does not fit: h 8 + padding 0");
  refuse([](P& p) { p.S = 10; }, "q = 0: the filter does not fit: w 9 + padding 0");
  refuse([](P& p) { p.R = 5, p.dilation.h = 2, p.pad.top = 0; }, "extent 9 (5 taps, dilation 2)");
  refuse([](P& p) { p.H = kMaxInt, p.pad.top = 1; }, "must be less than 2^31");
  refuse([](P& p) { p.W = kMaxInt, p.pad.left = kMaxInt, p.pad.right = kMaxInt; },
         "must be less than 2^31");
  refuse([](P& p) { p.N = p.C = p.H = p.W = p.K = 1 << 16, p.groups = 1; },
         "has more than 2^63 - 1 elements");
  check_refusals(cases);
}

TEST_CASE("18 and 19 of the thirty edge shapes are refused") {
  for (const RejectedProblem& rejected : rejected_problems()) {
    CAPTURE(rejected.name);
    CHECK(refusal(rejected.problem).find(rejected.message) != std::string::npos);
  }
  CHECK(rejected_problems().size() == 2);
}

TEST_CASE("same padding gives size / stride outputs, with the odd zero at the end") {
  for (int size = 1; size <= 9; ++size) {
    for (int taps = 1; taps <= 5; ++taps) {
      for (int stride = 1; stride <= 4; ++stride) {
        for (int dilation = 1; dilation <= 3; ++dilation) {
          Conv2dProblem p{.H = size, .W = 12, .R = taps, .S = 4, .stride = {stride, 5}};
          p.dilation.h = dilation;
          p.pad = same_padding(p);
          CAPTURE(describe(p));
          CHECK(validated(p).P == (size + stride - 1) / stride);
          CHECK((p.pad.bottom == p.pad.top || p.pad.bottom == p.pad.top + 1));
          // No zero more than the last window reads.
          if (p.pad.bottom > 0)
            CHECK((p.H + p.pad.top + p.pad.bottom - ((taps - 1) * dilation + 1)) % stride == 0);
          CHECK(p.pad.left == 1);  // 3 windows read 2 * 5 + 4 columns
          CHECK(p.pad.right == 1);
          const Im2colProblem line = with_same_padding(
              {.rank = 1,
               .width = {.size = size, .kernel = taps, .stride = stride, .dilation = dilation}});
          CHECK(line.width.pad_before == p.pad.top);
          CHECK(line.width.pad_after == p.pad.bottom);
        }
      }
    }
  }
  // Sizes that validated() refuses are left to it.
  CHECK(same_padding({.H = 0}).top == 0);
  CHECK(same_padding({.stride = {0, 1}}).top == 0);
  CHECK_THROWS_AS(same_padding({.R = 1 << 30, .dilation = {4, 1}}), BadInput);
}

TEST_CASE("a transposed convolution is the gradient of a convolution, in its own terms") {
  const Conv2dTranspose doubled{.N = 2,
                                .C = 8,
                                .H = 5,
                                .W = 6,
                                .K = 4,
                                .R = 3,
                                .S = 3,
                                .pad = {1, 1, 1, 1},
                                .stride = {2, 2},
                                .out_padding = {1, 1},
                                .groups = 2,
                                .bias = true};
  const Conv2dProblem gradient = gradient_of(doubled);
  CHECK(gradient.C == 4);
  CHECK(gradient.K == 8);
  CHECK(gradient.H == 10);
  CHECK(gradient.W == 12);
  CHECK(gradient.P == 5);
  CHECK(gradient.Q == 6);
  CHECK(describe_transpose(gradient) ==
        "2x8x5x6 to 2x4x10x12, filters 3x3, pad 1, stride 2, groups 2, bias");
  const Signature arrays = conv2d_transpose_signature(gradient);
  CHECK(arrays.inputs[0].shape == Shape{2, 8, 5, 6});
  CHECK(arrays.inputs[1].shape == Shape{8, 2, 3, 3});
  CHECK(arrays.inputs[2].shape == Shape{4});
  CHECK(arrays.outputs[0].shape == Shape{2, 4, 10, 12});
  // For every size there are as many windows as pixels of x, also with out_padding beyond the
  // stride.
  for (int size = 1; size <= 4; ++size) {
    for (int taps = 1; taps <= 4; ++taps) {
      for (int stride = 1; stride <= 3; ++stride) {
        for (int dilation = 1; dilation <= 3; ++dilation) {
          for (int more = 0; more < std::max(stride, dilation); ++more) {
            const Conv2dTranspose t{.H = size,
                                    .R = taps,
                                    .pad = {1, 2, 0, 0},
                                    .stride = {stride, 1},
                                    .dilation = {dilation, 1},
                                    .out_padding = {more, 0}};
            const int extent = (size - 1) * stride - 3 + dilation * (taps - 1) + 1 + more;
            if (extent < 1) continue;
            const Conv2dProblem p = gradient_of(t);
            CHECK(p.H == extent);
            CHECK(p.P == size);
          }
          const Conv2dProblem same = gradient_of({.H = size,
                                                  .R = taps,
                                                  .same = true,
                                                  .stride = {stride, 1},
                                                  .dilation = {dilation, 1}});
          CHECK(same.H == size * stride);
          CHECK(same.P == size);
          CHECK(same.pad.top == same_padding(same).top);
          CHECK(same.pad.bottom == same_padding(same).bottom);
        }
      }
    }
  }
  const auto refused = [](const Conv2dTranspose& t) {
    try {
      gradient_of(t);
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused({.C = 0}).starts_with("c = 0: must be at least 1"));
  CHECK(refused({.C = 3, .K = 4, .groups = 3}).starts_with("groups = 3: must divide k = 4"));
  CHECK(refused({.H = 2147483647, .stride = {2, 1}})
            .starts_with("h = 2147483647: the output extent"));
  CHECK(refused({.pad = {1, 0, 0, 0}}).starts_with("pad = 1,0: leaves no outputs along h"));
  CHECK(refused({.pad = {-1, 0, 0, 0}}).starts_with("pad = -1"));
  CHECK(refused({.dilation = {2, 1}, .out_padding = {1, 0}}).starts_with("out-padding = 1"));
}

TEST_CASE("describe says everything that is not a default") {
  Conv2dProblem p = validated({.N = 2, .C = 6, .H = 20, .W = 30, .K = 4, .R = 3, .S = 5});
  CHECK(describe(p) == "2x6x20x30, 4 filters 3x5");
  p.pad = {1, 1, 2, 2};
  p.stride = {2, 2};
  p.dilation = {1, 3};
  p.groups = 2;
  p.bias = true;
  CHECK(describe(validated(p)) ==
        "2x6x20x30, 4 filters 3x5, pad 1,2, stride 2, dilation 1,3, groups 2, bias");
  p.activation = Activation::relu;
  p.layout = Layout::nhwc;
  CHECK(describe(p).ends_with("groups 2, bias, relu, nhwc"));
  p.pad = {0, 1, 2, 0};
  CHECK(describe(validated(p)).find("pad 0,1,2,0") != std::string::npos);
  CHECK(describe(validated(Conv2dProblem{})) == "1x1x1x1, 1 filter 1x1");
  CHECK(describe(validated(Conv2dProblem{.dtype = DType::bf16})) == "1x1x1x1, 1 filter 1x1, bf16");
  CHECK(describe(validated(GemmProblem{.M = 3, .N = 4, .K = 5})) == "m 3, n 4, k 5");
  CHECK(describe(validated(GemmProblem{
            .M = 3, .N = 4, .K = 5, .dtype = DType::f8, .scale_a = 0.1f, .scale_b = 2})) ==
        "m 3, n 4, k 5, fp8, scale-a 0.100000001, scale-b 2");
  CHECK(describe(validated(GemmProblem{.M = 3, .N = 4, .K = 5, .dtype = DType::bf16})) ==
        "m 3, n 4, k 5, bf16");
  CHECK(describe(validated(
            GemmProblem{.M = 3, .N = 4, .K = 5, .bias = true, .activation = Activation::relu})) ==
        "m 3, n 4, k 5, bias, relu");
}

TEST_CASE("activated: relu keeps what is not below zero, and NaN") {
  CHECK(activated(Activation::none, -2.0f) == -2.0f);
  CHECK(activated(Activation::relu, -2.0f) == 0.0f);
  CHECK(activated(Activation::relu, 3.0f) == 3.0f);
  CHECK(activated(Activation::relu, -0.0f) == 0.0f);
  CHECK(std::isnan(activated(Activation::relu, std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("validated(Im2colProblem) names the axis") {
  using P = Im2colProblem;
  const P fits{.C = 2, .rank = 3, .depth = {4, 2}, .height = {5, 2}, .width = {6, 3, 0, 0, 2, 1}};
  CHECK(refusal(fits).empty());
  CHECK(validated(fits).depth.out == 3);
  CHECK(validated(fits).height.out == 4);
  CHECK(validated(fits).width.out == 2);
  CHECK(validated(fits).rows() == 2 * 2 * 2 * 3);
  CHECK(validated(fits).columns() == 3 * 4 * 2);
  std::vector<Refused<P>> cases;
  const auto refuse = [&](const auto& change, const std::string& message) {
    P problem = fits;
    change(problem);
    cases.push_back({problem, message});
  };
  refuse([](P& p) { p.N = -1; }, "n = -1: must be at least 0");
  refuse([](P& p) { p.C = 0; }, "c = 0: must be at least 1");
  refuse([](P& p) { p.rank = 0; }, "rank = 0: must be 1, 2 or 3");
  refuse([](P& p) { p.rank = 4; }, "rank = 4: must be 1, 2 or 3");
  refuse([](P& p) { p.depth.size = 0; }, "depth = 0: must be at least 1");
  refuse([](P& p) { p.height.kernel = 0; }, "kernel (height) = 0: must be at least 1");
  refuse([](P& p) { p.width.stride = 0; }, "stride (width) = 0: must be at least 1");
  refuse([](P& p) { p.width.dilation = -1; }, "dilation (width) = -1: must be at least 1");
  refuse([](P& p) { p.depth.pad_before = -1; }, "pad (depth) = -1: must be at least 0");
  refuse([](P& p) { p.depth.pad_after = -1; }, "pad (depth) = -1: must be at least 0");
  refuse([](P& p) { p.width.kernel = 7; }, "windows (width) = 0: the kernel does not fit");
  refuse([](P& p) { p.height.size = kMaxInt, p.height.pad_after = 1; }, "must be less than 2^31");
  refuse(
      [](P& p) {
        p.C = kMaxInt, p.depth = {kMaxInt, kMaxInt}, p.height = {kMaxInt, kMaxInt};
      },
      "exceeds 2^63 - 1");
  check_refusals(cases);
}

TEST_CASE("columns_of fits the convolution's outputs") {
  for (const TestProblem& test : problems_of("conv2d")) {
    const auto& conv = std::get<Conv2dProblem>(test.problem);
    const Im2colProblem columns = columns_of(conv);
    CHECK(columns.height.out == conv.P);
    CHECK(columns.width.out == conv.Q);
    CHECK(columns.rows() == std::int64_t{conv.C} * conv.R * conv.S);
  }
}

TEST_CASE("validated(GemmProblem) and validated(TileMapProblem) name the parameter") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  check_refusals<GemmProblem>(
      {{{.dtype = DType::f8, .scale_a = 0}, "scale-a = 0: must be from 2^-32"},
       {{.dtype = DType::f8, .scale_b = -1}, "scale-b = -1: must be from"},
       {{.dtype = DType::f8, .scale_b = 1e10f}, "scale-b = 1e+10: must be"},
       {{.dtype = DType::f8, .scale_a = kNan}, "scale-a = nan: must be from"},
       {{.scale_b = 2}, "scale-b = 2: only with --dtype fp8"},
       {{.M = 0}, "m = 0: must be at least 1"},
       {{.N = -1}, "n = -1: must be at least 1"},
       {{.K = -1}, "k = -1: must be at least 0"},
       {{.dtype = DType::i32}, "dtype = int32: must be fp32, tf32"}});
  using P = TileMapProblem;
  check_refusals<P>({{P{.tiles_m = 0}, "tiles_m = 0: must be at least 1"},
                     {P{.tiles_n = 0}, "tiles_n = 0: must be at least 1"},
                     {P{.k_steps = 0}, "k_steps = 0: must be at least 1"},
                     {P{.splits = 0}, "splits = 0: must be at least 1"},
                     {P{.batch = 0}, "batch = 0: must be at least 1"},
                     {P{.blocks = 0}, "blocks = 0: must be at least 1"},
                     {P{.k_steps = 4, .splits = 2}, "only the map split_k"},
                     {P{.map = TileMap::split_k, .k_steps = 2, .splits = 3},
                      "splits = 3: must be at most the number of k-steps, 2"},
                     {P{.map = TileMap::horizontal, .tiles_m = 65536}, "grid.y ends at 65535"},
                     {P{.map = TileMap::identity1, .tiles_n = 65536}, "grid.y ends at 65535"},
                     {P{.tiles_m = 1 << 16, .tiles_n = 1 << 16}, "2^31"}});
}

TEST_CASE("validated(FftProblem) names the parameter") {
  check_refusals<FftProblem>(
      {{{.N = -1}, "n = -1: must be at least 0"},
       {{.L = 0}, "length = 0: must be at least 1"},
       {{.L = 12, .ring = FftRing::mersenne}, "length = 12: over the ring mersenne"},
       {{.L = 1 << 18, .ring = FftRing::mersenne}, "at most 131072"},
       {{.H = -1, .L = 8}, "length = -1,8: must be at least 1, along each axis"},
       {{.H = 8, .L = 0}, "length = 8,0: must be at least 1"},
       {{.H = 12, .L = 8, .ring = FftRing::mersenne}, "length = 12,8: over the ring mersenne"},
       {{.N = 1 << 30, .H = 1 << 30, .L = 1 << 30}, "numbers of y = "}});
  CHECK(describe(FftProblem{.N = 3, .L = 8}) == "n 3, length 8");
  CHECK(describe(FftProblem{.N = 3, .H = 4, .L = 8, .input = FftInput::real}) ==
        "n 3, length 4 x 8, real");
  CHECK(FftProblem{.L = 9}.passes() == 4);
  CHECK(FftProblem{.H = 8, .L = 4}.passes() == 5);
  const Signature lines = fft_signature({.N = 3, .L = 8, .input = FftInput::real});
  CHECK(lines.inputs[0].shape == Shape{3, 8});
  CHECK(lines.outputs[0].shape == Shape{3, 5, 2});
  const Signature planes = fft_signature({.N = 3, .H = 4, .L = 7, .input = FftInput::real});
  CHECK(planes.inputs[0].shape == Shape{3, 4, 7});
  CHECK(planes.outputs[0].shape == Shape{3, 4, 4, 2});
  const Signature to_real = fft_signature(
      {.N = 3, .H = 4, .L = 7, .direction = FftDirection::inverse, .input = FftInput::real});
  CHECK(to_real.inputs[0].shape == planes.outputs[0].shape);
  CHECK(to_real.outputs[0].shape == planes.inputs[0].shape);
  CHECK(
      describe(FftProblem{.L = 8, .direction = FftDirection::inverse, .ring = FftRing::mersenne}) ==
      "n 1, length 8, inverse, mersenne");
}

TEST_CASE("integers modulo a prime have the rotations of complex numbers") {
  using Z = Complex<Mersenne>;
  const auto same = [](Z a, Z b) { return a.re.value == b.re.value && a.im.value == b.im.value; };
  const Z one = {{1}, {0}};
  CHECK(same(root_of_unity<Mersenne>(0, 8), one));
  CHECK(same(root_of_unity<Mersenne>(1, 8), eighth_turn(one)));
  CHECK(same(root_of_unity<Mersenne>(1, 4), quarter_turn(one)));
  CHECK(same(root_of_unity<Mersenne>(1, 2), Z{} - one));
  Z power = root_of_unity<Mersenne>(1, kLongestMersenneLine);
  for (int order = kLongestMersenneLine; order > 1; order /= 2) {
    CHECK_FALSE(same(power, one));
    power = power * power;
  }
  CHECK(same(power, one));
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto a = static_cast<std::uint32_t>(random() % Mersenne::kPrime);
    const auto b = static_cast<std::uint32_t>(random() % Mersenne::kPrime);
    CHECK((Mersenne{a} + Mersenne{b}).value == (a + b) % Mersenne::kPrime);
    CHECK((Mersenne{a} - Mersenne{b}).value == (a + Mersenne::kPrime - b) % Mersenne::kPrime);
    CHECK((Mersenne{a} * Mersenne{b}).value == std::uint64_t{a} * b % Mersenne::kPrime);
  }
  CHECK(number_from<Mersenne>(-3).value == Mersenne::kPrime - 3);
}

TEST_CASE("integers modulo a prime: a root's conjugate is its inverse, and two halves are 1") {
  using Z = Complex<Mersenne>;
  const auto same = [](Z a, Z b) { return a.re.value == b.re.value && a.im.value == b.im.value; };
  const Z one = {{1}, {0}}, step = root_of_unity<Mersenne>(1, kLongestMersenneLine);
  Z root = one;
  int wrong = 0;
  for (int k = 0; k < kLongestMersenneLine; ++k, root = root * step) {
    const Z half = halved(root);
    if (!same(root * conjugate(root), one) || !same(half + half, root)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(same(root, one));
  CHECK(same(conjugate(Z{{3}, {0}}), Z{{3}, {0}}));  // 0 has no second form
}

TEST_CASE("signatures: names, shapes and old values") {
  const Conv2dProblem conv = validated(
      {.N = 2, .C = 4, .H = 7, .W = 8, .K = 6, .R = 3, .S = 2, .groups = 2, .bias = true});
  const Signature forward = conv2d_signature(conv);
  REQUIRE(forward.inputs.size() == 3);
  CHECK(forward.inputs[1].shape == Shape{6, 2, 3, 2});
  CHECK(forward.inputs[2].shape == Shape{6});
  CHECK(forward.outputs[0].shape == Shape{2, 6, 5, 7});
  CHECK(conv2d_dgrad_signature(conv).outputs[0].shape == Shape{2, 4, 7, 8});
  CHECK(conv2d_wgrad_signature(conv).outputs[0].shape == Shape{6, 2, 3, 2});
  CHECK(conv2d_wgrad_signature(conv).outputs[1].shape == Shape{6});
  Im2colProblem columns = columns_of(conv);
  CHECK(im2col_signature(columns).outputs[0].shape == Shape{2, 24, 35});
  CHECK(im2col_signature(columns).outputs[0].initial.empty());
  columns.request = Request::add;
  CHECK(im2col_signature(columns).outputs[0].initial == "into");
  CHECK(col2im_signature(columns).inputs[1].shape == Shape{2, 4, 7, 8});
  for (const Ladder& ladder : ladders()) {
    for (const TestProblem& test : problems_of(ladder.name)) {
      const Signature signature = ladder.signature(test.problem);
      for (const auto* specs : {&signature.inputs, &signature.outputs}) {
        for (const ArraySpec& spec : *specs) CHECK(spec.axes.size() == spec.shape.size());
      }
    }
  }
}

TEST_CASE("a division by multiplication is a division") {
  int wrong = 0;
  const auto check = [&wrong](int divisor, int n) {
    const FastDivision by(divisor);
    const int quotient = by.quotient(n);
    if (quotient == n / divisor && by.remainder(n, quotient) == n % divisor) return;
    if (++wrong <= 5) MESSAGE(n, " / ", divisor, " is not ", quotient);
  };
  for (int divisor = 1; divisor <= 300; ++divisor) {
    for (int n = 0; n <= 2000; ++n) check(divisor, n);
  }
  // Mistakes show next to multiples of the divisor, and most of all at the ends of the range.
  for (int bits = 0; bits < 31; ++bits) {
    for (const int off : {-1, 0, 1}) {
      const std::int64_t divisor = (std::int64_t{1} << bits) + off;
      if (divisor < 1) continue;
      const auto d = static_cast<int>(divisor);
      for (const std::int64_t multiple :
           {std::int64_t{1}, kMaxInt / divisor / 2, kMaxInt / divisor}) {
        for (const int step : {-1, 0, 1}) {
          const std::int64_t n = multiple * divisor + step;
          if (n >= 0 && n <= kMaxInt) check(d, static_cast<int>(n));
        }
      }
      check(d, kMaxInt);
    }
  }
  check(kMaxInt, kMaxInt);
  check(kMaxInt, kMaxInt - 1);
  CHECK(wrong == 0);
}

TEST_SUITE_END();

}  // namespace convladder::testing
