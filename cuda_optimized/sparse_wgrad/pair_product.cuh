/// @file pair_product.cuh
/// @brief The sum of a part's outer products in registers, as a building block of split_k.cu and
/// split_k_atomics.cu; split_k_atomics.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/four.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"
#include "cuda_optimized/sparse_wgrad/pair_parts.cuh"
#include "cuda_optimized/sparse_wgrad/row_gather.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

constexpr int kStepPairs = 16;  ///< Pairs whose rows are in shared memory at a time, in each stage.
constexpr int kStages = 3;      ///< Steps that are there, or on their way.

/// Tiles of Cin x Cout channels; a thread has 8 x 8 sums, or 4 x 4 of the smallest tile.
using Large = gemm::ThreadTile<128, 128, kStepPairs, 8, 8, 4>;
using Medium = gemm::ThreadTile<64, 64, kStepPairs, 8, 8, 4>;  ///< See above.
using Small = gemm::ThreadTile<32, 32, kStepPairs, 4, 4, 4>;   ///< See above.
[[maybe_unused]] constexpr int kThreadsPerSm = 512;            ///< With up to 128 registers each.

/// What a block needs to know.
struct PairProduct {
  int Cin, Cout;                        ///< Channels of features and of dy.
  int tiles_out;                        ///< tiles of Cout
  PairParts parts;                      ///< how pairs are handed out
  const float *features, *dy;           ///< [N][Cin], [M][Cout]
  const std::int32_t *pairs, *offsets;  ///< [P][3], [KV + 1]
};

/// A tile of kStepPairs rows, as they lie.
template <int kTileChannels>
struct PlainRows {
  using Number = float;                                                 ///< See RowGather.
  static constexpr int kPairs = kStepPairs, kChannels = kTileChannels;  ///< See RowGather.
  /// Where channel c of pair i is.
  HOST_DEVICE static int at(int i, int c) { return i * kChannels + c; }
};

/// Sums up the outer products of a part. All threads of the block take part.
template <class Tile, bool kAligned>
__device__ void add_pairs(const PairProduct& product, const BlockWork& work, const Tile& tile,
                          float (&sums)[Tile::kThreadM][Tile::kThreadN]) {
  constexpr int kFloatsA = kStepPairs * Tile::kBlockM, kFloatsB = kStepPairs * Tile::kBlockN;
  RowGather<PlainRows<Tile::kBlockM>, Tile::kThreads, kAligned> inputs(
      product.features, product.Cin, work.ci0, product.pairs, 1, work.part.first, work.part.count);
  RowGather<PlainRows<Tile::kBlockN>, Tile::kThreads, kAligned> gradients(
      product.dy, product.Cout, work.co0, product.pairs, 2, work.part.first, work.part.count);
  const auto stage_of = [](int step) {
    return dynamic_shared<float>() + step % kStages * (kFloatsA + kFloatsB);
  };
  const int steps = ceil_div(work.part.count, kStepPairs);
  const auto ask_for = [&](int step) {
    if (step < steps) {
      inputs.copy_rows(stage_of(step));
      gradients.copy_rows(stage_of(step) + kFloatsA);
      inputs.load_rows();
      gradients.load_rows();
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
  };

  inputs.load_rows();
  gradients.load_rows();
  for (int step = 0; step < kStages - 1; ++step) ask_for(step);
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    // Now this thread's copies of the step have landed. The barrier: those of the others, too, and
    // all have read what they need of the step before, into whose stage the next copies go.
    __syncthreads();
    ask_for(step + kStages - 1);
    tile.template multiply<Tile::kBlockM, Tile::kBlockN>(stage_of(step), stage_of(step) + kFloatsA,
                                                         sums);
  }
}

/// Dynamic shared memory of a block.
template <class Tile>
constexpr std::size_t shared_bytes() {
  return std::size_t{kStages} * kStepPairs * (Tile::kBlockM + Tile::kBlockN) * sizeof(float);
}

constexpr int kLongestPart = 1 << 16;  ///< Pairs of a part, at most.

/// The parts of a problem: as many as blocks run at once, on an H200.
inline PairParts pair_parts_of(const SparseConvProblem& conv) {
  const int channels = tile_channels(conv);
  const std::int64_t tiles =
      std::int64_t{ceil_div(conv.Cin, channels)} * ceil_div(conv.Cout, channels);
  const std::int64_t blocks = 132 * (channels == 128 ? 2 : 8);
  return cut_pairs(conv, std::max<std::int64_t>(blocks / tiles, 1), kStepPairs, kLongestPart);
}

/// The product, but for the tiles, which depend on the kernel.
inline PairProduct pair_product_of(const SparseConvProblem& conv, const Arguments& arrays) {
  return {.Cin = conv.Cin,
          .Cout = conv.Cout,
          .tiles_out = 0,
          .parts = pair_parts_of(conv),
          .features = arrays.in<float>("features"),
          .dy = arrays.in<float>("dy"),
          .pairs = arrays.in<std::int32_t>("pairs"),
          .offsets = arrays.in<std::int32_t>("offsets")};
}

/// Whether rows begin at multiples of 16 bytes.
inline bool rows_are_aligned(const PairProduct& product) {
  const auto address = reinterpret_cast<std::uintptr_t>(product.features) |
                       reinterpret_cast<std::uintptr_t>(product.dy);
  return (product.Cin | product.Cout) % 4 == 0 && address % 16 == 0;
}

/// Grid (parts of a slab, tiles of channels, slabs), block Tile::kThreads.
template <class Tile>
LaunchConfig launch_config(const PairProduct& product) {
  const auto tiles = static_cast<unsigned>(ceil_div(product.Cin, Tile::kBlockM) *
                                           ceil_div(product.Cout, Tile::kBlockN));
  return {dim3(static_cast<unsigned>(product.parts.most_parts), tiles,
               static_cast<unsigned>(product.parts.slabs())),
          dim3(Tile::kThreads), shared_bytes<Tile>()};
}

/// Why a problem cannot be taken, or nothing.
inline Declined too_many_tiles(const SparseConvProblem& conv) {
  const int channels = tile_channels(conv);
  if (std::int64_t{ceil_div(conv.Cin, channels)} * ceil_div(conv.Cout, channels) > kMaxGridYZ) {
    return "more than 65535 tiles of 128 x 128 channels";
  }
  return {};
}

/// For a rung's choice: what holds if arrays begin at multiples of 16 bytes, as null does.
inline std::string pair_product_in_words(const SparseConvProblem& conv) {
  PairProduct product{};
  product.Cin = conv.Cin;
  product.Cout = conv.Cout;
  const int channels = tile_channels(conv);
  return text(channels, " x ", channels, rows_are_aligned(product) ? ", channels in fours" : "",
              ", ", in_words(pair_parts_of(conv), kStepPairs, kLongestPart));
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
