/// @file tap_exchange.cuh
/// @brief How the blocks of a cluster add up their accumulators in hopper/cluster_reduction.cu, and
/// how idle warps, or blocks without a tile, add up dy to db.
///
/// A thread's accumulators come in fours, of two rows and two columns. Four number i belongs to
/// block i % blocks of the cluster: the others send it theirs, each to a place of its own, and it
/// adds them up in the order of their ranks.
#pragma once

#include <algorithm>

#include "core/cuda/cluster.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/tap_parts.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// A block's place in its cluster.
struct ClusterPlace {
  unsigned rank,  ///< its number
      log;        ///< of the cluster's blocks, to base 2

  /// Of the cluster.
  __device__ unsigned blocks() const { return 1u << log; }
};

/// A block's barriers.
struct TapBarriers {
  std::uint64_t full[kMaxTapStages],  ///< the stage has arrived
      empty[kMaxTapStages],           ///< all warps that read it have done so
      all_read,      ///< no block of the cluster reads its stages any more: sums may come there
      sums_arrived,  ///< from all others
      bias_arrived;  ///< likewise, to the cluster's first block

  /// Initialises them. Called by a thread.
  /// @param has_bias there are warps that add up dy
  /// @param bytes of all sums of a tile
  __device__ void begin(const Bands& bands, const ClusterPlace& place, bool has_bias,
                        std::int64_t bytes) {
    const int readers = kTapConsumers / 32 + (has_bias ? kBiasWarps : 0);
    const auto blocks = static_cast<int>(place.blocks()), others = blocks - 1;
    for (int i = 0; i < bands.stages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], readers);
    }
    ptx::mbarrier_init(&all_read, blocks * readers);
    ptx::mbarrier_init(&sums_arrived, 1);
    ptx::mbarrier_init(&bias_arrived, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&sums_arrived, static_cast<int>(bytes >> place.log) * others);
    ptx::mbarrier_arrive_expect_tx(&bias_arrived, others * kBiasWarps * kTapFilters * 4);
  }
};

/// Tells each block of the cluster that a warp has read what it wanted to. Called by all of it.
__device__ inline void tell_all(const ClusterPlace& place, std::uint64_t* all_read) {
  ptx::barrier_cluster_wait();  // separates the barriers' initialisation from their use
  const unsigned lane = threadIdx.x % 32;
  if (lane < place.blocks()) ptx::mbarrier_arrive_relaxed(ptx::mapa(all_read, lane));
}

/// Stores four accumulators at `to`, in the block `rank` of the cluster: there, `arrived` is told
/// of their bytes, unless it is the caller's own block.
__device__ inline void send_four(const ClusterPlace& place, unsigned rank, float* to,
                                 const float4& four, std::uint64_t* arrived) {
  if (rank == place.rank) {
    *reinterpret_cast<float4*>(to) = four;
  } else {
    ptx::st_async(ptx::mapa(to, rank), four, ptx::mapa(arrived, rank));
  }
}

/// Sends a thread's accumulators to those that they belong to. `parts`, [from
/// blocks][fours][threads], and `arrived` lie at the same places in all blocks; all have read what
/// was there.
template <int kSums>
__device__ void send_sums(const ClusterPlace& place, const float (&sums)[kSums], float4* parts,
                          std::uint64_t* arrived) {
  const unsigned fours = kSums / 4 >> place.log;
  float4* const mine = parts + place.rank * fours * kTapConsumers + threadIdx.x;
#pragma unroll
  for (unsigned i = 0; i < kSums / 4; ++i) {
    const unsigned to = i & (place.blocks() - 1);
    send_four(place, to, reinterpret_cast<float*>(mine + (i >> place.log) * kTapConsumers),
              {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]}, arrived);
  }
}

/// Adds up what has arrived, and stores it, of row r of the taps, in part `part`.
/// @param pairs two neighbouring channels can be stored at once
template <int kChannels>
__device__ void add_and_store(const ClusterPlace& place, const float4* parts, const TapTiles& tiles,
                              const TapTile& tile, int r, const SumParts& dw, int part,
                              bool pairs) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  if (r >= tiles.R) return;
  const int k = tile.k + thread / 32 * 16 + lane / 4;
  const int c = tile.c + lane % 4 * 2, channels = tiles.group_c - c;
  const std::int64_t filter_floats = std::int64_t{tiles.R} * tiles.S * tiles.group_c;
  float* const first = dw.from + part * dw.apart() +
                       (std::int64_t{tile.group} * tiles.group_k + k) * filter_floats +
                       (std::int64_t{r} * tiles.S + tile.s) * tiles.group_c + c;
  const unsigned fours = kTapAxis * kChannels / 8 >> place.log;
  for (unsigned i = 0; i < fours; ++i) {
    float4 sum{};
    for (unsigned from = 0; from < place.blocks(); ++from) {
      const float4 more = parts[(from * fours + i) * kTapConsumers + threadIdx.x];
      sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
    }
    constexpr int kFours = kChannels / 8;  // of a tap
    const int four = static_cast<int>((i << place.log) + place.rank);
    const int s = four / kFours, j = four % kFours * 8;
    if (tile.s + s >= tiles.S) break;
    const auto store = [&](float* to, float left, float right) {
      if (pairs && j < channels) {
        gemm::store_two(to, left, right);
      } else {
        if (j < channels) to[0] = left;
        if (j + 1 < channels) to[1] = right;
      }
    };
    float* const to = first + s * tiles.group_c + j;
    if (k < tiles.group_k) store(to, sum.x, sum.y);
    if (k + 8 < tiles.group_k) store(to + 8 * filter_floats, sum.z, sum.w);
  }
}

/// Sums of dy that a lane has: of eight filters.
struct BiasSums {
  float sums[8] = {};  ///< of neighbours

  /// Adds eight elements.
  template <class T>
  __device__ void add(const uint4& eight) {
    const std::uint32_t words[] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[2 * i] += to_float(T{static_cast<std::uint16_t>(words[i])});
      sums[2 * i + 1] += to_float(T{static_cast<std::uint16_t>(words[i] >> 16)});
    }
  }

  /// Adds a warp's share of a band: of `pixels` in a stage, as TMA leaves them.
  template <class T>
  __device__ void add(const char* dy, int pixels, int warp) {
    constexpr int kTogether = 4;  // loaded before the first is added
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first = 4 * warp + lane / 8;
    // A pixel's pieces of 16 bytes are permuted by its number.
    for (int from = first; from < pixels; from += 4 * kBiasWarps * kTogether) {
      uint4 more[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int pixel = from + 4 * kBiasWarps * i;
        more[i] = pixel < pixels ? *reinterpret_cast<const uint4*>(dy + pixel * kDyBytes +
                                                                   ((lane % 8 ^ pixel % 8) << 4))
                                 : uint4{};
      }
#pragma unroll
      for (const uint4& eight : more) add<T>(eight);
    }
  }

  /// Sends the warp's accumulators to the first block of the cluster: `parts` is [from
  /// blocks][warps] [kTapFilters]. Called by the whole warp.
  __device__ void send(const ClusterPlace& place, int warp, float* parts, std::uint64_t* arrived) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (float& sum : sums) {
      sum += __shfl_xor_sync(~0u, sum, 8);
      sum += __shfl_xor_sync(~0u, sum, 16);
    }
    if (lane >= 8) return;
    float* const to =
        parts + (static_cast<int>(place.rank) * kBiasWarps + warp) * kTapFilters + lane * 8;
#pragma unroll
    for (int i = 0; i < 8; i += 4)
      send_four(place, 0, to + i, {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}, arrived);
  }
};

/// Adds up what has arrived of db, and stores it in part `part`. Called by a warp of the cluster's
/// first block.
__device__ inline void add_and_store_bias(const ClusterPlace& place, const float* parts,
                                          const TapTiles& tiles, const TapTile& tile,
                                          const SumParts& db, int part) {
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kTapFilters; i += 32) {
    float sum = 0.0f;
    for (unsigned from = 0; from < place.blocks() * kBiasWarps; ++from)
      sum += parts[from * kTapFilters + i];
    if (tile.k + i < tiles.group_k)
      db.from[part * db.apart() + tile.group * tiles.group_k + tile.k + i] = sum;
  }
}

/// Blocks after those of the tiles, which add up dy from memory: each of some neighbouring filters,
/// in eights, so that db has one part.
struct BiasBlocks {
  int blocks,       ///< none: warps of the other blocks do it
      eights_each;  ///< of filters, a block

  /// Those that a GPU has left beside a plan's blocks, if they are done before these.
  /// @param by_tma dy is aligned to 16 bytes, and has filters in eights
  BiasBlocks(const Conv2dProblem& conv, const ClusterPlan& plan, bool by_tma)
      : blocks(0), eights_each(0) {
    constexpr double kBytes = 16, kBeginCycles = 4000;  // from L2 to an SM, a cycle
    const int sms = multiprocessors();
    const std::int64_t left =
        sms - TapTiles(conv, plan.channels).count() * plan.cluster * plan.parts;
    if (!by_tma || plan.parts > 1 || left < plan.cluster) return;
    const int eights = conv.K / 8;
    const int each = ceil_div<int>(eights, static_cast<int>(std::min<std::int64_t>(left, eights)));
    const double bytes = 16.0 * each * conv.N * conv.P * conv.Q;
    if (each > kTapConsumers || kBeginCycles + bytes / kBytes > cycles_of(conv, plan, sms)) return;
    eights_each = each;
    blocks = ceil_div(ceil_div(eights, each), plan.cluster) * plan.cluster;
    if (blocks > left) blocks = 0;
  }

  /// db of block `block` of these. Called by all threads of a block, with as many fours of floats
  /// as twice their number in `shared`.
  template <class T>
  __device__ void add(const T* dy, const TapTiles& tiles, const Bands& bands, int block,
                      float4* shared, float* db) const {
    const std::int64_t pixels = std::int64_t{bands.N} * bands.P * bands.Q;
    const int K = tiles.groups * tiles.group_k;
    const int first = block * eights_each, count = min(eights_each, K / 8 - first);
    if (count <= 0) return;
    const int thread = static_cast<int>(threadIdx.x), shares = static_cast<int>(blockDim.x) / count;
    const int share = thread / count, eight = thread % count;
    BiasSums sums;
    if (share < shares) {
      const auto* const from = reinterpret_cast<const uint4*>(dy) + first + eight;
      constexpr int kTogether = 8;  // loaded before the first is added
      for (std::int64_t pixel = share; pixel < pixels; pixel += kTogether * shares) {
        uint4 more[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const std::int64_t other = pixel + i * shares;
          more[i] = other < pixels ? from[other * (K / 8)] : uint4{};
        }
#pragma unroll
        for (const uint4& eight_numbers : more) sums.add<T>(eight_numbers);
      }
    }
    const float* const of = sums.sums;
    shared[2 * thread] = {of[0], of[1], of[2], of[3]};
    shared[2 * thread + 1] = {of[4], of[5], of[6], of[7]};
    __syncthreads();  // separates these stores from the loads below
    const auto* const all = reinterpret_cast<const float*>(shared);
    for (int i = thread; i < 8 * count; i += static_cast<int>(blockDim.x)) {
      float sum = 0.0f;
      for (int other = 0; other < shares; ++other) sum += all[other * 8 * count + i];
      db[8 * first + i] = sum;
    }
  }
};

/// What there is to compute, and where it goes.
struct TapWork {
  TapTiles tiles;          ///< of dw
  Bands bands;             ///< of the pixels
  int bands_each, longer;  ///< of a block; the first `longer` blocks of a tile have one more
  Padding pad;             ///< of x
  TapParts parts;          ///< or dw and db themselves, see there
  bool pairs;              ///< two neighbouring channels of dw can be stored at once
  BiasBlocks bias;         ///< those without a tile
  unsigned log_cluster;  ///< to base 2, of the blocks that add up their sums before they store them
};

/// Where a plan's sums go, without a place: one part of both is dw and db themselves.
inline TapParts parts_of(const Conv2dProblem& conv, const ClusterPlan& plan,
                         const BiasBlocks& bias) {
  TapParts parts(conv, {plan.channels, plan.bands, plan.parts});
  parts.db.parts = bias.blocks > 0 ? 1 : plan.parts * TapTiles(conv, plan.channels).c;
  return parts;
}

/// Of dynamic shared memory: for the stages, or the sums that take their place.
inline std::size_t shared_bytes_of(const TapWork& work) {
  const std::int64_t stages = std::int64_t{work.bands.stages} * work.bands.bytes;
  const std::int64_t sums = work.log_cluster > 0 ? tile_bytes(work.tiles.channels) : 0;
  const std::int64_t of_dy = work.bias.blocks > 0 ? 32 * kTapThreads : 0;
  return static_cast<std::size_t>(std::max({stages, sums, of_dy}) + gemm::kAtom + kBiasBytes);
}

/// Adds up dy from the stages, band by band, alternating with the tiles of other channels, and
/// stores the sums of the cluster. Called by warp `warp` of kBiasWarps, of a block of part `part`
/// of a tile, which has `count` bands from `begin` on.
/// @param base of the aligned shared memory
template <class T>
__device__ void add_up_dy(const TapWork& work, const ClusterPlace& place, const TapTile& tile,
                          int part, int begin, int count, char* base, int warp,
                          TapBarriers& barriers) {
  const Bands& bands = work.bands;
  auto* const parts = reinterpret_cast<float*>(base);
  const char* const dy = base + kBiasBytes + bands.x_bytes;
  Band band = bands.at(begin);
  int stage = 0, turn = begin % work.tiles.c;
  unsigned phase = 0;
  BiasSums sums;
  for (int i = 0; i < count; ++i, bands.advance(band)) {
    ptx::mbarrier_wait(&barriers.full[stage], phase);
    if (turn == tile.share)
      sums.add<T>(dy + stage * bands.bytes, bands.images * bands.rows_of(band) * bands.columns,
                  warp);
    __syncwarp();  // separates all lanes' loads from the arrival
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&barriers.empty[stage]);
    if (++turn == work.tiles.c) turn = 0;
    if (++stage == bands.stages) stage = 0, phase ^= 1;
  }
  if (place.blocks() > 1) tell_all(place, &barriers.all_read);
  sums.send(place, warp, parts, &barriers.bias_arrived);
  if (place.rank != 0) return;
  ptx::named_barrier_sync(2, 32 * kBiasWarps);  // separates this block's stores from the loads
  if (warp != 0) return;
  ptx::mbarrier_wait(&barriers.bias_arrived, 0);
  add_and_store_bias(place, parts, work.tiles, tile, work.parts.db,
                     part * work.tiles.c + tile.share);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
