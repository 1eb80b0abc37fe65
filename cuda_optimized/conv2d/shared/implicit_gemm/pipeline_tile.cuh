/// @file pipeline_tile.cuh
/// @brief The tiles of the implicit_gemm rungs with a pipeline, and which problem takes which.
#pragma once

#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/gather_by_table.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// The sizes of a PipelineTile.
struct PipelineShape {
  int block_m, block_n;    ///< sums of a block: channels x pixels
  int block_k;             ///< products a step
  int thread_m, thread_n;  ///< sums of a thread
  int lanes_m;             ///< threads of a warp along the channels
  int stages;              ///< tiles of each factor in shared memory
  int blocks;              ///< that an SM must hold at once
};

/// A block's tile, and how its threads copy it.
template <PipelineShape S>
struct PipelineTile
    : gemm::ThreadTile<S.block_m, S.block_n, S.block_k, S.thread_m, S.thread_n, S.lanes_m> {
  /// The tile without the copies.
  using Base = gemm::ThreadTile<S.block_m, S.block_n, S.block_k, S.thread_m, S.thread_n, S.lanes_m>;
  using Base::Base, Base::kThreads, Base::kBlockM, Base::kBlockN, Base::kBlockK;
  static constexpr int kStages = S.stages,  ///< tiles of each factor in shared memory
      kBlocks = S.blocks;                   ///< that an SM must hold at once

  /// A thread gathers for kPixels pixels, kThreads apart, every kRowStep-th row of a tile.
  static constexpr int kPixels = kBlockN > kThreads ? kBlockN / kThreads : 1;
  /// From a row that a thread gathers to its next one.
  static constexpr int kRowStep = kBlockN > kThreads ? 1 : kThreads / kBlockN;
  static constexpr int kRows = kBlockK / kRowStep;  ///< of a tile, for which a thread gathers
  static_assert(kBlockN > kThreads ? kBlockN % kThreads == 0 : kThreads % kBlockN == 0);
  static_assert(kBlockK % kRowStep == 0);

  static constexpr int kFloatsA = kBlockK * kBlockM, kFloatsB = kBlockK * kBlockN;  ///< of a stage
  static constexpr int kFloats = kStages * (kFloatsA + kFloatsB);  ///< of all stages
  static_assert(kThreads * Base::kThreadN <= kFloats, "for_each_in_order() has room");
};

/// For many channels.
using Tile128 = PipelineTile<PipelineShape{.block_m = 128,
                                           .block_n = 64,
                                           .block_k = 16,
                                           .thread_m = 8,
                                           .thread_n = 8,
                                           .lanes_m = 4,
                                           .stages = 3,
                                           .blocks = 4}>;
/// Where Tile128 would be half empty.
using Tile64 = PipelineTile<PipelineShape{.block_m = 64,
                                          .block_n = 128,
                                          .block_k = 16,
                                          .thread_m = 8,
                                          .thread_n = 8,
                                          .lanes_m = 4,
                                          .stages = 3,
                                          .blocks = 4}>;
/// For 17 to 32 channels of a group.
using Tile32 = PipelineTile<PipelineShape{.block_m = 32,
                                          .block_n = 256,
                                          .block_k = 8,
                                          .thread_m = 8,
                                          .thread_n = 8,
                                          .lanes_m = 4,
                                          .stages = 4,
                                          .blocks = 4}>;
/// Where larger ones would be idle.
using TileSmall = PipelineTile<PipelineShape{.block_m = 32,
                                             .block_n = 32,
                                             .block_k = 8,
                                             .thread_m = 4,
                                             .thread_n = 4,
                                             .lanes_m = 4,
                                             .stages = 3,
                                             .blocks = 8}>;

/// A type as a value.
template <class T>
struct TileTag {
  using Tile = T;  ///< the type
};

/// Calls body(TileTag<T>) for the tile T that suits the product.
template <class Body>
auto with_tile(const WindowProduct& product, const Body& body) {
  if (product.filters <= 16 || product.pixels() < 1024) return body(TileTag<TileSmall>{});
  if (product.filters <= 32) return body(TileTag<Tile32>{});
  // The last tile of 128 channels would be half empty.
  const int rest = product.filters % 128;
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
GatheredProduct planned_for(TileTag<T>, const WindowProduct& product) {
  return planned<T>(product, takes_table(product, T::kBlockK));
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
