/// @file tile_map_model.hpp
/// @brief What a tile map means for memory traffic, counted on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "core/gemm_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder {

/// The three products that training a convolution takes.
enum class ConvolutionPass {
  forward,  ///< y from x and the weights
  dgrad,    ///< dx from dy and the weights
  wgrad     ///< dw from x and dy
};

/// `batch` products c[M][N] = a[M][K] * b[K][N] of the same size.
struct GemmExtents {
  std::int64_t M = 0, N = 0, K = 0;  ///< Of each product.
  std::int64_t batch = 1;            ///< Number of products.
};

/// The product itself.
GemmExtents gemm_extents(const GemmProblem& gemm);

/// A convolution as products, one for each group (implicit GEMM; for one group as in CUTLASS):
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
  int m, n, k;  ///< Elements down, across, and in a step along k.
};

/// The products' tiles as a problem for a map: tiles down and across, k-steps, and the batch.
/// `splits` is for split_k.
/// @throws BadInput if there is nothing to compute, or more tiles than the map takes.
TileMapProblem tiles_of(const GemmExtents& products, const TileSize& tile, TileMap map,
                        int splits = 1);

/// Units that run at the same time, and what they read.
struct Wave {
  std::int64_t units = 0;     ///< Units of work, at most one a block.
  std::int64_t a_panels = 0;  ///< Distinct panels of a: (batch, tile m, k-steps).
  std::int64_t b_panels = 0;  ///< Distinct panels of b: (batch, tile n, k-steps).
  std::int64_t bytes = 0;     ///< Predicted traffic from DRAM to the L2 cache for a and b.
};

/// Simulates a run of a tiled product. `units` are rows as the tile_map ladder gives them, sorted
/// by block.
///
/// The model: blocks start in the order of their index, and `concurrent_blocks` of those that have
/// work run at the same time, in step. What several of them read comes from DRAM once (they walk
/// along k together, so that little of it must be in the L2 cache at an instant); nothing is left
/// of it for the next wave. Where blocks have several units (stream_k), all blocks' first units are
/// a wave, all second ones the next, and so on. Tiles at the edges count as whole ones; writing c
/// is not counted.
///
/// @param element_bytes the size of an element of a and b
std::vector<Wave> simulate_waves(std::span<const std::int32_t> units, int concurrent_blocks,
                                 const TileSize& tile, int element_bytes = 4);

}  // namespace convladder
