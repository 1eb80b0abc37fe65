#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {

BenchmarkProblems gemm_problems() {
  BenchmarkProblems all;
  for (const int size : {1024, 2048, 4096, 8192}) {
    all.push_back({"gemm", text("cube-", size), "square matrices",
                   validated(GemmProblem{.M = size, .N = size, .K = size})});
    all.back().fp8 = size >= 4096;
  }
  // B15 as a product: c is 1.6 GB, so that the order of its tiles decides how often a is read. One
  // type shows it.
  for (const TileMap map : {TileMap::row_major, TileMap::identity1, TileMap::identity8,
                            TileMap::grouped, TileMap::hilbert}) {
    all.push_back({"gemm", text("tall-", name_of(map)), "a tall product under a tile map",
                   validated(GemmProblem{.M = 256 * 56 * 56, .N = 512, .K = 64, .map = map}), "",
                   false});
  }
  return all;
}

}  // namespace convladder::benchmarks
