/// @file fused.cu
/// @brief Fused Winograd F(2 x 2, 3 x 3): both transforms and the GEMMs are one kernel; V and M
/// stay on the SM.
///
/// - Before: 4x4.cu
/// - After: fft/fused.cu
/// - The same maths: cpu_reference/conv2d/winograd_2x2.cpp
///
/// **The idea.** The 16 GEMMs of a block of 64 filters x 32 tiles fit into one SM: 64 * 32 * 16
/// accumulators are 64 registers of 512 threads. A block transforms x before it is stored to shared
/// memory, multiplies, and transforms its accumulators. V and M are not written to memory (Lavin
/// and Gray, 2016; Yan, Wang and Chu, "Optimizing batched Winograd convolution on GPUs", 2020;
/// openCNN by Castro and others has the same block).
///
///     8 channels a step:   x -> registers -> B^T d B -> V [16][8][32]  |  16 warps, each
///                          U, transformed before ----> U [16][8][64]  |  a frequency
///     at the end           64 sums a thread -> shared memory, 16 filters at a time -> A^T m A -> y
///
/// While a step is multiplied, the next step's U is copied and its x is in registers. Half a
/// window's rows of V come from three rows of x, so that 512 threads share the 256 windows of a
/// step.
///
/// **Expect.** A thread loads 16 values for 64 multiply-adds, as in implicit_gemm/cp_async, of
/// which an output needs 4 C / G instead of 9: at 70 % of the FMA peak, 72 us for B4 (32x64x56x56,
/// 64 filters) and for B6, 577 us for B9. B7's images of 7 x 7 fill half of a block's 4 x 8 tiles:
/// 130 us. B10 is limited by arithmetic, 4 products instead of F(4x4)'s 2.25: 2300 us.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.workspace 16 * 16 * 64 / 4 * 2 / 16384 = 0.5, U in fours, for 2 blocks
/// @expect launches 2, U and the rest
/// @expect lanes_per_output.workspace.store 16 * 16 * 64 / 16384 = 1, U alone
/// @expect bytes_per_lane.workspace.async 16
/// **Costs.** One block per SM: its 16 warps meet at a barrier every 8 channels. Blocks have 8 x 16
/// outputs of one image, and 64 filters. All else as winograd_2x2.
/// **Try.** Use 256 threads, each with two frequencies. What can a scheduler issue while a warp
/// waits?
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/winograd/winograd_plan.cuh"
#include "cuda_optimized/conv2d/shared/winograd/winograd_transforms.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using W = Winograd2;
constexpr int kThreads = 512, kFrequencies = 16;
constexpr int kFilters = 64, kTilesDown = 4, kTilesAcross = 8;  ///< Of a block.
constexpr int kTiles = kTilesDown * kTilesAcross;               ///< One for each lane of a warp.
constexpr int kChannels = 8;                                    ///< Of a step.
constexpr int kFloatsU = kFrequencies * kChannels * kFilters;   ///< Of a step.
constexpr int kFloatsV = kFrequencies * kChannels * kTiles;     ///< Likewise.
/// Accumulators are exchanged between threads 16 filters at a time. Rows of 32 tiles are 40 apart:
/// those of two filters that a warp stores at once lie in different banks.
constexpr int kFiltersOut = 16, kPitchOut = 40;
constexpr int kSharedFloats = 2 * (kFloatsU + kFloatsV);
static_assert(kFrequencies * kFiltersOut * kPitchOut <= kSharedFloats);

/// What the blocks share.
struct Plan {
  int blocks_m, steps;             ///< of a group: blocks of filters, steps of channels
  int blocks_down, blocks_across;  ///< of an image

  HOST_DEVICE explicit Plan(const Conv2dProblem& conv)
      : blocks_m(ceil_div(conv.K / conv.groups, kFilters)),
        steps(ceil_div(conv.C / conv.groups, kChannels)),
        blocks_down(ceil_div(conv.P, kTilesDown * W::kM)),
        blocks_across(ceil_div(conv.Q, kTilesAcross * W::kM)) {}
};

/// weights [K][C/groups][3][3], u [group][block of filters][step][frequency][channel][filter]: the
/// order in which blocks read it. Any one-dimensional grid.
__global__ void __launch_bounds__(kThreads)
    conv2d_winograd_fused_weights(Conv2dProblem conv, const float* weights, float* u) {
  const Plan plan(conv);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::int64_t steps = std::int64_t{conv.groups} * plan.blocks_m * plan.steps;
  static_assert(kThreads == kChannels * kFilters);
  const int filter = static_cast<int>(threadIdx.x) % kFilters;
  const int channel = static_cast<int>(threadIdx.x) / kFilters;
  for (std::int64_t step = blockIdx.x; step < steps; step += gridDim.x) {
    const std::int64_t block = step / plan.steps, group = block / plan.blocks_m;
    const std::int64_t m = block % plan.blocks_m * kFilters + filter;
    const std::int64_t c = step % plan.steps * kChannels + channel;
    float g[9] = {};
    if (m < group_k && c < group_c) {
      const float* from = weights + ((group * group_k + m) * group_c + c) * 9;
#pragma unroll
      for (int i = 0; i < 9; ++i) g[i] = from[i];
    }
    float* to = u + step * kFloatsU + threadIdx.x;
    transform_filter<W>(g, [&](int f, float number) { to[f * kChannels * kFilters] = number; });
  }
}

/// Half of the windows' rows of V, for a tile and every eighth channel of a thread.
class Windows {
 public:
  /// @param c0 the group's first channel
  __device__ Windows(const Conv2dProblem& conv, const float* x, int n, int c0, int p, int q)
      : x_(x), plane_(std::int64_t{conv.H} * conv.W), w_(conv.W) {
    // A warp has a channel and a half of the rows: a lane has a tile.
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    channel_ = warp % kChannels, half_ = warp / kChannels;
    const int h0 = p + lane / kTilesAcross * W::kM - conv.pad.top + half_;
    const int w0 = q + lane % kTilesAcross * W::kM - conv.pad.left;
    left_ = conv.C / conv.groups - channel_;
    at_ = ((std::int64_t{n} * conv.C + c0 + channel_) * conv.H + h0) * conv.W + w0;
#pragma unroll
    for (int e = 0; e < 12; ++e) {
      const int h = h0 + e / 4, w = w0 + e % 4;
      if (h >= 0 && h < conv.H && w >= 0 && w < conv.W) inside_ |= 1u << e;
    }
    to_ = channel_ * kTiles + lane;
  }

  /// Reads the next step's three rows. Nothing waits for them yet.
  __device__ void load() {
#pragma unroll
    for (int e = 0; e < 12; ++e) {
      const bool inside = left_ > 0 && (inside_ >> e & 1u) != 0;
      rows_[e / 4][e % 4] = inside ? x_[at_ + e / 4 * w_ + e % 4] : 0.0f;
    }
    at_ += kChannels * plane_, left_ -= kChannels;
  }

  /// Stores B^T d B, v [frequency][channel][tile].
  __device__ void store(float* v) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float row[W::kN];
#pragma unroll
      for (int j = 0; j < W::kN; ++j) {
        // B^T: d0 - d2, d1 + d2 of rows 0 to 2; d2 - d1, d3 - d1 of rows 1 to 3.
        const float a = rows_[0][j], b = rows_[1][j], c = rows_[2][j];
        row[j] = half_ == 0 ? (i == 0 ? a - c : b + c) : (i == 0 ? b - a : c - a);
      }
      W::times_b(row);
#pragma unroll
      for (int j = 0; j < W::kN; ++j)
        v[((half_ * 2 + i) * W::kN + j) * kChannels * kTiles + to_] = row[j];
    }
  }

 private:
  const float* x_;
  std::int64_t plane_, at_;  // at_: the first number of the next step's rows
  int w_, channel_, half_, left_, to_;
  unsigned inside_ = 0;  // bit 4 i + j: number j of row i lies in x
  float rows_[3][4];
};

/// x [N][C][H][W], u as above, bias [K] or null, y [N][K][P][Q].
/// Grid: for each image and block of tiles, those of filters; block 512.
__global__ void __launch_bounds__(kThreads, 1)
    conv2d_winograd_fused(Conv2dProblem conv, const float* x, const float* u, const float* bias,
                          float* y) {
  float* const shared = dynamic_shared<float>();
  float* const u_tiles = shared;                 // [stage][frequency][channel][filter]
  float* const v_tiles = shared + 2 * kFloatsU;  // [stage][frequency][channel][tile]

  const Plan plan(conv);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int filter_blocks = conv.groups * plan.blocks_m;
  const int filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int group = filter_block / plan.blocks_m, m0 = filter_block % plan.blocks_m * kFilters;
  int place = static_cast<int>(blockIdx.x) / filter_blocks;
  const int q0 = place % plan.blocks_across * (kTilesAcross * W::kM);
  place /= plan.blocks_across;
  const int p0 = place % plan.blocks_down * (kTilesDown * W::kM), n = place / plan.blocks_down;

  Windows windows(conv, x, n, group * (conv.C / conv.groups), p0, q0);
  const float* next_u = u + std::int64_t{filter_block} * plan.steps * kFloatsU + thread * 4;
  const auto copy_u = [&](int stage) {
#pragma unroll
    for (int e = 0; e < kFloatsU / 4 / kThreads; ++e) {
      ptx::cp_async<16>(u_tiles + stage * kFloatsU + (thread + e * kThreads) * 4,
                        next_u + e * kThreads * 4);
    }
    next_u += kFloatsU;
    ptx::cp_async_commit_group();
  };

  // A warp has a frequency, and a lane 8 x 8 accumulators of it: fours of filters 32 apart, fours
  // of tiles 16 apart.
  const int lane_m = lane / 4 * 4, lane_n = lane % 4 * 4;
  float sums[8][8] = {};
  copy_u(0);
  windows.load();
  for (int step = 0; step < plan.steps; ++step) {
    const int stage = step % 2;
    windows.store(v_tiles + stage * kFloatsV);
    ptx::cp_async_wait_group<0>();  // this step's copies by this thread have landed
    // Separates this step's stores and copies from the loads below, and the loads of the previous
    // step from what now goes to its stage.
    __syncthreads();
    if (step + 1 < plan.steps) {
      copy_u(1 - stage);
      windows.load();
    }
    const float* u_f = u_tiles + stage * kFloatsU + warp * kChannels * kFilters;
    const float* v_f = v_tiles + stage * kFloatsV + warp * kChannels * kTiles;
#pragma unroll 1  // operands of more would take more than 128 registers
    for (int c = 0; c < kChannels; ++c) {
      float a[8], b[8];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        *reinterpret_cast<float4*>(a + 4 * i) =
            *reinterpret_cast<const float4*>(u_f + c * kFilters + lane_m + 32 * i);
        *reinterpret_cast<float4*>(b + 4 * i) =
            *reinterpret_cast<const float4*>(v_f + c * kTiles + lane_n + 16 * i);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += a[i] * b[j];
      }
    }
  }

  const int group_k = conv.K / conv.groups;
#pragma unroll
  for (int part = 0; part < 4; ++part) {  // two filters of each lane: 16 of the block
    __syncthreads();                      // separates the loads before from these stores
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float* to = shared + (warp * kFiltersOut + lane / 4 * 2 + i) * kPitchOut + lane_n;
      const float* from = sums[part * 2 + i];
      *reinterpret_cast<float4*>(to) = {from[0], from[1], from[2], from[3]};
      *reinterpret_cast<float4*>(to + 16) = {from[4], from[5], from[6], from[7]};
    }
    __syncthreads();                                  // separates these stores from the loads below
    static_assert(kFiltersOut * kTiles == kThreads);  // a warp has a filter, a lane a tile
    float m[W::kN][W::kN];
#pragma unroll
    for (int f = 0; f < kFrequencies; ++f)
      m[f / W::kN][f % W::kN] = shared[(f * kFiltersOut + warp) * kPitchOut + lane];
    both_ways(m, W::kM, [](float(&line)[W::kN]) { W::times_a(line); });
    // Row 2 i + j of a part holds the lanes' filter 2 part + j: the fours of lane row i.
    const int filter = m0 + part / 2 * 32 + warp / 2 * 4 + part % 2 * 2 + warp % 2;
    if (filter >= group_k) continue;  // all of a warp, or none
    const int k = group * group_k + filter;
    const float bias_k = bias ? bias[k] : 0.0f;
    const int p = p0 + lane / kTilesAcross * W::kM, q = q0 + lane % kTilesAcross * W::kM;
    float* const to = y + ((std::int64_t{n} * conv.K + k) * conv.P + p) * conv.Q + q;
#pragma unroll
    for (int i = 0; i < W::kM; ++i) {
#pragma unroll
      for (int j = 0; j < W::kM; ++j) {
        if (p + i < conv.P && q + j < conv.Q)
          to[std::int64_t{i} * conv.Q + j] = activated(conv.activation, m[i][j] + bias_k);
      }
    }
  }
}

/// Blocks of conv2d_winograd_fused.
std::int64_t blocks_of(const Conv2dProblem& conv) {
  const Plan plan(conv);
  return checked_product({conv.N, plan.blocks_down, plan.blocks_across, conv.groups, plan.blocks_m},
                         "blocks");
}

Declined supports(const Conv2dProblem& conv) {
  if (auto reason = why_not("sm_80", "96 KiB of shared memory per block")) return reason;
  if (auto reason = why_no_winograd(conv, W::kM)) return reason;
  if (blocks_of(conv) > kMaxGridX) return "2^31 or more blocks of 64 filters and 32 tiles";
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Plan plan(conv);
  return static_cast<std::size_t>(
      checked_product({conv.groups, plan.blocks_m, plan.steps, kFloatsU, sizeof(float)},
                      "bytes of transformed weights"));
}

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const Plan plan(conv);
  float* const u = context.workspace_as<float>();
  const std::int64_t steps = std::int64_t{conv.groups} * plan.blocks_m * plan.steps;
  if (conv.N == 0) return;
  launch(conv2d_winograd_fused_weights, {blocks_for(steps, 1, kMaxGridX - 1), kThreads}, conv,
         arrays.weights, u);
  launch(conv2d_winograd_fused,
         {dim3(static_cast<unsigned>(blocks_of(conv))), kThreads, kSharedFloats * sizeof(float)},
         conv, arrays.x, u, arrays.bias, arrays.y);
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_fused = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
