/// @file halo_copy.cuh
/// @brief What a block of direct/mma_tf32.cu keeps in shared memory: patches of x, and weights in
/// the order of mma's fragments, both rounded to TF32.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/shared/direct_mma/tiling.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Rounds four floats at a multiple of 16 bytes.
__device__ inline void round_four(float* four) {
  const float4 v = *reinterpret_cast<const float4*>(four);
  *reinterpret_cast<uint4*>(four) = {ptx::to_tf32(v.x), ptx::to_tf32(v.y), ptx::to_tf32(v.z),
                                     ptx::to_tf32(v.w)};
}

/// Calls body(c, i, line) for the lines that this thread's warp copies: row i of the patch's
/// channel c, whose first float is `line`.
template <class Body>
__device__ void for_own_lines(const Tiling& tiling, float* patch, const Body& body) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int n = warp; n < tiling.channels * tiling.in_rows; n += tiling.warps) {
    const int c = tiling.by_in_rows.quotient(n), i = tiling.by_in_rows.remainder(n, c);
    body(c, i, patch + c * tiling.plane + i * tiling.pitch);
  }
}

/// Asks for the patch that a tile needs, kWidth floats at a time: zeros for the padding.
/// @param x the group's first channel of the first image
template <int kWidth>
__device__ void ask_for_patch(const Conv2dProblem& conv, const Tiling& tiling, OutputPixel at,
                              const float* x, float* patch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int h0 = at.p * tiling.stride.h - conv.pad.top;
  const int w0 = at.q * tiling.stride.w - conv.pad.left - tiling.shift;
  const float* const image = x + std::int64_t{at.n} * conv.C * conv.H * conv.W;
  for_own_lines(tiling, patch, [&](int c, int i, float* line) {
    // Negative coordinates become huge unsigned ones.
    const bool row_inside = static_cast<unsigned>(h0 + i) < static_cast<unsigned>(conv.H);
    const float* const row =
        image + (std::int64_t{c} * conv.H + (row_inside ? h0 + i : 0)) * conv.W;
#pragma unroll 1  // most lines are one or two steps
    for (int j = lane * kWidth; j < tiling.in_columns; j += 32 * kWidth) {
      const bool inside =
          row_inside && static_cast<unsigned>(w0 + j) < static_cast<unsigned>(conv.W);
      ptx::cp_async<4 * kWidth>(line + j, row + (inside ? w0 + j : 0), inside ? 4 * kWidth : 0);
    }
  });
}

/// Rounds the elements that this thread copied, after their arrival.
template <int kWidth>
__device__ void round_patch(const Tiling& tiling, float* patch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for_own_lines(tiling, patch, [&](int, int, float* line) {
    for (int j = lane * kWidth; j < tiling.in_columns; j += 32 * kWidth) {
      if constexpr (kWidth == 4) {
        round_four(line + j);
      } else {
        line[j] = __uint_as_float(ptx::to_tf32(line[j]));
      }
    }
  });
}

/// Filters f0 ... of a group of the convolution: what a block computes at a time.
struct Filters {
  int group, count;    ///< the convolution's group; filters, at most 16 * kFilterTiles
  std::int64_t first;  ///< among all K
};

/// Asks for the weights in the order of mma's a, and writes what else stays in shared memory: the
/// taps' places in the patch, in bytes and in pairs as a lane needs them, biases, and a zero.
template <class S>
__device__ void stage_filters(const Conv2dProblem& conv, const Tiling& tiling,
                              const Filters& filters, const float* weights, const float* bias,
                              float* shared) {
  const int thread = static_cast<int>(threadIdx.x), threads = tiling.warps * 32;
  for (int i = thread; i < tiling.weight_floats() / 4; i += threads) {
    const int f = i / 32 % S::kFilterTiles * 16 + i % 32 / 4;
    const int k = i / 32 / S::kFilterTiles * 8 + i % 4;
    const std::int64_t from = (filters.first + f) * tiling.depth + k;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool inside = f + e % 2 * 8 < filters.count && k + e / 2 * 4 < tiling.depth;
      ptx::cp_async<4>(shared + 4 * i + e,
                       weights + (inside ? from + e % 2 * 8 * tiling.depth + e / 2 * 4 : 0),
                       inside ? 4 : 0);
    }
  }
  auto* const taps = reinterpret_cast<int*>(shared + tiling.taps_at());
  for (int k = thread; k < tiling.steps * 8; k += threads) {
    const int s = k % conv.S, r = k / conv.S % conv.R, c = k / conv.S / conv.R;
    taps[k / 8 * 8 + k % 4 * 2 + k % 8 / 4] =
        k < tiling.depth
            ? 4 * (c * tiling.plane + r * conv.dilation.h * tiling.pitch + s * conv.dilation.w)
            : 4 * tiling.zero_at();
  }
  for (int f = thread; f < 16 * S::kFilterTiles; f += threads) {
    shared[tiling.biases_at() + f] =
        bias != nullptr && f < filters.count ? bias[filters.first + f] : 0.0f;
  }
  if (thread == 0) shared[tiling.zero_at()] = 0.0f;
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
