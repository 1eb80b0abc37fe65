/// @file best_rung_test.cpp
/// @brief Which rung is taken on the CPU, and how long rungs are expected to take.
#include "ladders/best_rung.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/problem.hpp"
#include "ladders/ladders.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {
namespace {

bool saves_multiplications(const Rung& rung) {
  return rung.winograd.m != 0 || rung.whole_images || rung.float_spectra;
}

std::string best(const std::string& name, const Problem& problem) {
  return ranked_rungs(ladder(name), problem).front().rung->name;
}

Conv2dProblem layer(int N, int C, int size, int K, int taps, int groups = 1) {
  const int pad = taps / 2;
  return validated(Conv2dProblem{.N = N,
                                 .C = C,
                                 .H = size,
                                 .W = size,
                                 .K = K,
                                 .R = taps,
                                 .S = taps,
                                 .pad = {pad, pad, pad, pad},
                                 .groups = groups});
}

}  // namespace

TEST_SUITE_BEGIN("best rung");

TEST_CASE("every C++ rung has an expected time, and no CUDA rung") {
  for (const Ladder& ladder : ladders()) {
    const Problem problem = problems_of(ladder.name).front().problem;
    for (const Rung& rung : ladder.rungs) {
      CAPTURE(rung.name);
      CHECK(expected_seconds(ladder, rung, problem).has_value() == !rung.is_cuda());
    }
  }
}

TEST_CASE("the ranking: all rungs that take the problem, by their times, transforms last") {
  for (const Ladder& ladder : ladders()) {
    CAPTURE(ladder.name);
    auto problems = problems_of(ladder.name);
    const auto random = random_problems(ladder.name, 50, 3);
    problems.insert(problems.end(), random.begin(), random.end());
    for (const TestProblem& test : problems) {
      CAPTURE(test.name);
      const Problem& problem = test.problem;
      CHECK(expected_seconds_of_reference(ladder, problem) >= 0);
      for (const bool allow_transforms : {false, true}) {
        const auto ranking = ranked_rungs(ladder, problem, allow_transforms);
        std::set<const Rung*> ranked;
        for (std::size_t i = 0; i < ranking.size(); ++i) {
          const auto& [rung, seconds] = ranking[i];
          CHECK(ranked.insert(rung).second);
          REQUIRE(seconds.has_value());
          CHECK((std::isfinite(*seconds) && *seconds > 0));
          if (i == 0) continue;
          const auto& before = ranking[i - 1];
          const bool last = !allow_transforms && saves_multiplications(*rung);
          const bool last_before = !allow_transforms && saves_multiplications(*before.rung);
          CHECK(last_before <= last);
          if (last == last_before) CHECK(*before.seconds <= *seconds);
        }
        for (const Rung& rung : ladder.rungs) {
          const auto& code = rung.code_at(Where::cpu);
          CHECK(ranked.contains(&rung) == (code && !code->supports(problem)));
        }
      }
    }
  }
}

TEST_CASE("before Hopper, the highest rung for a weight gradient in half precision is mma.sync's") {
  Conv2dProblem conv = layer(8, 64, 56, 64, 3);
  conv.layout = Layout::nhwc;
  conv.dtype = DType::bf16;
  // Rungs that were not measured are taken from the highest one down: python/convladder/_run.py.
  const Ladder& wgrad = ladder("conv2d_wgrad");
  const auto highest =
      std::find_if(wgrad.rungs.rbegin(), wgrad.rungs.rend(), [&](const Rung& rung) {
        const auto& code = rung.code_at(Where::emulated);
        return code && rung.needs != "sm_90a" && !code->supports(conv);
      });
  REQUIRE(highest != wgrad.rungs.rend());
  CHECK(highest->name == "cuda_optimized/conv2d_wgrad/implicit_gemm/mma");
}

TEST_CASE("the best rung of a layer, of a product, of a transform") {
  CHECK(best("conv2d", layer(8, 64, 56, 64, 3)) == "cpu_reference/conv2d/im2col_gemm_blocked");
  CHECK(best("conv2d", layer(1, 512, 7, 512, 3)) == "cpu_reference/conv2d/im2col_gemm_blocked");
  CHECK(best("conv2d", layer(8, 256, 56, 64, 1)) == "cpu_reference/conv2d/im2col_gemm_blocked");
  for (const int N : {1, 8}) {
    CHECK(best("conv2d", layer(N, 64, 112, 64, 3, 64)) ==
          "cpu_reference/conv2d/im2col_gemm_blocked");
    CHECK(best("conv2d", layer(N, 512, 14, 512, 5, 512)) ==
          "cpu_reference/conv2d/im2col_gemm_blocked");
  }
  // Depthwise, of more taps than a tile has.
  CHECK(best("conv2d", layer(1, 8, 40, 8, 23, 8)) == "cpu_reference/conv2d/reordered");
  Conv2dProblem half = layer(2, 32, 56, 32, 3);
  half.dtype = DType::f16;
  CHECK(best("conv2d", half) == "cpu_reference/conv2d/im2col_gemm_blocked");
  CHECK(best("conv2d_dgrad", layer(2, 32, 56, 32, 3)) == "cpu_reference/conv2d_dgrad/gemm_col2im");
  CHECK(best("conv2d_wgrad", layer(2, 32, 56, 32, 3)) == "cpu_reference/conv2d_wgrad/im2col_gemm");
  for (const DType dtype : {DType::f32, DType::f16, DType::f8}) {
    const GemmProblem product =
        validated(GemmProblem{.M = 512, .N = 512, .K = 512, .dtype = dtype});
    CHECK(best("gemm", product) == "cpu_reference/gemm/blocked");
  }
  // One column: tiles of 16 would be padding.
  CHECK(best("gemm", validated(GemmProblem{.M = 1 << 20, .N = 1, .K = 1})) ==
        "cpu_reference/gemm/eigen");
  CHECK(best("fft", validated(FftProblem{.N = 1, .L = 4096})) == "cpu_reference/fft/stockham");
  CHECK(best("fft", validated(FftProblem{.N = 1, .L = 8191})) == "cpu_reference/fft/bluestein");
  CHECK(best("fft", validated(FftProblem{.N = 9, .L = 4096, .input = FftInput::real})) ==
        "cpu_reference/fft/real_pairs");
  CHECK(best("fft", validated(FftProblem{.N = 2, .H = 60, .L = 100})) ==
        "cpu_reference/fft/bluestein");
  CHECK(best("fft", validated(FftProblem{.N = 64, .L = 3})) == "cpu_reference/fft/dft");
}

TEST_CASE("large problems are expected to take long, also by the reference") {
  const auto seconds = [](const std::string& name, const std::string& rung,
                          const Problem& problem) {
    const Ladder& of = ladder(name);
    const auto found =
        std::ranges::find(of.rungs, "cpu_reference/" + name + "/" + rung, &Rung::name);
    return expected_seconds(of, *found, problem).value();
  };
  const Problem prime = validated(FftProblem{.N = 1, .L = 1'000'003});
  CHECK(seconds("fft", "dft", prime) > 1000);
  CHECK(seconds("fft", "bluestein", prime) < 5);
  CHECK(expected_seconds_of_reference(ladder("fft"), prime) > 1000);
  CHECK(expected_seconds_of_reference(ladder("fft"), validated(FftProblem{.N = 1, .L = 1 << 20})) <
        5);
  const Problem network = layer(64, 512, 56, 512, 3);
  CHECK(seconds("conv2d", "direct", network) > 100);
  CHECK(seconds("conv2d", "im2col_gemm_blocked", network) < 100);
  // Extents whose product overflows every integer type.
  const Problem vast = GemmProblem{.M = 2'000'000'000, .N = 2'000'000'000, .K = 2'000'000'000};
  CHECK(seconds("gemm", "eigen", vast) > 1e15);
}

TEST_SUITE_END();

}  // namespace convladder::testing
