#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {

BenchmarkProblems fft_problems() {
  // 2^25 points, read and written: ten times what the L2 of an H200 holds.
  constexpr int kPoints = 1 << 25;
  BenchmarkProblems all;
  for (int length = 64; length <= 4096; length *= 2) {
    all.push_back({"fft", text("lines-", length), "many lines of a power of two",
                   validated(FftProblem{.N = kPoints / length, .L = length})});
  }
  return all;
}

}  // namespace convladder::benchmarks
