/// @file tile_map_model.hpp
/// @brief A model of the memory traffic that a tile map causes, evaluated on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/gemm_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder {

/// The three GEMMs of the training of a convolution.
enum class ConvolutionPass {
  forward,  ///< y from x and the weights
  dgrad,    ///< dx from dy and the weights
  wgrad     ///< dw from x and dy
};

/// `batch` GEMMs c[M][N] = a[M][K] * b[K][N] of the same size.
struct GemmExtents {
  std::int64_t M = 0, N = 0, K = 0;  ///< Extents of each GEMM.
  std::int64_t batch = 1;            ///< Number of GEMMs.
};

/// The GEMM itself.
GemmExtents gemm_extents(const GemmProblem& gemm);

/// A convolution as GEMMs, one per group (implicit GEMM; for one group as in CUTLASS):
///
///     pass       M              N                  K
///     forward    N * P * Q      K/groups           C/groups * R * S
///     dgrad      N * H * W      C/groups           K/groups * R * S
///     wgrad      K/groups       C/groups * R * S   N * P * Q
GemmExtents gemm_extents(const Conv2dProblem& conv, ConvolutionPass pass);

/// The same in one, two or three dimensions: the convolution that reads the windows of `input` with
/// K filters. @throws BadInput unless `groups` divides the channels and K.
GemmExtents gemm_extents(const Im2colProblem& input, int K, int groups, ConvolutionPass pass);

/// A tile in elements: a k-step of a block adds m x k of a times k x n of b to m x n of c.
struct TileSize {
  int m, n, k;  ///< Rows, columns, and elements along k per step.
};

/// The tiles of the GEMMs as a problem for a map: tile rows and columns, k-steps, and the batch.
/// `splits` applies to split_k.
/// @throws BadInput if there is nothing to compute, or if there are more tiles than the map
/// supports.
TileMapProblem tiles_of(const GemmExtents& products, const TileSize& tile, TileMap map,
                        int splits = 1);

/// One wave: units that run concurrently, and the data that they read.
struct Wave {
  std::int64_t units = 0;     ///< Units of work, at most one per block.
  std::int64_t a_panels = 0;  ///< Distinct panels of a: (batch, tile m, k-steps).
  std::int64_t b_panels = 0;  ///< Distinct panels of b: (batch, tile n, k-steps).
  std::int64_t bytes = 0;     ///< Predicted traffic from DRAM to the L2 cache for a and b.
};

/// Simulates a tiled GEMM. `units` are rows of the tile_map ladder, sorted by block.
///
/// The model: blocks start in the order of their index, and `concurrent_blocks` of those with work
/// run concurrently, in lockstep. Data that several of them read come from DRAM once (all blocks
/// advance along k together, so that only a small part must be in the L2 cache at a time); nothing
/// remains for the next wave. If blocks have several units (stream_k), the first units of all
/// blocks form a wave, the second units the next one, and so on. Tiles at the border count as
/// complete; stores of c are not counted.
///
/// @param element_bytes the size of an element of a and b
std::vector<Wave> simulate_waves(std::span<const std::int32_t> units, int concurrent_blocks,
                                 const TileSize& tile, int element_bytes = 4);

}  // namespace convladder
