/// @file implicit_gemm_tiles.cuh
/// @brief The tiles of the implicit_gemm rungs with a pipeline, and which problem takes which.
#pragma once

#include "cuda_optimized/conv2d/implicit_gemm_pipeline.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

// Sums of a block (channels x pixels), products a step, sums of a thread, threads of a warp along
// the channels, stages, blocks an SM.
using Tile128 = PipelineTile<128, 64, 16, 8, 8, 4, 3, 4>;  ///< for many channels
using Tile64 = PipelineTile<64, 128, 16, 8, 8, 4, 3, 4>;   ///< where Tile128 would be half empty
using Tile32 = PipelineTile<32, 256, 8, 8, 8, 4, 4, 4>;    ///< for 17 to 32 channels of a group
using TileSmall = PipelineTile<32, 32, 8, 4, 4, 4, 3, 8>;  ///< where larger ones would be idle

/// A type as a value.
template <class T>
struct TileTag {
  using Tile = T;  ///< the type
};

/// Calls body(TileTag<T>) for the tile T that suits the product.
template <class Body>
auto with_tile(const GatheredProduct& product, const Body& body) {
  if (product.group_m <= 16 || product.pixels() < 1024) return body(TileTag<TileSmall>{});
  if (product.group_m <= 32) return body(TileTag<Tile32>{});
  // The last tile of 128 channels would be half empty.
  const int rest = product.group_m % 128;
  if (rest > 0 && rest <= 64) return body(TileTag<Tile64>{});
  return body(TileTag<Tile128>{});
}

/// For a rung's choice: the tile, and the order of the steps.
template <class T>
std::string in_words(TileTag<T>, bool table) {
  return text(T::kBlockM, " x ", T::kBlockN, table ? ", a table of taps" : ", tap by tap");
}

/// The product planned for T, with a table where one is due.
template <class T>
GatheredProduct planned_for(TileTag<T>, const GatheredProduct& product) {
  return planned<T>(product, takes_table(product, T::kBlockK));
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
