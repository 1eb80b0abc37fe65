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
  // 162 tiles of 128 x 256 are 1.2 rounds of an H200's 132 multiprocessors, and 324 of 128 x 128
  // 1.2 rounds of two blocks each; with short sums, and with long ones.
  for (const int depth : {2304, 8192}) {
    all.push_back({"gemm", depth == 2304 ? "cube-2304" : "deep-2304",
                   "tiles that leave most of the last round empty",
                   validated(GemmProblem{.M = 2304, .N = 2304, .K = depth})});
  }
  // A layer of a network, as large as cube-4096; and one of few features for many rows, which is
  // little more than a copy of a to c, so that each pass over c counts.
  constexpr GemmProblem kLayers[] = {{.M = 4096, .N = 4096, .K = 4096},
                                     {.M = 131072, .N = 256, .K = 256}};
  for (GemmProblem layer : kLayers) {
    layer.bias = true;
    layer.activation = Activation::relu;
    all.push_back({"gemm", layer.K == 4096 ? "cube-4096-relu" : "rows-131072-relu",
                   "with bias and ReLU: fused, or passes over c", validated(layer)});
  }
  // Sums of 16 steps of 64, in tiles for more than seven turns of the multiprocessors.
  all.push_back({"gemm", "flat-1024", "short sums: who multiplies while a tile is stored",
                 validated(GemmProblem{.M = 8192, .N = 8192, .K = 1024})});
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
