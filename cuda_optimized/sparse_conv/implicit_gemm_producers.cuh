/// @file implicit_gemm_producers.cuh
/// @brief A sparse convolution as a matrix product whose rows producer warps gather for wgmma, as a
/// building block; sparse_conv/implicit_gemm_producers.cu explains it.
#pragma once

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/cuda/early_launch.hpp"
#include "core/with_type.hpp"
#include "cuda_optimized/gemm/wgmma_tile.cuh"
#include "cuda_optimized/sparse_conv/implicit_gemm_mma.cuh"
#include "cuda_optimized/sparse_conv/warpgroup_sums.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

namespace producers {

constexpr int kTileRows = 128;  ///< Of a block; a producer thread owns one of them.
constexpr int kRowTiles = kTileRows / kWarpgroupRows;                    ///< Of the consumers.
constexpr int kConsumers = 128;                                          ///< Threads: a warpgroup.
constexpr int kProducers = kTileRows, kProducerWarps = kProducers / 32;  ///< Another one.
constexpr int kBlockThreads = kConsumers + kProducers;                   ///< Of a block.
constexpr int kMaxWords = kMaxTaps / 32;                                 ///< Of a mask.
constexpr int kCopyThreads = 256;                                        ///< Of prepare().
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More pieces than these take: threads stride.

/// What a stage is, and how many there are. A stage has kTaps tiles of rows, and behind them as
/// many of weights, all with rows of kTapBytes.
/// @tparam kTapBytes_ channels of a row that lie in a stage: 32, 64 or 128 bytes
/// @tparam kTaps_ of a stage; above 1 only where kTapBytes are all channels
/// @tparam kN channels of a block's tile
/// @tparam kBlocksPerSm that should fit
template <class T, int kTapBytes_, int kTaps_, int kN, int kStageCount, int kBlocksPerSm>
struct StageShape {
  using Number = T;                                          ///< Of features and weights.
  static constexpr int kTapBytes = kTapBytes_;               ///< Of a row of a tap.
  static constexpr int kTaps = kTaps_;                       ///< Of a stage.
  static constexpr int N = kN;                               ///< Channels of a tile.
  static constexpr int kStages = kStageCount;                ///< In shared memory.
  static constexpr int kBlocks = kBlocksPerSm;               ///< That should fit on an SM.
  static constexpr int kSize = static_cast<int>(sizeof(T));  ///< Bytes of a number.
  static constexpr int kDepth = kTapBytes / kSize;           ///< Channels of a tap in a stage.
  static constexpr int kCount = kPiece / kSize;              ///< Numbers of a piece.
  static constexpr int kPieces = kTapBytes / kPiece;         ///< Of a row.
  static constexpr int kBytesA = kTileRows * kTapBytes;      ///< Rows of a tap.
  static constexpr int kBytesB = N * kTapBytes;              ///< Weights of a tap.
  static constexpr int kStageBytes = kTaps * (kBytesA + kBytesB);  ///< Of a stage.
  /// Dynamic shared memory of a block.
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes + gemm::kAtom;
  /// What the compiler gives each thread, so that kBlocks fit.
  static constexpr int kEvenly = 65536 / kBlocks / kBlockThreads / 8 * 8;
  /// Registers of a producer, where consumers need more for their sums than producers for their
  /// indices; 0: evenly.
  static constexpr int kProducerRegisters = kRowTiles * N / 2 + 40 > kEvenly ? 56 : 0;
  /// Registers of a consumer: all others.
  static constexpr int kConsumerRegisters =
      kProducerRegisters == 0 ? 0 : 2 * kEvenly - kProducerRegisters;
  static_assert(kConsumers == kProducers && kRowTiles == 2);
  static_assert(kStageBytes % gemm::kAtom == 0 && kBytesB % (8 * kTapBytes) == 0);
  static_assert(kBlocks * (kSharedBytes + 2304) <= 227 * 1024, "shared memory of an SM");
};

/// The tiles of all rows.
template <class T>
struct Pass {
  GatheredRows<T> conv;  ///< `from` and `weights` as prepare() leaves them
  int pitch;             ///< numbers of a row of `from`
  int chunks;            ///< stages that a row's channels take
  int tiles_m, tiles_n;  ///< down, and side by side
  int tiles;             ///< of rows and channels
  unsigned* handed_out;  ///< tiles beyond the blocks' first ones
};

/// Where a tile begins.
struct Corner {
  std::int64_t row;  ///< Its place in the order.
  int channel;       ///< The first one.
};
/// The corner of a tile, by its number.
template <class Shape>
__device__ Corner corner_of(const Pass<typename Shape::Number>& pass, int tile) {
  // The last rows of the order have the most taps: their tiles begin first.
  const int m = tile / pass.tiles_n;
  return {std::int64_t{pass.tiles_m - 1 - m} * kTileRows, (tile - m * pass.tiles_n) * Shape::N};
}

/// A stage's place in the ring, and how often the ring has been gone through, modulo 2.
template <class Shape>
struct Place {
  int stage = 0;       ///< Its number.
  unsigned round = 0;  ///< Of the ring.
  /// The next stage.
  __device__ void advance() {
    if (++stage < Shape::kStages) return;
    stage = 0;
    round ^= 1;
  }
};

/// What ends with a stage: nothing, its tile, or all tiles of the block.
enum Ends { kNothing, kTile, kBlock };

/// What producers and consumers share, beside the stages.
template <class Shape>
struct Ring {
  std::uint64_t full[Shape::kStages],  ///< all copies have landed
      empty[Shape::kStages];           ///< all consumer warps have read it
  /// What a stage is: of which tile, and what ends with it.
  struct Label {
    int tile,               ///< Its number.
        ends;               ///< An Ends.
  } label[Shape::kStages];  ///< By stage.
  // For the producers alone; two of each, for this tile and the next one.
  unsigned met[2][kMaxWords][kProducerWarps];  ///< taps that any row of a warp has
  int following[2];                            ///< the tile after this one
};

/// A producer's number among the producers.
__device__ inline int producer() { return static_cast<int>(threadIdx.x) - kConsumers; }

/// A producer's way through the taps of a tile.
template <class Shape>
class TapWalk {
 public:
  /// The taps of a stage, and the inputs of this lane's row at them, or -1.
  struct Group {
    bool exists = false;                    ///< Whether there are any.
    int tap[Shape::kTaps] = {};             ///< Their numbers.
    std::int32_t index[Shape::kTaps] = {};  ///< Inputs, or -1.
  };

  /// @param row this lane's, or -1
  __device__ TapWalk(const Pass<typename Shape::Number>& pass, std::int32_t row)
      : pass_(pass), words_(mask_words(pass.conv.taps)), row_(row) {}

  /// Stores which taps any row of this warp has. Goes from the last word to the first, whose bits
  /// stay in a register.
  __device__ void find(unsigned (&met)[kMaxWords][kProducerWarps]) {
    for (int word = words_ - 1; word >= 0; --word) {
      read(word);
      unsigned any = mine_;
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        any |= __shfl_xor_sync(0xFFFFFFFF, any, distance);
      }
      if (threadIdx.x % 32 == 0) met[word][producer() / 32] = any;
    }
  }
  /// After all warps have found theirs, and before fetch().
  __device__ void begin(const unsigned (&met)[kMaxWords][kProducerWarps]) {
    met_ = met;
    left_ = all_of(0);
  }

  /// The next taps; none if all are done. Behind the last tap the group is filled up with it, but
  /// without inputs.
  __device__ void fetch(Group& group) {
    int tap = 0;
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
      group.index[t] = -1;
      if (exists && (mine_ >> bit & 1u) != 0) {
        group.index[t] = pass_.conv.table[std::int64_t{tap} * pass_.conv.rows + row_];
      }
      if (t == 0) group.exists = exists;
      left_ &= left_ - 1;
    }
  }

 private:
  /// Reads a word of the row's mask.
  __device__ void read(int word) {
    mine_ =
        row_ < 0 ? 0 : static_cast<unsigned>(pass_.conv.mask[std::int64_t{row_} * words_ + word]);
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
  unsigned left_ = 0;  // of word_, taps of the tile to come
  unsigned mine_ = 0;  // of word_, taps of this lane's row
  std::int32_t row_;
};

/// The row that this lane owns in a tile, or -1.
template <class Shape>
__device__ std::int32_t own_row(const Pass<typename Shape::Number>& pass, int tile) {
  if (tile >= pass.tiles) return -1;
  const std::int64_t at = corner_of<Shape>(pass, tile).row + producer();
  return at < pass.conv.rows ? pass.conv.order[at] : -1;
}

/// Asks for this warp's rows of a tap: channels `s0` and up.
/// @param index of the row that this lane owns
template <class Shape>
__device__ void ask_for_rows(const Pass<typename Shape::Number>& pass, std::int32_t index, int s0,
                             char* a) {
  constexpr int kAtOnce = 32 / Shape::kPieces;  // rows of a warp's copy
  const int lane = producer() % 32, piece = lane % Shape::kPieces, below = lane / Shape::kPieces;
  const int s = s0 + piece * Shape::kCount;
  const bool inside = s < pass.pitch;
#pragma unroll
  for (int j = 0; j < 32; j += kAtOnce) {
    const std::int32_t met = __shfl_sync(0xFFFFFFFF, index, j + below);
    const int row = producer() / 32 * 32 + j + below;
    const bool exists = met >= 0 && inside;
    ptx::cp_async<kPiece>(
        a + row * Shape::kTapBytes + (piece ^ permutation<Shape::kPieces>(row)) * kPiece,
        pass.conv.from + (exists ? std::int64_t{met} * pass.pitch + s : 0), exists ? kPiece : 0);
  }
}

/// What the producer warps do.
template <class Shape>
__device__ void produce(const Pass<typename Shape::Number>& pass, Ring<Shape>& ring, char* stages) {
  Place<Shape> place;
  int tile = static_cast<int>(blockIdx.x);
  std::int32_t row = own_row<Shape>(pass, tile);
  wait_for_kernel_before();  // weights and rows as prepare() leaves them, and its counter
  for (int turn = 0; tile < pass.tiles; turn ^= 1) {
    int following = 0;
    if (producer() == 0) following = static_cast<int>(gridDim.x + atomicAdd(pass.handed_out, 1u));
    TapWalk<Shape> walk(pass, row);
    walk.find(ring.met[turn]);
    if (producer() == 0) ring.following[turn] = following;
    // Separates these stores from the loads below. The next stores to the same place come two tiles
    // later: before them all have been here for the tile between, and so have read what they need.
    ptx::named_barrier_sync(1, kProducers);
    following = ring.following[turn];
    row = own_row<Shape>(pass, following);  // on its way until the next tile begins
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
        if (producer() == 0) {
          const bool ends_tile = !ahead.exists && chunk + 1 == pass.chunks;
          ring.label[place.stage] = {tile, !ends_tile               ? kNothing
                                           : following < pass.tiles ? kTile
                                                                    : kBlock};
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
    } while (ahead.exists);
    tile = following;
  }
}

/// What a sum becomes in the result; of a channel that does not exist, anything.
template <class T>
__device__ T finished(const GatheredRows<T>& conv, int channel, float sum) {
  const bool biased = conv.bias != nullptr && channel < conv.channels;
  const float bias = biased ? conv.bias[channel] : 0.0f;
  return rounded_to<T>(activated(conv.activation, sum + bias));
}

/// How many fragments of 8 channels four lanes exchange, to store pieces of 16 bytes, or of 8 where
/// a tile has no more than 16 channels of 16 bits.
template <class Shape>
constexpr int kExchanged = std::min(kPiece / (2 * Shape::kSize), Shape::N / 8);

/// Stores a warp's 16 rows. wgmma leaves four lanes two neighbours each of the 8 sums that a
/// fragment has of a row; so they exchange pairs, until each has neighbours of one fragment:
///
///                fragment 0   1   2   3                              0 ... 3
///       lane 0           a0  b0  c0  d0     with lane ^ 1, and       a0 a1 a2 a3
///       lane 1           a1  b1  c1  d1     with lane ^ 2 :          b0 b1 b2 b3
///       lane 2           a2  b2  c2  d2                              c0 c1 c2 c3
///       lane 3           a3  b3  c3  d3                              d0 d1 d2 d3
///
/// @param rows of this lane, or -1 @param first the tile's first channel
template <class Shape, class Sums>
__device__ void store_pieces(const GatheredRows<typename Shape::Number>& conv, const Sums& sums,
                             const std::int32_t (&rows)[2], int first) {
  using T = typename Shape::Number;
  constexpr int kGroup = kExchanged<Shape>;
  constexpr int kWords = Shape::kSize / 2;  // of a pair
  struct alignas(2 * kGroup * Shape::kSize) Piece {
    std::uint32_t words[kGroup][kWords];
  };
  const int place = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j0 = 0; j0 < Shape::N / 8; j0 += kGroup) {
      Piece piece;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const int channel = first + 8 * (j0 + j) + 2 * place;
        T pair[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          pair[e] = finished(conv, channel + e, sums.of[4 * (j0 + j) + 2 * half + e]);
        }
        std::memcpy(piece.words[j], pair, sizeof pair);
      }
#pragma unroll
      for (int apart = 1; apart < kGroup; apart *= 2) {
        const bool upper = (place & apart) != 0;
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          if ((j & apart) != 0) continue;
#pragma unroll
          for (int w = 0; w < kWords; ++w) {
            std::uint32_t &low = piece.words[j][w], &high = piece.words[j + apart][w];
            const std::uint32_t given = __shfl_xor_sync(0xFFFFFFFF, upper ? low : high, apart);
            (upper ? low : high) = given;
          }
        }
      }
      const int channel = first + 8 * (j0 + place % kGroup) + 2 * (place / kGroup * kGroup);
      if (rows[half] < 0 || channel >= conv.channels) continue;
      T* const to = conv.to + std::int64_t{rows[half]} * conv.channels + channel;
      *reinterpret_cast<Piece*>(to) = piece;
    }
  }
}

/// What the consumer warps do.
/// @param pieces whether rows of the result consist of them
template <class Shape>
__device__ void consume(const Pass<typename Shape::Number>& pass, Ring<Shape>& ring,
                        const char* stages, bool pieces) {
  using T = typename Shape::Number;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int own_row = thread / 32 * 16 + lane / 4;
  // Only the lane of a warp that gives stages back reads their labels: so no lane can read a label
  // after its stage has been given back.
  const auto told_all = [lane](const int& number) {
    int told = 0;
    if (lane == 0) told = number;
    return __shfl_sync(0xFFFFFFFF, told, 0);
  };
  Place<Shape> place;
  for (int ends = kNothing; ends != kBlock;) {
    // The tile's number comes with its first stage. Its rows are needed at the end.
    ptx::mbarrier_wait(&ring.full[place.stage], place.round);
    const Corner corner = corner_of<Shape>(pass, told_all(ring.label[place.stage].tile));
    std::int32_t rows[kRowTiles][2];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = corner.row + own_row + i * kWarpgroupRows + 8 * half;
        rows[i][half] = at < pass.conv.rows ? pass.conv.order[at] : -1;
      }
    }
    WarpgroupSums<T, Shape::N> sums[kRowTiles];
    int last_stage = -1;
    do {
      ptx::mbarrier_wait(&ring.full[place.stage], place.round);
      ptx::fence_proxy_async();  // threads have copied what wgmma will read
      ends = told_all(ring.label[place.stage].ends);
      const char* const a = stages + place.stage * Shape::kStageBytes;
      const char* const b = a + Shape::kTaps * Shape::kBytesA;
      ptx::wgmma_fence();
#pragma unroll
      for (int t = 0; t < Shape::kTaps; ++t) {
        constexpr int kGroup = 8 * Shape::kTapBytes;
        const std::uint64_t left =
            ptx::wgmma_descriptor(a + t * Shape::kBytesA, kGroup, Shape::kTapBytes);
        const std::uint64_t right =
            ptx::wgmma_descriptor(b + t * Shape::kBytesB, kGroup, Shape::kTapBytes);
#pragma unroll
        for (int deep = 0; deep < Shape::kTapBytes; deep += kDeep) {
#pragma unroll
          for (int i = 0; i < kRowTiles; ++i) {
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
    } while (ends == kNothing);
    ptx::wgmma_wait_group<0>();
    if (lane == 0) ptx::mbarrier_arrive(&ring.empty[last_stage]);

    if (pieces) {
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        store_pieces<Shape>(pass.conv, sums[i], rows[i], corner.channel);
      }
      continue;
    }
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      sums[i].for_each([&](int row, int first, const auto& values) {
        const std::int32_t to = row < 8 ? rows[i][0] : rows[i][1];
        if (to < 0) return;
        const int channel = corner.channel + first;
        for (int e = 0; e < 2 && channel + e < pass.conv.channels; ++e) {
          pass.conv.to[std::int64_t{to} * pass.conv.channels + channel + e] =
              finished(pass.conv, channel + e, values[e]);
        }
      });
    }
  }
}

/// Takes more registers, or gives some back. All warps of a warpgroup call it.
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
    gather_and_multiply(Pass<typename Shape::Number> pass, bool pieces) {
  __shared__ Ring<Shape> ring;
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      // Each producer arrives when its copies have landed, and once more the one that asks for
      // weights.
      ptx::mbarrier_init(&ring.full[i], kProducers + 1);
      ptx::mbarrier_init(&ring.empty[i], kConsumers / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers
  if (threadIdx.x < kConsumers) {
    set_registers<Shape::kConsumerRegisters, Shape::kEvenly>();
    consume(pass, ring, stages, pieces);
  } else {
    set_registers<Shape::kProducerRegisters, Shape::kEvenly>();
    produce(pass, ring, stages);
  }
}

/// What prepare() makes before the product.
template <class T>
struct Preparation {
  int taps,                 ///< As GatheredRows::taps.
      summed,               ///< As GatheredRows::summed.
      channels,             ///< As GatheredRows::channels.
      chunks,               ///< As Pass::chunks.
      tiles_n;              ///< As Pass::tiles_n.
  const T *weights, *rows;  ///< as GatheredRows::weights and GatheredRows::from
  T* blocks;                ///< [tiles_n][taps][chunks]: weights [N][kDepth], permuted
  int pitch;                ///< of a row of `copy`, in numbers; whole pieces
  std::int64_t pieces;      ///< of `copy`; 0: there is none
  bool by_pieces;           ///< whether `rows` consist of pieces, as well
  T* copy;                  ///< [...][pitch]: rows as factors, zeros behind the last channel
  unsigned* handed_out;     ///< zeroed
};

/// A thread makes a piece at a time, so that loads of neighbours lie side by side. Any
/// one-dimensional grid.
/// @tparam kAlongK whether rows of weights lie along k: [taps][channels][summed]
template <class Shape, bool kAlongK>
__global__ void prepare(Preparation<typename Shape::Number> p) {
  using T = typename Shape::Number;
  constexpr int kOfBlock = Shape::N * Shape::kPieces;
  const auto store = [](T* to, const T(&numbers)[Shape::kCount]) {
    uint4 whole;
    std::memcpy(&whole, numbers, sizeof whole);
    *reinterpret_cast<uint4*>(to) = whole;
  };
  let_next_kernel_begin();
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (first == 0) *p.handed_out = 0;
  T numbers[Shape::kCount];
  const std::int64_t pieces = std::int64_t{p.tiles_n} * p.taps * p.chunks * kOfBlock;
  for (std::int64_t i = first; i < pieces; i += threads) {
    const std::int64_t block = i / kOfBlock;
    const auto of_block = static_cast<int>(i % kOfBlock);
    const int n = kAlongK ? of_block / Shape::kPieces : of_block % Shape::N;
    const int piece = kAlongK ? of_block % Shape::kPieces : of_block / Shape::N;
    const std::int64_t above = block / p.chunks;
    const int s0 = static_cast<int>(block - above * p.chunks) * Shape::kDepth;
    const std::int64_t tile = above / p.taps, tap = above - tile * p.taps;
    const int c = static_cast<int>(tile) * Shape::N + n;
#pragma unroll
    for (int j = 0; j < Shape::kCount; ++j) {
      const int s = s0 + piece * Shape::kCount + j;
      numbers[j] = T{};
      if (s < p.summed && c < p.channels) {
        numbers[j] = as_factor(p.weights[kAlongK ? (tap * p.channels + c) * p.summed + s
                                                 : (tap * p.summed + s) * p.channels + c]);
      }
    }
    store(p.blocks + block * (Shape::N * Shape::kDepth) + n * Shape::kDepth +
              (piece ^ permutation<Shape::kPieces>(n)) * Shape::kCount,
          numbers);
  }
  const int pieces_of_row = p.pitch / Shape::kCount;
  for (std::int64_t i = first; i < p.pieces; i += threads) {
    if (p.by_pieces) {
      const uint4 whole = reinterpret_cast<const uint4*>(p.rows)[i];
      std::memcpy(numbers, &whole, sizeof whole);
    }
    const std::int64_t row = p.by_pieces ? 0 : i / pieces_of_row;
#pragma unroll
    for (int j = 0; j < Shape::kCount; ++j) {
      if (!p.by_pieces) {
        const std::int64_t s = (i - row * pieces_of_row) * Shape::kCount + j;
        numbers[j] = s < p.summed ? p.rows[row * p.summed + s] : T{};
      }
      numbers[j] = as_factor(numbers[j]);
    }
    store(p.copy + i * Shape::kCount, numbers);
  }
}

/// All shapes, in the order in which with_shape() tries them.
template <class T>
using Shapes = std::tuple<
    //         bytes taps   N stages blocks
    StageShape<T, 32, 4, 16, 4, 3>,                                   // 16 channels of 16 bits
    StageShape<T, 32, 4, 32, 3, 3>, StageShape<T, 64, 2, 16, 4, 3>,   // 16 of float32
    StageShape<T, 64, 2, 32, 3, 3>,                                   // 32 of 16 bits
    StageShape<T, 64, 2, 64, 3, 3>, StageShape<T, 128, 1, 32, 3, 3>,  // 32 of float32
    StageShape<T, 128, 1, 64, 3, 3>,                                  // 64
    StageShape<T, 128, 1, 128, 3, 2>>;

/// Calls body(shape) with the first shape that has all channels, or the last. But where that has
/// few tiles, with the one of 64 channels, which has twice as many.
template <class T, class Body>
void with_shape(std::int64_t rows, int summed, int channels, const Body& body) {
  const bool few = has_few_tiles(rows, channels);
  bool done = false;
  const auto maybe = [&]<class Shape>(Shape shape, bool is_last) {
    const bool is_deep = Shape::kTapBytes == 128;
    const bool fits = (summed <= Shape::kDepth || is_deep) &&
                      (channels <= Shape::N || (few && is_deep && Shape::N == 64));
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

/// Whether gathered rows, or those of the result, consist of pieces, if the first one begins at a
/// multiple of 16 bytes.
template <class Shape>
bool rows_are_pieces(int summed) {
  return summed % Shape::kCount == 0;
}
/// Whether a row of the result is whole pairs of what two threads exchange.
template <class Shape>
bool result_is_pieces(int channels) {
  return channels % (2 * kExchanged<Shape>) == 0;
}

/// Where things lie in the workspace, in bytes; each begins at a multiple of 256.
struct Layout {
  std::int64_t blocks,  ///< Of weights.
      copy,             ///< Of rows.
      end;              ///< Of all.

  /// @param sources rows of `from`
  template <class Shape>
  static Layout of(Shape, int taps, std::int64_t sources, int summed, int channels) {
    const std::int64_t weights = std::int64_t{ceil_div(channels, Shape::N)} * taps *
                                 ceil_div(summed, Shape::kDepth) * Shape::N * Shape::kTapBytes;
    const std::int64_t rows = sources * ceil_div(summed, Shape::kCount) * kPiece;
    const auto rounded = [](std::int64_t bytes) {
      return ceil_div(bytes, std::int64_t{256}) * 256;
    };
    Layout layout{};
    layout.blocks = 256;  // behind the counter
    layout.copy = layout.blocks + rounded(weights);
    layout.end = layout.copy + rounded(rows);
    return layout;
  }
};

}  // namespace producers

/// Why producer warps cannot gather for a product of so many rows and channels, if so.
inline Declined declined_by_producers(const SparseConvProblem& conv, std::int64_t rows,
                                      int channels) {
  if (const Declined why = declined_by_precision(conv)) return why;
  if (conv.book.KV > kMaxTaps) return text("more than ", kMaxTaps, " taps");
  if (rows / producers::kTileRows * ceil_div(channels, 128) >= 1 << 30) {
    return "2^30 tiles or more of 128 rows and 128 channels";
  }
  // A copy of the features and the weights beside it: their bytes are counted in 64 bits.
  if (std::max(std::int64_t{conv.N} * conv.Cin, std::int64_t{conv.M} * conv.Cout) >= std::int64_t{1}
                                                                                         << 56) {
    return "2^56 features or more";
  }
  return gemm::why_no_wgmma();
}

/// Bytes of workspace for it.
/// @param rows of `to` @param sources rows of `from`
template <class T>
std::size_t producers_workspace_bytes(int taps, std::int64_t rows, std::int64_t sources, int summed,
                                      int channels) {
  std::int64_t bytes = 0;
  producers::with_shape<T>(rows, summed, channels, [&](auto shape) {
    bytes = producers::Layout::of(shape, taps, sources, summed, channels).end;
  });
  return static_cast<std::size_t>(bytes);
}

/// What it chooses, in a few words.
/// @param rows of `to`
inline std::string producers_in_words(const SparseConvProblem& conv, std::int64_t rows, int summed,
                                      int channels) {
  std::string words;
  with_type(conv.dtype, [&]<class T>(T) {
    producers::with_shape<T>(rows, summed, channels, [&]<class Shape>(Shape) {
      words =
          text(dtype_name(conv), ", ", Shape::kTaps, " x ", Shape::kTapBytes, " bytes, ", Shape::N,
               " channels", producers::rows_are_pieces<Shape>(summed) ? ", rows in pieces" : "",
               producers::result_is_pieces<Shape>(channels) ? ", result in pieces" : "");
    });
  });
  return words;
}

/// Two launches: weights as wgmma takes them, and rows, if they need it; then the product.
/// @tparam kAlongK whether rows of conv.weights lie along k: [taps][channels][summed]
/// @param sources rows of conv.from
template <bool kAlongK, class T>
void multiply_by_producers(const GatheredRows<T>& conv, std::int64_t sources, char* workspace) {
  using namespace producers;
  const auto with = [&]<class Shape>(Shape shape) {
    const Layout layout = Layout::of(shape, conv.taps, sources, conv.summed, conv.channels);
    const bool by_pieces = rows_are_pieces<Shape>(conv.summed) && begins_at_piece(conv.from);
    const bool copied = std::is_same_v<T, float> || !by_pieces;
    Preparation<T> preparation = {.taps = conv.taps,
                                  .summed = conv.summed,
                                  .channels = conv.channels,
                                  .chunks = ceil_div(conv.summed, Shape::kDepth),
                                  .tiles_n = ceil_div(conv.channels, Shape::N),
                                  .weights = conv.weights,
                                  .rows = conv.from,
                                  .blocks = reinterpret_cast<T*>(workspace + layout.blocks),
                                  .pitch = ceil_div(conv.summed, Shape::kCount) * Shape::kCount,
                                  .pieces = 0,
                                  .by_pieces = by_pieces,
                                  .copy = reinterpret_cast<T*>(workspace + layout.copy),
                                  .handed_out = reinterpret_cast<unsigned*>(workspace)};
    if (copied) preparation.pieces = sources * (preparation.pitch / Shape::kCount);
    const std::int64_t pieces = std::int64_t{preparation.tiles_n} * conv.taps * preparation.chunks *
                                Shape::N * Shape::kPieces;
    launch(
        prepare<Shape, kAlongK>,
        {blocks_for(std::max(pieces, preparation.pieces), kCopyThreads, kMaxBlocks), kCopyThreads},
        preparation);

    const std::int64_t tiles_m = ceil_div<std::int64_t>(conv.rows, kTileRows);
    Pass<T> pass = {.conv = conv,
                    .pitch = preparation.pitch,
                    .chunks = preparation.chunks,
                    .tiles_m = static_cast<int>(tiles_m),
                    .tiles_n = preparation.tiles_n,
                    .tiles = static_cast<int>(tiles_m * preparation.tiles_n),
                    .handed_out = preparation.handed_out};
    pass.conv.weights = preparation.blocks;
    if (copied) pass.conv.from = preparation.copy;
    const bool pieces_of_result =
        result_is_pieces<Shape>(conv.channels) && begins_at_piece(conv.to);
    launch_early(gather_and_multiply<Shape>,
                 {blocks_for(pass.tiles, 1, std::int64_t{multiprocessors()} * Shape::kBlocks),
                  kBlockThreads, Shape::kSharedBytes},
                 pass, pieces_of_result);
  };
  with_shape<T>(conv.rows, conv.summed, conv.channels, with);
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
