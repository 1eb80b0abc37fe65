/// @file pair_parts.cuh
/// @brief Split-K over the pairs of all taps: how they are cut into parts, how a block finds its
/// part and its tile of channels, how the rows of its pairs are gathered into shared memory step by
/// step, and the mma instruction of each number type. split_k_atomics.cu explains the parts.
#pragma once

#include <algorithm>

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/rulebook_problem.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_wgrad {

/// How the pairs are cut: those of each tap into `1 << log_slabs` stretches of the same length, to
/// within a pair; each of them into parts of part_pairs pairs, and a last one with the rest. The
/// parts of a slab, which is the same stretch of all taps, are numbered tap by tap.
///
///     tap 0   |0 |1 |2  |3 |4     slab 0: parts 0 ... 6            pairs of a tap are sorted by
///     tap 1   |3 |4 |5  |5 |6             of all three taps        their outputs: a slab is about
///     tap 2   |6 |      |7 |      slab 1: parts 0 ... 7            the same rows of all taps
struct PairParts {
  int KV;          ///< taps
  int log_slabs;   ///< of the number of slabs
  int part_pairs;  ///< of a part that is not the last of its stretch
  int most_parts;  ///< more than a slab has: the sums of part p of slab s are at s * most_parts + p

  /// How many slabs there are.
  HOST_DEVICE int slabs() const { return 1 << log_slabs; }
};

constexpr int kMaxSlabs = 32;  ///< Slabs at most.

/// Cuts the pairs of a problem: about `wanted` parts, but no shorter or longer ones than these.
/// Depends on the problem alone, and so do the bits of the result.
/// @param shortest pairs of a part; all parts have a multiple of them, but for the last ones
inline PairParts cut_pairs(const SparseConvProblem& conv, std::int64_t wanted, int shortest,
                           int longest) {
  const int KV = conv.book.KV;
  // Each stretch ends with a part that is half as long as the others on average.
  const std::int64_t whole = std::max<std::int64_t>(wanted - KV / 2, 1);
  const auto length = static_cast<int>(std::clamp<std::int64_t>(
      ceil_div(conv.pairs, whole * shortest) * shortest, shortest, longest));
  PairParts parts{KV, 0, length, 0};
  while (parts.slabs() < kMaxSlabs &&
         conv.pairs / length >= 2 * std::int64_t{parts.slabs()} * wanted) {
    ++parts.log_slabs;
  }
  const std::int64_t pairs = conv.pairs / parts.slabs() + KV;  // of a slab, at most
  parts.most_parts = static_cast<int>(pairs / length) + KV;
  return parts;
}

/// Which tile suits the channels of a problem: the smallest that holds Cin and Cout, or the
/// largest.
inline int tile_channels(const SparseConvProblem& conv) {
  const int widest = std::max(conv.Cin, conv.Cout);
  return widest <= 32 ? 32 : widest <= 64 ? 64 : 128;
}

/// A stretch of a tap's pairs.
struct Stretch {
  int first, count;  ///< in the list of pairs
};

/// The stretch of tap k that belongs to a slab; none past the last tap.
__device__ inline Stretch stretch_of(const PairParts& parts, const std::int32_t* offsets, int slab,
                                     int k) {
  if (k >= parts.KV) return {0, 0};
  const int before = offsets[k];
  const std::int64_t pairs = offsets[k + 1] - before;
  const auto begin = static_cast<int>(pairs * slab >> parts.log_slabs);
  const auto end = static_cast<int>(pairs * (slab + 1) >> parts.log_slabs);
  return {before + begin, end - begin};
}

/// How many parts a stretch has.
__device__ inline int parts_of(const PairParts& parts, const Stretch& stretch) {
  return ceil_div(stretch.count, parts.part_pairs);
}

/// For a rung's choice. @param shortest, longest as passed to cut_pairs()
inline std::string in_words(const PairParts& parts, int shortest, int longest) {
  return text(parts.part_pairs <= shortest  ? "shortest parts, "
              : parts.part_pairs >= longest ? "longest parts, "
                                            : "parts, ",
              how_many(parts.slabs(), "slab"));
}

/// A part: its tap, and its range of pairs.
struct PairPart {
  int k;             ///< the tap
  int first, count;  ///< pairs
};

/// Finds part `index` of a slab. Each lane takes one tap, and a prefix sum over the warp gives the
/// tap of each part. All lanes of a warp take part.
/// @returns whether there is such a part
__device__ inline bool part_at(const PairParts& parts, const std::int32_t* offsets, int slab,
                               int index, PairPart* part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int k0 = 0; k0 < parts.KV; k0 += 32) {
    const Stretch mine = stretch_of(parts, offsets, slab, k0 + lane);
    const int count = parts_of(parts, mine);
    int sum = count;  // of this lane and those before
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(0xFFFFFFFF, sum, static_cast<unsigned>(distance));
      if (lane >= distance) sum += other;
    }
    const unsigned beyond = __ballot_sync(0xFFFFFFFF, sum > index);
    if (beyond != 0) {
      const int owner = __ffs(static_cast<int>(beyond)) - 1;
      const int skipped = (index - (sum - count)) * parts.part_pairs;
      const int left = mine.count - skipped;
      part->k = k0 + owner;
      part->first = __shfl_sync(0xFFFFFFFF, mine.first + skipped, owner);
      part->count =
          __shfl_sync(0xFFFFFFFF, left < parts.part_pairs ? left : parts.part_pairs, owner);
      return true;
    }
    index -= __shfl_sync(0xFFFFFFFF, sum, 31);
  }
  return false;
}

/// The work of a block: a tile of a part's partial result.
struct BlockWork {
  PairPart part;  ///< its pairs
  int slot;       ///< its number among the parts of all slabs
  int ci0, co0;   ///< the tile's first channels
};

/// The work of this block, all of whose threads call it. Grid (parts of a slab, tiles of channels,
/// slabs): blocks of the same pairs are a grid row apart, and slabs follow one another.
/// @param tiles_out tiles of Cout
/// @returns whether there is any
template <int kTileIn, int kTileOut>
__device__ bool work_of_block(const PairParts& parts, const std::int32_t* offsets, int tiles_out,
                              BlockWork* work) {
  const int slab = static_cast<int>(blockIdx.z), index = static_cast<int>(blockIdx.x);
  if (!part_at(parts, offsets, slab, index, &work->part)) return false;
  const int tile = static_cast<int>(blockIdx.y);
  work->slot = slab * parts.most_parts + index;
  work->ci0 = tile / tiles_out * kTileIn;
  work->co0 = tile % tiles_out * kTileOut;
  return true;
}

/// The parameters of the FP32 kernels.
struct PairProduct {
  int Cin, Cout;                        ///< Channels of features and of dy.
  PairParts parts;                      ///< Which pairs a block adds up.
  const float *features, *dy;           ///< [N][Cin], [M][Cout]
  const std::int32_t *pairs, *offsets;  ///< [P][3], [KV + 1]
};

/// d += a * b for a [16][kSteps], b [kSteps][8]; floats are rounded to TF32 before.
template <class T>
struct MmaNumber;

/// Floats; mma.sync takes 10 bits of their fraction.
template <>
struct MmaNumber<float> {
  static constexpr int kSteps = 8;  ///< along k, of an instruction
  /// Rounds to nearest; mma.sync by itself would truncate.
  template <int kCount>
  __device__ static void round(std::uint32_t (&fragment)[kCount]) {
#pragma unroll
    for (int e = 0; e < kCount; ++e) fragment[e] = ptx::to_tf32(__uint_as_float(fragment[e]));
  }
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k8_tf32(d, a, b);
  }
};

/// float16.
template <>
struct MmaNumber<Half> {
  static constexpr int kSteps = 16;  ///< along k, of an instruction
  /// Nothing to do.
  template <int kCount>
  __device__ static void round(std::uint32_t (&)[kCount]) {}
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_f16(d, a, b);
  }
};

/// bfloat16.
template <>
struct MmaNumber<BFloat16> {
  static constexpr int kSteps = 16;  ///< along k, of an instruction
  /// Nothing to do.
  template <int kCount>
  __device__ static void round(std::uint32_t (&)[kCount]) {}
  /// The product.
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
};

/// Copies 16 bytes of a row to shared memory, of which the first `count` elements exist; zeros for
/// the others.
/// @tparam kAligned all of them exist, or none, and `from` is a multiple of 16 bytes: then the copy
/// is asynchronous. Otherwise it is synchronous, through registers.
template <class T, bool kAligned>
__device__ inline void copy_piece(T* to, const T* from, int count) {
  if constexpr (kAligned) {
    ptx::cp_async<16>(to, from, count > 0 ? 16 : 0);
  } else {
    constexpr int kNumbers = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) to[i] = i < count ? from[i] : T{};
  }
}

/// Copies the rows of pairs, a step of them at a time, into the tiles of a stage: [pair][channel].
/// @tparam Layout of a tile: the type Number, kPairs and kChannels, and where pair i's channel c
/// is: at(i, c); 16 bytes of channels stay together
/// @tparam kThreads of the block, all of which take part
/// @tparam kAligned rows can be copied in pieces of 16 bytes
template <class Layout, int kThreads, bool kAligned>
class RowGather {
 public:
  using Number = typename Layout::Number;  ///< type of the elements

  /// @param column which entry of a pair is the row
  /// @param first, count the part's pairs
  __device__ RowGather(const Number* from, int channels, int c0, const std::int32_t* pairs,
                       int column, int first, int count)
      : from_(from), channels_(channels), c_(c0 + channel()),
        pair_(pairs + std::int64_t{first} * kPairColumns + column), left_(count) {}

  /// Loads the indices of the next step's rows, well before they are needed: a row can be copied
  /// only after its index has been loaded.
  __device__ void load_rows() {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int pair = first_row() + j * kRowsAtOnce;
      rows_[j] = pair < left_ ? pair_[pair * kPairColumns] : -1;
    }
    left_ -= Layout::kPairs;
    if (left_ > 0) pair_ += Layout::kPairs * kPairColumns;
  }

  /// Copies the rows whose indices were loaded before; zeros past the part's end.
  __device__ void copy_rows(Number* tile) const {
    const int count = channels_ - c_;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const bool exists = rows_[j] >= 0 && count > 0;
      copy_piece<Number, kAligned>(tile + Layout::at(first_row() + j * kRowsAtOnce, channel()),
                                   from_ + (exists ? std::int64_t{rows_[j]} * channels_ + c_ : 0),
                                   exists ? count : 0);
    }
  }

 private:
  static constexpr int kNumbers = 16 / static_cast<int>(sizeof(Number));  // of a copy
  static constexpr int kPieces = Layout::kChannels / kNumbers;            // copies of a row
  static constexpr int kRowsAtOnce = kThreads / kPieces;                  // that a block copies
  static constexpr int kRows = Layout::kPairs / kRowsAtOnce;              // that a thread copies
  static_assert(kThreads % kPieces == 0 && Layout::kPairs % kRowsAtOnce == 0);

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kPieces; }
  __device__ static int channel() { return static_cast<int>(threadIdx.x) % kPieces * kNumbers; }

  const Number* from_;
  int channels_, c_;
  const std::int32_t* pair_;  // the next step's first one, if there is a next step
  int left_;                  // pairs from there on; 0 or less past the end
  int rows_[kRows];
};

constexpr int kStepPairs = 16;  ///< Pairs whose rows are in shared memory at a time, in each stage.

/// A tile of kStepPairs rows, in the layout of memory.
template <int kTileChannels>
struct PlainRows {
  using Number = float;                                                 ///< See RowGather.
  static constexpr int kPairs = kStepPairs, kChannels = kTileChannels;  ///< See RowGather.
  /// Where channel c of pair i is.
  HOST_DEVICE static int at(int i, int c) { return i * kChannels + c; }
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_wgrad
