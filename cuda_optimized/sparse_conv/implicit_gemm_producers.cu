/// @file implicit_gemm_producers.cu
/// @brief sparse_conv with producer warps: four warps gather, two warpgroups multiply, and a stage
/// holds as many taps as fit 128 bytes.
///
/// - Before: implicit_gemm_wgmma.cu (all threads copy, all multiply, one tap a stage)
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** Who copies has nothing to multiply, and who multiplies has nothing to look up.
/// Four warps find taps and rows and ask for them; two warpgroups wait for whole stages, and do
/// nothing but wgmma. No barrier of the block stands between them, only two kinds of mbarrier a
/// stage:
///
///     producers, 32 rows a warp            stages               consumers, 64 rows each
///     wait for empty[s]               +---------------+         wait for full[s]
///     rows: cp.async, 16 bytes each ->| tap 3 | tap 7 |         wgmma, tap by tap
///     weights: one bulk copy a tap  ->| 32 channels   |         all but this stage's are done:
///     arrive at full[s] when landed   +---------------+---->    arrive at empty[s - 1]
///
/// A producer does not wait for its copies either: `cp.async.mbarrier.arrive.noinc` arrives in its
/// place when they have landed. So all stages may be on their way at once. And blocks stay: while
/// the consumers store a tile, the producers are in the next one, of which a counter tells the
/// number. Tiles are handed out from the end of the order, where the most taps are.
///
/// With 16 or 32 channels of 16 bits a row has 32 or 64 bytes. A stage of rows of 128 bytes would
/// be half zeros; so a stage holds four taps or two, each a tile of its own with rows as short as
/// that, for which wgmma has swizzles, too. Which taps share a stage differs from tile to tile:
/// that is why they are not one wide row. A list that does not fill its last stage is filled up
/// with a tap that no row has.
///
/// A lane owns a row of the tile: it has the row's mask in a register, and looks up an index only
/// where the row has the tap, one stage ahead. The others of its warp get it by a shuffle. A kernel
/// before this one puts the weights where wgmma wants them, in blocks of a tap, permuted, and
/// rounds float32 to TF32, weights and features.
///
/// **Expect.** Simulated sweep of 125,562 voxels, 3^3, 6.9 pairs a row, H200, 16 bits. A tile of
/// 128 rows has 13.5 taps. From L2, in MB:
///
///     channels   rows   weights   indices   y    all    at 4 TB/s   wgmma    stages of a tile
///        16       28       7        28      4     67      17 us      2 us      4, of 4 taps
///        32       56      27        28      8    119      30 us      5 us      7, of 2 taps
///        64      111     108        28     16    263      66 us     17 us     14, of 1 tap
///       128      223     230        28     32    513     128 us     64 us     14 x 2, of 256 rows
///
/// (An index is 4 bytes of a sector of 32. Tiles of 256 rows halve the weights, which are half of
/// all bytes at 128 channels.) A warp issues some 50 instructions for its 32 rows of a tap at 32
/// channels: 3 us of all issue slots. So bytes in flight decide: an SM has 200 KB of stages, of
/// which half are rows that exist. Predicted, with 3 us for a second launch: 22, 34, 70 and 132 us;
/// for the sweep of 913,903 voxels, with 12.8 pairs a row, 11 times that. TF32 has twice the bytes
/// of rows and weights, and a pass over the features before.
/// **Costs.** 384 threads and 73 to 196 KB of shared memory a block. A workspace for the weights
/// and a copy of the features, which float32 and unaligned rows need. All 128 rows of a tile are
/// multiplied if any of them needs the tap; in two halves of the taps it would be a third less, and
/// one more launch with sums that wait in memory: only TF32 with over 64 channels does so, where
/// products are dear. Declined: float32 that must not be rounded; GPUs other than compute
/// capability 9.0; over 1024 taps.
/// **Try.** Tune the table of shapes. Does a fifth stage pay, or a third block on an SM?
#include <tuple>

#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"
#include "cuda_optimized/gemm/wgmma_tile.cuh"
#include "cuda_optimized/sparse_conv/implicit_gemm_mma.cuh"
#include "cuda_optimized/sparse_conv/warpgroup_sums.cuh"
#include "cuda_optimized/sparse_dgrad/tile_taps.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

constexpr int kProducerWarps = 4, kProducers = 32 * kProducerWarps;
constexpr int kConsumerGroups = 2, kConsumers = 128 * kConsumerGroups;
constexpr int kBlockThreads = kConsumers + kProducers;
constexpr int kMaxWords = kMaxTaps / 32;
constexpr int kCopyThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More numbers than these take: threads stride.

/// A block's tile and its stages. A stage has kTaps tiles of rows, and behind them as many of
/// weights, all with rows of kTapBytes.
/// @tparam kTapBytes_ channels of a row that lie in a stage: 32, 64 or 128 bytes
/// @tparam kTaps_ of a stage; above 1 only where kTapBytes are all channels
/// @tparam kM rows of a tile, a multiple of 128
/// @tparam kBlocksPerSm that shall fit
/// @tparam kSplit_ whether the taps are done in two halves, each with an order of its own
template <class T, int kTapBytes_, int kTaps_, int kN, int kM, int kStages_, int kBlocksPerSm,
          bool kSplit_>
struct StageShape {
  using Number = T;
  static constexpr int kTapBytes = kTapBytes_, kTaps = kTaps_, N = kN, M = kM;
  static constexpr int kStages = kStages_, kBlocks = kBlocksPerSm;
  static constexpr bool kSplit = kSplit_;
  static constexpr int kSize = static_cast<int>(sizeof(T));
  static constexpr int kDepth = kTapBytes / kSize;  ///< channels of a tap in a stage
  static constexpr int kPieces = kTapBytes / kPiece;
  static constexpr int kBytesA = M * kTapBytes, kBytesB = N * kTapBytes;  ///< of a tap
  static constexpr int kStageBytes = kTaps * (kBytesA + kBytesB);
  static constexpr int kRowTiles = M / kConsumerGroups / kWarpgroupRows;  ///< of a consumer
  static constexpr int kLaneRows = M / kProducers;                        ///< that a lane owns
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + gemm::kAtom;
  /// Registers of a thread, where they are not shared out evenly: sums of 256 x 128 take more than
  /// that, and so does looking up four taps where three blocks are on an SM. 0: evenly.
  static constexpr int kConsumerRegisters = kRowTiles * N >= 256 ? 216 : kBlocks == 3 ? 40 : 0;
  static constexpr int kProducerRegisters = kRowTiles * N >= 256 ? 72 : kBlocks == 3 ? 88 : 0;
  static constexpr int kEvenly =
      65536 / kBlocks / kBlockThreads / 8 * 8;  ///< what the compiler gives
  static_assert(kConsumers * kConsumerRegisters + kProducers * kProducerRegisters <=
                kBlockThreads * kEvenly);
  static_assert(kStageBytes % gemm::kAtom == 0 && kBytesB % (8 * kTapBytes) == 0);
  static_assert(!kSplit || std::is_same_v<T, float>, "the first half's sums wait in y");
  static_assert(kBlocks * (kSharedBytes + 2304) <= 227 * 1024, "shared memory of an SM");
};

/// All shapes, in order: a problem gets the first one that has all of its channels, or the last.
/// What is here is predicted; tune it by measuring.
template <class T>
using Shapes = std::tuple<
    //         bytes taps   N    M stages blocks split
    StageShape<T, 32, 4, 16, 128, 4, 3, false>,  // 16 channels of 16 bits
    StageShape<T, 32, 4, 32, 128, 4, 2, false>,
    StageShape<T, 64, 2, 16, 128, 4, 3, false>,  // 16 of float32
    StageShape<T, 64, 2, 32, 128, 5, 2, false>,  // 32 of 16 bits
    StageShape<T, 64, 2, 64, 128, 4, 2, false>,
    StageShape<T, 128, 1, 32, 128, 5, 2, false>,  // 32 of float32
    StageShape<T, 128, 1, 64, 128, 4, 2, false>,  // 64
    StageShape<T, 128, 1, 128, 256, 4, 1, std::is_same_v<T, float>>>;

/// The tiles of all rows, for all taps or half of them.
template <class T>
struct Pass {
  GatheredRows<T> conv;    ///< `from` and `weights` as prepare() leaves them
  int pitch;               ///< numbers of a row of `from`
  int chunks;              ///< stages that a row's channels take
  int first_tap, end_tap;  ///< those that count
  std::int64_t tiles;      ///< of rows and channels, fewer than 2^31
  int tiles_m, tiles_n;    ///< down, and side by side
  const float* add;        ///< [rows][channels]: sums of the taps before, or null
  float* sums;             ///< [rows][channels]: where these wait for others; null: they go to y
  unsigned* handed_out;    ///< tiles beyond the blocks' first ones
};

/// Where a tile begins.
struct Corner {
  std::int64_t row;
  int channel;
};
template <class Shape>
__device__ Corner corner_of(const Pass<typename Shape::Number>& pass, std::int64_t tile) {
  // The last rows of the order have the most taps: their tiles begin first.
  const auto number = static_cast<int>(tile), m = number / pass.tiles_n;
  return {std::int64_t{pass.tiles_m - 1 - m} * Shape::M, (number - m * pass.tiles_n) * Shape::N};
}

/// A stage's place in the ring, and how often the ring has been gone through, modulo 2.
template <class Shape>
struct Place {
  int stage = 0;
  unsigned round = 0;
  __device__ void advance() {
    if (++stage < Shape::kStages) return;
    stage = 0;
    round ^= 1;
  }
};

/// What producers and consumers share, beside the stages.
template <class Shape>
struct Ring {
  std::uint64_t full[Shape::kStages],  ///< all copies have landed
      empty[Shape::kStages];           ///< all consumer warps have read it
  /// What a stage is: the tile's number, whether it is the tile's last, and the block's.
  struct Label {
    std::int64_t tile;
    bool ends_tile, ends_block;
  } label[Shape::kStages];
  // Of the producers alone; two of each, for this tile and the next one.
  unsigned met[2][kMaxWords][kProducerWarps];  ///< taps that any row of a warp has
  std::int64_t following[2];                   ///< the tile after this one
};

/// A producer's way through the taps of a tile.
template <class Shape>
class TapWalk {
 public:
  /// The taps of a stage, and the inputs of this lane's rows at them, or -1.
  struct Group {
    int count = 0;
    int tap[Shape::kTaps];
    std::int32_t index[Shape::kTaps][Shape::kLaneRows];
  };

  /// @param rows this lane's, or -1
  __device__ TapWalk(const Pass<typename Shape::Number>& pass, const std::int32_t* rows)
      : pass_(pass), words_(mask_words(pass.conv.taps)) {
#pragma unroll
    for (int i = 0; i < Shape::kLaneRows; ++i) rows_[i] = rows[i];
  }

  /// Stores which taps any row of this warp has. Goes from the last word to the first, whose bits
  /// stay in registers.
  __device__ void find(unsigned (&met)[kMaxWords][kProducerWarps], int warp) {
    for (int word = words_ - 1; word >= 0; --word) {
      unsigned any = read(word);
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        any |= __shfl_xor_sync(0xFFFFFFFF, any, distance);
      }
      if (threadIdx.x % 32 == 0) met[word][warp] = any;
    }
  }
  /// After all warps have found theirs, and before fetch().
  __device__ void begin(const unsigned (&met)[kMaxWords][kProducerWarps]) {
    met_ = met;
    left_ = all_of(0);
  }

  /// The next taps; none where all are done. Beyond the last one a tap that no row of the tile
  /// uses.
  __device__ void fetch(Group& group) {
    group.count = 0;
    int tap = pass_.first_tap;
#pragma unroll
    for (int t = 0; t < Shape::kTaps; ++t) {
      while (left_ == 0 && word_ + 1 < words_) {
        read(++word_);
        left_ = all_of(word_);
      }
      const bool exists = left_ != 0;
      const int bit = exists ? __ffs(static_cast<int>(left_)) - 1 : 0;
      if (exists) tap = 32 * word_ + bit;
      group.tap[t] = tap;
#pragma unroll
      for (int i = 0; i < Shape::kLaneRows; ++i) {
        std::int32_t index = -1;
        if (exists && (mine_[i] >> bit & 1u) != 0) {
          index = pass_.conv.table[std::int64_t{tap} * pass_.conv.rows + rows_[i]];
        }
        group.index[t][i] = index;
      }
      group.count += exists;
      left_ &= left_ - 1;
    }
  }

 private:
  /// Reads a word of the rows' masks. @returns what any of them has
  __device__ unsigned read(int word) {
    const unsigned wanted = sparse_dgrad::taps_between(pass_.first_tap, pass_.end_tap, word);
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < Shape::kLaneRows; ++i) {
      mine_[i] = 0;
      if (rows_[i] >= 0) {
        const std::int64_t at = std::int64_t{rows_[i]} * words_ + word;
        mine_[i] = static_cast<unsigned>(pass_.conv.mask[at]) & wanted;
      }
      any |= mine_[i];
    }
    return any;
  }
  __device__ unsigned all_of(int word) const {
    unsigned all = 0;
#pragma unroll
    for (int warp = 0; warp < kProducerWarps; ++warp) all |= met_[word][warp];
    return all;
  }

  const Pass<typename Shape::Number>& pass_;
  const unsigned (*met_)[kProducerWarps] = nullptr;
  int words_, word_ = 0;
  unsigned left_ = 0;                     // of word_, taps of the tile to come
  unsigned mine_[Shape::kLaneRows] = {};  // of word_, taps of this lane's rows
  std::int32_t rows_[Shape::kLaneRows];
};

/// The rows that this lane owns in a tile, or -1.
template <class Shape>
__device__ void own_rows(const Pass<typename Shape::Number>& pass, std::int64_t tile,
                         std::int32_t (&rows)[Shape::kLaneRows]) {
  const int thread = static_cast<int>(threadIdx.x) - kConsumers;
#pragma unroll
  for (int i = 0; i < Shape::kLaneRows; ++i) {
    const std::int64_t at = tile < pass.tiles
                                ? corner_of<Shape>(pass, tile).row +
                                      thread / 32 * 32 * Shape::kLaneRows + 32 * i + thread % 32
                                : pass.conv.rows;
    rows[i] = at < pass.conv.rows ? pass.conv.order[at] : -1;
  }
}

/// Asks for this warp's rows of a tap: channels `s0` and up.
/// @param index of the rows that this lane owns
template <class Shape>
__device__ void ask_for_rows(const Pass<typename Shape::Number>& pass,
                             const std::int32_t (&index)[Shape::kLaneRows], int s0, char* a) {
  constexpr int kAtOnce = 32 / Shape::kPieces;  // rows of a warp's copy
  const int thread = static_cast<int>(threadIdx.x) - kConsumers, lane = thread % 32;
  const int piece = lane % Shape::kPieces, below = lane / Shape::kPieces;
  const int s = s0 + piece * (kPiece / Shape::kSize);
  const bool inside = s < pass.pitch;
#pragma unroll
  for (int i = 0; i < Shape::kLaneRows; ++i) {
#pragma unroll
    for (int j = 0; j < 32; j += kAtOnce) {
      const std::int32_t met = __shfl_sync(0xFFFFFFFF, index[i], j + below);
      const int row = (thread / 32 * Shape::kLaneRows + i) * 32 + j + below;
      const bool exists = met >= 0 && inside;
      ptx::cp_async<kPiece>(
          a + row * Shape::kTapBytes + (piece ^ permutation<Shape::kPieces>(row)) * kPiece,
          pass.conv.from + (exists ? std::int64_t{met} * pass.pitch + s : 0), exists ? kPiece : 0);
    }
  }
}

/// What the producer warps do.
template <class Shape>
__device__ void produce(const Pass<typename Shape::Number>& pass, Ring<Shape>& ring, char* stages) {
  const int thread = static_cast<int>(threadIdx.x) - kConsumers;
  Place<Shape> place;
  std::int64_t tile = blockIdx.x;
  std::int32_t rows[Shape::kLaneRows];
  own_rows<Shape>(pass, tile, rows);
  for (int turn = 0; tile < pass.tiles; turn ^= 1) {
    std::int64_t following = 0;
    if (thread == 0) following = std::int64_t{gridDim.x} + atomicAdd(pass.handed_out, 1u);
    TapWalk<Shape> walk(pass, rows);
    walk.find(ring.met[turn], thread / 32);
    if (thread == 0) ring.following[turn] = following;
    // Separates these stores from the loads below. Who stores there next, two tiles on, has been
    // here for the tile between, and so have all who read now.
    ptx::named_barrier_sync(1, kProducers);
    following = ring.following[turn];
    own_rows<Shape>(pass, following, rows);  // on their way until the next tile begins
    walk.begin(ring.met[turn]);
    const int n = corner_of<Shape>(pass, tile).channel / Shape::N;

    typename TapWalk<Shape>::Group now, ahead;
    walk.fetch(ahead);
    do {
      now = ahead;
      walk.fetch(ahead);
      for (int chunk = 0; chunk < pass.chunks; ++chunk) {
        // Until the consumers have read what the stage held a round ago; at once in round 0.
        ptx::mbarrier_wait(&ring.empty[place.stage], place.round ^ 1);
        char* const a = stages + place.stage * Shape::kStageBytes;
        char* const b = a + Shape::kTaps * Shape::kBytesA;
        std::uint64_t* const full = &ring.full[place.stage];
        if (thread == 0) {
          const bool ends_tile = ahead.count == 0 && chunk + 1 == pass.chunks;
          ring.label[place.stage] = {tile, ends_tile, ends_tile && following >= pass.tiles};
          ptx::mbarrier_arrive_expect_tx(full, Shape::kTaps * Shape::kBytesB);
#pragma unroll
          for (int t = 0; t < Shape::kTaps; ++t) {
            const std::int64_t block =
                (std::int64_t{n} * pass.conv.taps + now.tap[t]) * pass.chunks + chunk;
            ptx::cp_async_bulk(b + t * Shape::kBytesB,
                               pass.conv.weights + block * (Shape::N * Shape::kDepth),
                               Shape::kBytesB, full);
          }
        }
#pragma unroll
        for (int t = 0; t < Shape::kTaps; ++t) {
          ask_for_rows<Shape>(pass, now.index[t], chunk * Shape::kDepth, a + t * Shape::kBytesA);
        }
        ptx::cp_async_mbarrier_arrive_noinc(full);
        place.advance();
      }
    } while (ahead.count != 0);
    tile = following;
  }
}

/// Stores two neighbouring sums, or adds them to others first.
template <class T>
__device__ void store_sums(const Pass<T>& pass, std::int32_t row, int channel,
                           const float (&values)[2], bool whole) {
  const GatheredRows<T>& conv = pass.conv;
  const std::int64_t at = std::int64_t{row} * conv.channels + channel;
  float sums[2] = {values[0], values[1]};
  T results[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!whole && channel + i >= conv.channels) break;
    if (pass.add != nullptr) sums[i] += pass.add[at + i];
    const float bias = conv.bias != nullptr ? conv.bias[channel + i] : 0.0f;
    results[i] = rounded_to<T>(activated(conv.activation, sums[i] + bias));
    if (whole) continue;
    if (pass.sums != nullptr) {
      pass.sums[at + i] = sums[i];
    } else {
      conv.to[at + i] = results[i];
    }
  }
  if (!whole) return;
  if (pass.sums != nullptr) {
    *reinterpret_cast<float2*>(pass.sums + at) = float2{sums[0], sums[1]};
  } else {
    using Together = std::conditional_t<sizeof(T) == 4, float2, std::uint32_t>;
    Together together;
    std::memcpy(&together, results, sizeof together);
    *reinterpret_cast<Together*>(conv.to + at) = together;
  }
}

/// What the consumer warps do.
/// @param pairs whether two sums side by side can be stored at once
template <class Shape>
__device__ void consume(const Pass<typename Shape::Number>& pass, Ring<Shape>& ring,
                        const char* stages, bool pairs) {
  using T = typename Shape::Number;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int first_row = thread / 128 * Shape::kRowTiles * kWarpgroupRows;  // of the warpgroup
  const int own_row = first_row + thread % 128 / 32 * 16 + lane / 4;
  Place<Shape> place;
  for (bool more = true; more;) {
    // The tile's number comes with its first stage. Its rows are needed at the end.
    ptx::mbarrier_wait(&ring.full[place.stage], place.round);
    const Corner corner = corner_of<Shape>(pass, ring.label[place.stage].tile);
    std::int32_t rows[Shape::kRowTiles][2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = corner.row + own_row + i * kWarpgroupRows + 8 * half;
        rows[i][half] = at < pass.conv.rows ? pass.conv.order[at] : -1;
      }
    }
    WarpgroupSums<T, Shape::N> sums[Shape::kRowTiles];
    int last_stage = -1;
    for (bool ends = false; !ends;) {
      ptx::mbarrier_wait(&ring.full[place.stage], place.round);
      ptx::fence_proxy_async();  // threads have copied what wgmma will read
      ends = ring.label[place.stage].ends_tile;
      more = !ring.label[place.stage].ends_block;
      const char* const a = stages + place.stage * Shape::kStageBytes;
      const char* const b = a + Shape::kTaps * Shape::kBytesA;
      ptx::wgmma_fence();
#pragma unroll
      for (int t = 0; t < Shape::kTaps; ++t) {
        constexpr int kGroup = 8 * Shape::kTapBytes;
        const std::uint64_t left = ptx::wgmma_descriptor(
            a + t * Shape::kBytesA + first_row * Shape::kTapBytes, kGroup, Shape::kTapBytes);
        const std::uint64_t right =
            ptx::wgmma_descriptor(b + t * Shape::kBytesB, kGroup, Shape::kTapBytes);
#pragma unroll
        for (int deep = 0; deep < Shape::kTapBytes; deep += kDeep) {
#pragma unroll
          for (int i = 0; i < Shape::kRowTiles; ++i) {
            // Descriptors count in units of 16 bytes.
            const int below = i * kWarpgroupRows * Shape::kTapBytes;
            sums[i].add(left + static_cast<std::uint64_t>((below + deep) / 16),
                        right + static_cast<std::uint64_t>(deep / 16));
          }
        }
      }
      ptx::wgmma_commit_group();
      // All but this stage's products are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);
      last_stage = place.stage;
      place.advance();
    }
    ptx::wgmma_wait_group<0>();
    if (lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);

    const bool whole = pairs && corner.channel + Shape::N <= pass.conv.channels;
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
      sums[i].for_each([&](int row, int channel, const auto& values) {
        const std::int32_t to = row < 8 ? rows[i][0] : rows[i][1];
        channel += corner.channel;
        if (to < 0 || channel >= pass.conv.channels) return;
        store_sums(pass, to, channel, values, whole);
      });
    }
  }
}

/// Gives registers to the others, or takes theirs. All warps of a warpgroup call it.
template <int kRegisters, int kBefore>
__device__ void set_registers() {
  if constexpr (kRegisters > kBefore) {
    ptx::setmaxnreg_inc<kRegisters>();
  } else if constexpr (kRegisters > 0 && kRegisters < kBefore) {
    ptx::setmaxnreg_dec<kRegisters>();
  }
}

/// Block kBlockThreads; grid: tiles, or fewer blocks.
template <class Shape>
__global__ void __launch_bounds__(kBlockThreads, Shape::kBlocks)
    gather_and_multiply(Pass<typename Shape::Number> pass, bool pairs) {
  __shared__ Ring<Shape> ring;
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      // Each producer when its copies have landed, and the one that asks for weights.
      ptx::mbarrier_init(&ring.full[i], kProducers + 1);
      ptx::mbarrier_init(&ring.empty[i], kConsumers / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers
  if (threadIdx.x < kConsumers) {
    set_registers<Shape::kConsumerRegisters, Shape::kEvenly>();
    consume(pass, ring, stages, pairs);
  } else {
    set_registers<Shape::kProducerRegisters, Shape::kEvenly>();
    produce(pass, ring, stages);
  }
}

/// What is made before.
template <class T>
struct Preparation {
  int taps, summed, channels, chunks, tiles_n;
  const T *weights, *features;  ///< [taps][summed][channels], [rows][summed]
  T* blocks;                    ///< [tiles_n][taps][chunks]: weights [N][kDepth], permuted
  int pitch;                    ///< of a row of `copy`
  std::int64_t numbers;         ///< of `copy` [rows][pitch]; 0: there is none
  T* copy;                      ///< features as factors, zeros behind the last channel
  unsigned* handed_out;         ///< [2]: zeroed
};

/// Block kCopyThreads, any one-dimensional grid.
template <class Shape>
__global__ void prepare(Preparation<typename Shape::Number> p) {
  using T = typename Shape::Number;
  const int thread = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0 && thread < 2) p.handed_out[thread] = 0;
  const std::int64_t blocks = std::int64_t{p.tiles_n} * p.taps * p.chunks;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const auto chunk = static_cast<int>(block % p.chunks);
    const std::int64_t tap = block / p.chunks % p.taps;
    const auto n0 = static_cast<int>(block / p.chunks / p.taps) * Shape::N;
    for (int i = thread; i < Shape::N * Shape::kDepth; i += kCopyThreads) {
      constexpr int kCount = kPiece / Shape::kSize;
      const int n = i % Shape::N, k = i / Shape::N;
      const int c = n0 + n, s = chunk * Shape::kDepth + k;
      const int place = (k / kCount ^ permutation<Shape::kPieces>(n)) * kCount + k % kCount;
      T number{};
      if (s < p.summed && c < p.channels) {
        number = as_factor(p.weights[(tap * p.summed + s) * p.channels + c]);
      }
      p.blocks[block * (Shape::N * Shape::kDepth) + n * Shape::kDepth + place] = number;
    }
  }
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * kCopyThreads;
  std::int64_t i = std::int64_t{blockIdx.x} * kCopyThreads + thread;
  for (; i < p.numbers; i += grid_threads) {
    if (p.pitch == p.summed) {
      p.copy[i] = as_factor(p.features[i]);
    } else {
      const std::int64_t row = i / p.pitch, s = i - row * p.pitch;
      p.copy[i] = s < p.summed ? as_factor(p.features[row * p.summed + s]) : T{};
    }
  }
}

/// Calls body(shape) with the first shape that has all channels, or the last.
template <class T, class Body>
void with_shape(const SparseConvProblem& conv, const Body& body) {
  bool done = false;
  const auto maybe = [&]<class Shape>(Shape shape, bool is_last) {
    const bool fits =
        (conv.Cin <= Shape::kDepth || Shape::kTapBytes == 128) && conv.Cout <= Shape::N;
    if (done || !(fits || is_last)) return;
    done = true;
    body(shape);
  };
  std::apply(
      [&](auto... shapes) {
        std::size_t left = sizeof...(shapes);
        (maybe(shapes, --left == 0), ...);
      },
      Shapes<T>{});
}

/// Where things lie in the workspace, in bytes; each begins at a multiple of 256.
struct Layout {
  std::int64_t blocks, copy, end;

  template <class Shape>
  static Layout of(Shape, const SparseConvProblem& conv) {
    constexpr int kCount = kPiece / Shape::kSize;
    const std::int64_t chunks = ceil_div(conv.Cin, Shape::kDepth);
    const std::int64_t weights = std::int64_t{ceil_div(conv.Cout, Shape::N)} * conv.book.KV *
                                 chunks * Shape::N * Shape::kTapBytes;
    const std::int64_t features =
        std::int64_t{conv.N} * ceil_div(conv.Cin, kCount) * kCount * Shape::kSize;
    const auto rounded = [](std::int64_t bytes) {
      return ceil_div(bytes, std::int64_t{256}) * 256;
    };
    Layout layout{};
    layout.blocks = 256;  // behind the counters
    layout.copy = layout.blocks + rounded(weights);
    layout.end = layout.copy + rounded(features);
    return layout;
  }
};

template <class Body>
void with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f16: return body(Half{});
    case DType::bf16: return body(BFloat16{});
    default: return body(float{});
  }
}

Declined supports(const SparseConvProblem& conv) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  if (std::int64_t{conv.M} / 128 * ceil_div(conv.Cout, 128) >= 1 << 30) {
    return "2^30 tiles or more of 128 rows and 128 channels";
  }
  return gemm::why_no_wgmma();
}

std::size_t workspace_bytes(const SparseConvProblem& conv) {
  std::int64_t bytes = 0;
  with_type(conv.dtype, [&]<class T>(T) {
    with_shape<T>(conv, [&](auto shape) { bytes = Layout::of(shape, conv).end; });
  });
  return static_cast<std::size_t>(bytes);
}

template <class Shape>
void run_with(Shape shape, const SparseConvProblem& problem, const Arguments& arrays) {
  using T = typename Shape::Number;
  constexpr int kCount = kPiece / Shape::kSize;
  const Layout layout = Layout::of(shape, problem);
  char* const workspace = arrays.workspace<char>();
  const T* const features = arrays.in<T>("features");
  const bool copied =
      std::is_same_v<T, float> || problem.Cin % kCount != 0 || !begins_at_piece(features);
  Preparation<T> preparation = {.taps = problem.book.KV,
                                .summed = problem.Cin,
                                .channels = problem.Cout,
                                .chunks = ceil_div(problem.Cin, Shape::kDepth),
                                .tiles_n = ceil_div(problem.Cout, Shape::N),
                                .weights = arrays.in<T>("weights"),
                                .features = features,
                                .blocks = reinterpret_cast<T*>(workspace + layout.blocks),
                                .pitch = ceil_div(problem.Cin, kCount) * kCount,
                                .numbers = 0,
                                .copy = reinterpret_cast<T*>(workspace + layout.copy),
                                .handed_out = reinterpret_cast<unsigned*>(workspace)};
  if (copied) preparation.numbers = std::int64_t{problem.N} * preparation.pitch;
  const std::int64_t blocks =
      std::int64_t{preparation.tiles_n} * preparation.taps * preparation.chunks;
  launch(
      prepare<Shape>,
      {blocks_for(std::max(blocks * kCopyThreads, preparation.numbers), kCopyThreads, kMaxBlocks),
       kCopyThreads},
      preparation);

  Pass<T> work = {.conv = gathered_rows<T>(problem, arrays),
                  .pitch = preparation.pitch,
                  .chunks = preparation.chunks,
                  .first_tap = 0,
                  .end_tap = problem.book.KV,
                  .tiles = ceil_div<std::int64_t>(problem.M, Shape::M) * preparation.tiles_n,
                  .tiles_m = static_cast<int>(ceil_div<std::int64_t>(problem.M, Shape::M)),
                  .tiles_n = preparation.tiles_n,
                  .add = nullptr,
                  .sums = nullptr,
                  .handed_out = preparation.handed_out};
  work.conv.weights = preparation.blocks;
  if (copied) work.conv.from = preparation.copy;
  const bool pairs = problem.Cout % 2 == 0 && begins_at_piece(work.conv.to);
  const auto go = [&] {
    launch(gather_and_multiply<Shape>,
           {blocks_for(work.tiles, 1, std::int64_t{multiprocessors()} * Shape::kBlocks),
            kBlockThreads, Shape::kSharedBytes},
           work, pairs);
  };
  if constexpr (Shape::kSplit) {
    const int middle = first_tap(problem.book.KV, 2, 1);
    if (middle == problem.book.KV) return go();
    work.conv.order = arrays.in<std::int32_t>("split_order");
    work.end_tap = middle;
    work.sums = work.conv.to;
    go();
    work.conv.order += problem.M;
    work.first_tap = middle;
    work.end_tap = problem.book.KV;
    work.add = std::exchange(work.sums, nullptr);
    work.handed_out += 1;
  }
  go();
}

void run(const SparseConvProblem& conv, const Arguments& arrays) {
  with_type(conv.dtype, [&]<class T>(T) {
    with_shape<T>(conv, [&](auto shape) { run_with(shape, conv, arrays); });
  });
}

}  // namespace

Implementation<SparseConvProblem> implicit_gemm_producers() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
