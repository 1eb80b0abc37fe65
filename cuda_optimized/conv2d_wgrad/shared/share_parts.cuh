/// @file share_parts.cuh
/// @brief The layout of the partial sums of hopper/split_k_1x1.cu, and its second kernel, which
/// adds up the parts of dw and db in a fixed order.
///
/// Parts lie as registers hold them: four accumulators of a thread, those of its neighbours, the
/// next four of each thread. So every store and load moves whole lines; which weights they are, the
/// second kernel finds out.
#pragma once

#include "core/cuda/early_launch.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/share_plan.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// Where all blocks leave their sums.
struct ShareParts {
  ShareTiles tiles;  ///< of dw
  int shares,        ///< of the pixels: parts of each sum
      K;             ///< sums of db
  float *dw_parts,   ///< [shares][tiles][consumers][pieces * 8][128 threads][4]; null: one share
      *db_parts;     ///< [shares][across][K]
  float *dw, *db;    ///< whole sums
  bool pairs;        ///< two neighbouring channels of dw can be stored at once

  /// Of a plan, in a workspace of floats().
  ShareParts(const Conv2dProblem& conv, const SharePlan& plan, float* workspace, float* to_dw,
             float* to_db)
      : tiles(conv, plan.shape), shares(plan.shares), K(conv.K),
        dw_parts(shares > 1 ? workspace : nullptr),
        db_parts(workspace == nullptr ? nullptr : workspace + dw_floats()), dw(to_dw), db(to_db),
        pairs(conv.C / conv.groups % 2 == 0 && reinterpret_cast<std::uintptr_t>(to_dw) % 8 == 0) {}
  /// Sums of dw in a part.
  HOST_DEVICE std::int64_t part() const { return tiles.count() * tiles.shape.sums(); }
  /// Parts of db.
  HOST_DEVICE int bias_parts() const { return shares * tiles.shape.across; }
  /// Floats of dw's parts.
  std::int64_t dw_floats() const { return shares > 1 ? shares * part() : 0; }
  /// Floats of the workspace.
  std::int64_t floats() const { return dw_floats() + std::int64_t{bias_parts()} * K; }

  /// Stores four accumulators in a share's part: sums[4 j] ... [4 j + 3] of a thread of a
  /// warpgroup, which are counted through all tiles.
  __device__ void store_part(int share, int warpgroup, int j, int thread, const float4& sum) const {
    const int four = (warpgroup * tiles.shape.pieces * 8 + j) * 128 + thread;
    reinterpret_cast<float4*>(dw_parts + share * part())[four] = sum;
  }
  /// Stores four accumulators in dw: sums[4 j] ... [4 j + 3] of a thread of a warpgroup, see
  /// ptx::wgmma_m64k8_tf32().
  __device__ void store_whole(const ShareTile& tile, int consumer, int j, int thread,
                              const float4& sum) const {
    const Pieces& pieces = tiles.pieces;
    const int lane = thread % 32,
              piece = tile.piece + consumer / tiles.shape.down * tiles.shape.pieces + j / 8;
    if (piece >= pieces.count) return;
    const int c = j % 8 * 8 + lane % 4 * 2;
    const int channels = pieces.group_c - piece % pieces.per_tap * kHalfColumns - c;
    const int k =
        tile.k + (consumer % tiles.shape.down) * kHalfColumns + thread / 32 * 16 + lane / 4;
    const std::int64_t filter = std::int64_t{pieces.taps} * pieces.group_c;
    float* const to =
        dw + (std::int64_t{tile.group} * tiles.group_k + k) * filter + pieces.offset(piece) + c;
    const auto store = [&](float* two, float first, float second) {
      if (pairs && channels > 0) {
        gemm::store_two(two, first, second);
      } else {
        if (channels > 0) two[0] = first;
        if (channels > 1) two[1] = second;
      }
    };
    if (k < tiles.group_k) store(to, sum.x, sum.y);
    if (k + 8 < tiles.group_k) store(to + 8 * filter, sum.z, sum.w);
  }
};

inline constexpr int kAddThreads = 256;  ///< Of a block that adds parts.
inline constexpr int kAddShares = 8;     ///< Threads for the parts of the same sums.

/// The sum of `count` parts that lie `apart` floats apart, from `from` on, by kAddShares threads:
/// thread `share` has parts share, share + kAddShares ... The whole sum is there for share 0. All
/// threads of the block call it.
template <class Sum, class Add>
__device__ Sum add_shared(const float* from, int count, std::int64_t apart, const Add& add) {
  constexpr int kSums = kAddThreads / kAddShares, kTogether = 9;
  __shared__ Sum of_share[kAddShares][kSums];
  const int i = static_cast<int>(threadIdx.x) % kSums;
  const int share = static_cast<int>(threadIdx.x) / kSums;
  Sum sum{};
  for (int part = share; from != nullptr && part < count; part += kTogether * kAddShares) {
    Sum more[kTogether];  // loaded before the first is added, also where there are fewer
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int other = part + j * kAddShares;
      more[j] = other < count ? *reinterpret_cast<const Sum*>(from + other * apart) : Sum{};
    }
#pragma unroll
    for (const Sum& value : more) add(sum, value);
  }
  of_share[share][i] = sum;
  __syncthreads();  // separates these stores from the loads below
  if (share == 0) {
#pragma unroll
    for (int other = 1; other < kAddShares; ++other) add(sum, of_share[other][i]);
  }
  return sum;
}

/// db = the sum of its parts, by the first rows of blocks, and dw by the others, if it has several.
/// Grid: blocks for a warpgroup's accumulators, by db_rows and the warpgroups of all tiles; block
/// kAddThreads.
static __global__ void __launch_bounds__(kAddThreads)
    conv2d_wgrad_add_share_parts(const __grid_constant__ ShareParts parts, int db_rows) {
  constexpr int kSums = kAddThreads / kAddShares, kGroups = 128 / kSums;
  const int i = static_cast<int>(threadIdx.x) % kSums;
  const bool stores = static_cast<int>(threadIdx.x) < kSums;
  const int warpgroup = static_cast<int>(blockIdx.y) - db_rows;
  let_next_kernel_begin();  // it waits for this one's end
  wait_for_kernel_before();
  if (warpgroup < 0) {
    const int k = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x) * kSums + i;
    const float sum =
        add_shared<float>(k < parts.K ? parts.db_parts + k : nullptr, parts.bias_parts(), parts.K,
                          [](float& a, float b) { a += b; });
    if (stores && k < parts.K) parts.db[k] = sum;
    return;
  }
  // kSums fours of neighbouring threads of the warpgroup.
  const std::int64_t four = (std::int64_t{warpgroup} * gridDim.x + blockIdx.x) * kSums + i;
  const float4 sum = add_shared<float4>(parts.dw_parts + 4 * four, parts.shares, parts.part(),
                                        [](float4& a, const float4& b) {
                                          a = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
                                        });
  if (!stores) return;
  const int consumers = parts.tiles.shape.consumers(), block = static_cast<int>(blockIdx.x);
  parts.store_whole(parts.tiles.at(warpgroup / consumers), warpgroup % consumers, block / kGroups,
                    block % kGroups * kSums + i, sum);
}

/// Launches it, so that it begins while the last blocks before it store their sums.
static inline void launch_add_share_parts(const ShareParts& parts) {
  constexpr int kSums = kAddThreads / kAddShares;
  const ShareShape& shape = parts.tiles.shape;
  const unsigned across = static_cast<unsigned>(shape.pieces) * 8 * 128 / kSums;
  const unsigned db_rows = blocks_for(parts.K, across * kSums);
  const auto warpgroups =
      parts.shares > 1 ? static_cast<unsigned>(parts.tiles.count()) * shape.consumers() : 0;
  launch_early(conv2d_wgrad_add_share_parts,
               {dim3(across, db_rows + warpgroups), dim3(kAddThreads)}, parts,
               static_cast<int>(db_rows));
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
