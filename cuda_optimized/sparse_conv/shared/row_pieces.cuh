/// @file row_pieces.cuh
/// @brief Rows that are copied and added: a row is made of pieces, float4 or single floats.
#pragma once

#include "core/activation.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

inline constexpr int kRowThreads = 256;  ///< Of a block that works on rows.
inline constexpr int kWidest = 32;       ///< At most so many threads along a row: one warp.
/// Blocks of kRowThreads that an SM holds. With more rows than those take, blocks stride.
inline constexpr int kRowBlocksPerSm = 8;

/// Sum of two pieces.
__device__ inline float plus(float a, float b) { return a + b; }
/// Sum of two pieces.
__device__ inline float4 plus(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
/// A piece of zeros.
template <class Piece>
__device__ inline Piece zeros() {
  return Piece{};
}
/// A piece of complete sums, as it is stored.
__device__ inline float4 activated(Activation activation, float4 sums) {
  return {convladder::activated(activation, sums.x), convladder::activated(activation, sums.y),
          convladder::activated(activation, sums.z), convladder::activated(activation, sums.w)};
}
using convladder::activated;

/// Whether float4 can be read from there.
inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(float4) == 0;
}

/// Whether rows of so many channels consist of float4, if the first one begins at a multiple of 16
/// bytes.
inline bool channels_in_fours(int channels) { return channels % 4 == 0; }

/// A block for rows of `pieces`: a power of two of threads along a row, the others down.
inline dim3 row_block(int pieces) {
  int across = 1;
  while (across < pieces && across < kWidest) across *= 2;
  return {static_cast<unsigned>(across), static_cast<unsigned>(kRowThreads / across)};
}

/// The grid for `rows` rows of such blocks: what the device holds at once, or less.
inline dim3 row_grid(std::int64_t rows, dim3 block) {
  return {blocks_for(rows, static_cast<int>(block.y),
                     std::int64_t{kRowBlocksPerSm} * multiprocessors())};
}

/// Calls body.operator() of a Piece, with pieces, for rows of so many channels, made of float4
/// where that is possible.
/// @param aligned whether all arrays of such rows begin at multiples of 16 bytes
template <class Body>
void with_piece(int channels, bool aligned, const Body& body) {
  if (aligned && channels_in_fours(channels)) {
    body.template operator()<float4>(channels / 4);
  } else {
    body.template operator()<float>(channels);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
