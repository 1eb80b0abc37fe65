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
  for (const int length : {64, 256, 1024, 4096}) {
    all.push_back(
        {"fft", text("real-lines-", length), "many real lines: half of the bytes",
         validated(FftProblem{.N = kPoints / length, .L = length, .input = FftInput::real})});
  }
  // By the definition, larger planes take minutes.
  for (const int side : {32, 64, 256}) {
    all.push_back({"fft", text("planes-", side),
                   side <= 64 ? "planes that fit into shared memory" : "planes that do not",
                   validated(FftProblem{.N = kPoints / (side * side), .H = side, .L = side})});
  }
  return all;
}

}  // namespace convladder::benchmarks
