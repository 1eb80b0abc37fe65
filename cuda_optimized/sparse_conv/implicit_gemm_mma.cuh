/// @file implicit_gemm_mma.cuh
/// @brief A sparse convolution as a matrix product on the tensor cores whose rows are gathered, as
/// a building block; implicit_gemm_mma.cu explains it.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/activation.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "core/half.hpp"
#include "core/rung.hpp"
#include "core/sparse_conv_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// to[row][c] = bias[c] + sum over the taps k with from_row = table[k][row] >= 0, and over all s,
/// of from[from_row][s] * weights[k][s][c], activated.
template <class T>
struct GatheredRows {
  int taps;                                  ///< KV
  int rows;                                  ///< of `to`
  int summed;                                ///< Channels of `from`, over which the sum runs.
  int channels;                              ///< Channels of `to`.
  const std::int32_t* table;                 ///< [taps][rows]: rows of `from`, or -1
  const std::int32_t* mask;                  ///< [rows][mask_words(taps)]: which are not -1
  const std::int32_t* order;                 ///< [rows]: rows with like masks are neighbours
  const T* from;                             ///< [...][summed]
  const T* weights;                          ///< [taps][summed][channels], or, where they lie
                                             ///< along k, [taps][channels][summed]
  T* to;                                     ///< [rows][channels], wholly written
  const float* bias = nullptr;               ///< [channels], or null
  Activation activation = Activation::none;  ///< Of complete sums.
};

constexpr int kPiece = 16;     ///< Bytes of a copy, and of what ldmatrix loads of a row.
constexpr int kDeep = 32;      ///< Bytes along k of one mma.sync: 8 floats or 16 halves.
constexpr int kWarpRows = 32;  ///< Rows of a warp's tile.

/// The sizes of a kernel: a block's tile (rows x channels), the channels of a warp's, bytes of a
/// gathered row in a stage, stages, and blocks that should fit on an SM. kPieces: rows begin
/// at multiples of 16 bytes, and are multiples of them. kTaps: taps of a stage, side by side in its
/// rows; above 1 only for problems with no more input channels than one tap has room for.
template <class T, int kM, int kN, int kWarpN_, int kRowBytes_, int kStageCount, int kBlocksPerSm,
          bool kPieces_, int kTapsOfStage = 1>
struct MmaShape {
  using Number = T;                                        ///< Of features, weights and result.
  static constexpr int M = kM, N = kN;                     ///< Of a block's tile.
  static constexpr int kWarpN = kWarpN_;                   ///< Channels of a warp.
  static constexpr int kRowBytes = kRowBytes_;             ///< Of a gathered row in a stage.
  static constexpr int kStages = kStageCount;              ///< In shared memory.
  static constexpr int kBlocks = kBlocksPerSm;             ///< That should fit on an SM.
  static constexpr bool kPieces = kPieces_;                ///< Whether cp.async can copy.
  static constexpr int kTaps = kTapsOfStage;               ///< Of a stage.
  static constexpr bool kAlongK = false;                   ///< Whether rows of weights lie along k.
  static constexpr unsigned kAlignment = 16;               ///< Of a stage, in bytes.
  static constexpr int kWarpsM = kM / kWarpRows;           ///< Warps along the rows.
  static constexpr int kWarpsN = kN / kWarpN;              ///< Warps along the channels.
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;  ///< Of a block.
  /// Bytes of an element.
  static constexpr int kSize = static_cast<int>(sizeof(T));
  static constexpr int kDepth = kRowBytes / kSize;       ///< Products of a step, for each sum.
  static constexpr int kTapBytes = kRowBytes / kTaps;    ///< Of a gathered row of one tap.
  static constexpr int kTapDepth = kDepth / kTaps;       ///< Products of one tap.
  static constexpr int kWeightBytes = kN * kSize;        ///< Of a row of weights in a stage.
  static constexpr int kBytesA = kM * kRowBytes;         ///< Of a stage's rows [M][kDepth].
  static constexpr int kBytesB = kDepth * kWeightBytes;  ///< Of its weights [kDepth][N].
  static constexpr int kStageBytes = kBytesA + kBytesB;  ///< Bytes of a stage: rows and weights.
  /// Steps whose rows are on their way while one is multiplied.
  static constexpr int kAhead = kStages - 1;
  /// Indices wait in a ring of their own, which runs kAhead steps ahead of the rows.
  static constexpr int kIndexStages = 2 * kAhead;
  /// Shared memory of a block: stages, indices, the tile's rows, and its list of taps.
  static std::size_t shared_bytes(int taps) {
    return static_cast<std::size_t>(kStages * kStageBytes) +
           sizeof(std::int32_t) * static_cast<std::size_t>((kIndexStages * kTaps + 1) * kM + taps);
  }
};

/// How the pieces of a row are permuted: piece p lies where p ^ permutation(row) would without it.
/// Pieces of the same number in eight rows, which ldmatrix reads together, lie in different banks.
template <int kPieces>
HOST_DEVICE constexpr int permutation(int row) {
  static_assert(kPieces == 2 || kPieces == 4 || kPieces % 8 == 0);
  return kPieces == 2 ? row / 4 % 2 : kPieces == 4 ? row / 2 % 4 : row % 8;
}

/// The same for float weights [k][c]: a warp reads rows k = 0 ... 3, and in each 8 pieces side by
/// side. Two pieces of each of the four rows are read together: they lie in different banks.
HOST_DEVICE constexpr int permutation_of_weights(int row) { return row % 2 * 4 + row / 2 % 2 * 2; }

/// Where piece `piece` of a row of a stage's weights lies, in bytes.
template <class T, int kRowBytes>
HOST_DEVICE constexpr int place_of_weights(int row, int piece) {
  if constexpr (std::is_same_v<T, float>) {
    return row * kRowBytes + (piece ^ permutation_of_weights(row)) * kPiece;
  } else {
    return row * kRowBytes + (piece ^ permutation<kRowBytes / kPiece>(row)) * kPiece;
  }
}

/// Copies a piece of which `left` elements exist, and zeros behind them.
template <bool kPieces, class T>
__device__ inline void copy_piece(char* to, const T* from, int left) {
  if constexpr (kPieces) {
    ptx::cp_async<kPiece>(to, from, left > 0 ? kPiece : 0);
  } else {
    constexpr int kCount = kPiece / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kCount; ++i) reinterpret_cast<T*>(to)[i] = i < left ? from[i] : T{};
  }
}

/// A warp's sums: kWarpRows rows, kN channels, as mma.sync spreads them.
template <class T, int kN>
struct WarpSums {
  static constexpr int kRows = kWarpRows / 16, kColumns = kN / 8;  ///< Fragments down, across.
  float of[kRows][kColumns][4] = {};                               ///< The sums.

  /// Of this thread in its warp.
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  /// Where a lane's first piece lies in a warp's rows of kRowBytes: in row lane % 16, and there the
  /// first piece for lanes 0 ... 15, the second for the others, as ldmatrix wants it.
  template <int kRowBytes>
  __device__ static int first_left() {
    const int row = lane() % 16;
    return row * kRowBytes + (lane() / 16 ^ permutation<kRowBytes / kPiece>(row)) * kPiece;
  }
  /// Where a lane's first piece of the weights from channel n0 on lies, a multiple of 32.
  template <int kRowBytes>
  __device__ static int first_right(int n0) {
    if constexpr (std::is_same_v<T, float>) {
      return place_of_weights<T, kRowBytes>(lane() % 4, n0 / 4 + lane() / 4);
    } else {
      return place_of_weights<T, kRowBytes>(lane() % 16, n0 / 8 + lane() / 16);
    }
  }

  /// Adds products, kDeep bytes of the rows from byte `deep` on, a multiple of kDeep. All offsets
  /// that depend on the lane are found once, before the loop over the steps: what is left are
  /// constants, and XORs with them that undo the permutation.
  /// @param a the warp's rows, of kBytesA each; left_at = first_left()
  /// @param b the weights' rows, of kBytesB each; right_at = first_right()
  template <int kBytesA, int kBytesB>
  __device__ void add(const char* a, int left_at, const char* b, int right_at, int deep) {
    std::uint32_t left[kRows][4];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      ptx::ldmatrix_x4(left[i], a + (left_at ^ deep) + 16 * i * kBytesA);
    }
    if constexpr (std::is_same_v<T, float>) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) left[i][j] = ptx::to_tf32(__uint_as_float(left[i][j]));
      }
      // Channel 32 h + 4 g + j of the tile is column g of fragment 4 h + j: so a lane's numbers of
      // four fragments lie side by side.
#pragma unroll
      for (int h = 0; h < kColumns / 4; ++h) {
        const auto* const at =
            reinterpret_cast<const float4*>(b + right_at + deep / 4 * kBytesB + 8 * h * kPiece);
        const float4 first = *at, second = at[4 * kBytesB / kPiece];  // row k, row k + 4
        multiply(left, first.x, second.x, 4 * h);
        multiply(left, first.y, second.y, 4 * h + 1);
        multiply(left, first.z, second.z, 4 * h + 2);
        multiply(left, first.w, second.w, 4 * h + 3);
      }
    } else {
#pragma unroll
      for (int h = 0; h < kColumns / 2; ++h) {
        // Four matrices: 16 rows of 8 channels, and of the next 8. Transposed on their way.
        std::uint32_t right[4];
        ptx::ldmatrix_x4_trans(right, b + (right_at ^ 2 * h * kPiece) + deep / 2 * kBytesB);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const std::uint32_t fragment[2] = {right[2 * j], right[2 * j + 1]};
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            if constexpr (std::is_same_v<T, Half>) {
              ptx::mma_m16n8k16_f16(of[i][2 * h + j], left[i], fragment);
            } else {
              ptx::mma_m16n8k16_bf16(of[i][2 * h + j], left[i], fragment);
            }
          }
        }
      }
    }
  }

  /// Adds the products with one column of fragments.
  __device__ void multiply(const std::uint32_t (&left)[kRows][4], float b0, float b1, int column) {
    const std::uint32_t right[2] = {ptx::to_tf32(b0), ptx::to_tf32(b1)};
#pragma unroll
    for (int i = 0; i < kRows; ++i) ptx::mma_m16n8k8_tf32(of[i][column], left[i], right);
  }

  /// Neighbouring sums of a row that a thread has.
  static constexpr int kTogether = std::is_same_v<T, float> ? 4 : 2;
  /// Calls visit(row, channel, values) for each run of kTogether neighbouring sums of this thread;
  /// rows and channels count within the warp's tile.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
    const int group = lane() / 4, place = lane() % 4;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * i + 8 * half + group;
        if constexpr (std::is_same_v<T, float>) {
#pragma unroll
          for (int h = 0; h < kColumns / 4; ++h) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              float values[4];
#pragma unroll
              for (int j = 0; j < 4; ++j) values[j] = of[i][4 * h + j][2 * half + e];
              visit(row, 32 * h + 8 * place + 4 * e, values);
            }
          }
        } else {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            const float values[2] = {of[i][j][2 * half], of[i][j][2 * half + 1]};
            visit(row, 8 * j + 2 * place, values);
          }
        }
      }
    }
  }
};

/// An entry of the list of taps that a tile's rows meet: the tap in the lower kWarpBits bits, and
/// above them a bit for each warp's rows that meet it.
constexpr int kWarpBits = 16;
constexpr int kMaxTaps = 1024;  ///< Their list takes 4 KB of shared memory.

/// A block's tile.
template <class Shape>
class GatheredTile {
 public:
  /// The type of the elements.
  using T = typename Shape::Number;

  /// The tile that begins at row m0 and channel n0.
  __device__ GatheredTile(const GatheredRows<T>& conv, FastDivision by_chunks, std::int64_t m0,
                          int n0)
      : conv_(conv), by_chunks_(by_chunks), m0_(m0), n0_(n0), stages_(aligned_shared()),
        indices_(reinterpret_cast<std::int32_t*>(stages_ + Shape::kStages * Shape::kStageBytes)),
        rows_(indices_ + Shape::kIndexStages * Shape::kTaps * Shape::M), taps_(rows_ + Shape::M) {}

  /// Finds the tile's rows and the taps that they meet.
  __device__ void prepare() {
    __shared__ int count;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    for (int i = thread; i < Shape::M; i += Shape::kThreads) {
      // Past the last row: the last one again; these sums are not stored.
      rows_[i] = conv_.order[m0_ + i < conv_.rows ? m0_ + i : conv_.rows - 1];
    }
    __syncthreads();  // separates these stores from the loads of all
    // The masks of all rows of each warp; the stages are still free.
    auto* const met = reinterpret_cast<std::uint32_t*>(stages_);
    const int words = mask_words(conv_.taps);
    for (int i = warp; i < Shape::kWarpsM * words; i += Shape::kThreads / 32) {
      const int part = i / words, word = i % words, row = part * kWarpRows + lane;
      std::uint32_t bits = 0;
      if (m0_ + row < conv_.rows) {
        bits = static_cast<std::uint32_t>(conv_.mask[std::int64_t{rows_[row]} * words + word]);
      }
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        bits |= __shfl_xor_sync(0xFFFFFFFF, bits, distance);
      }
      if (lane == 0) met[i] = bits;
    }
    __syncthreads();  // separates these stores from the first warp's loads
    if (warp == 0) {
      int found = 0;
      for (int word = 0; word < words; ++word) {
        std::uint32_t parts = 0;
        for (int part = 0; part < Shape::kWarpsM; ++part) {
          parts |= (met[part * words + word] >> lane & 1u) << (kWarpBits + part);
        }
        const unsigned all = __ballot_sync(0xFFFFFFFF, parts != 0);
        if (parts != 0) {
          taps_[found + __popc(all & ((1u << lane) - 1))] =
              static_cast<std::int32_t>(parts | static_cast<std::uint32_t>(32 * word + lane));
        }
        found += __popc(all);
      }
      if (lane == 0) count = found;
    }
    __syncthreads();  // separates the list from its use, and the loads of `met` from the copies
    listed_ = count;
    steps_ = ceil_div(listed_, Shape::kTaps) * ceil_div(conv_.summed, Shape::kTapDepth);
  }

  /// All products of the tile, by mma.sync.
  template <class Sums>
  __device__ void multiply(Sums* sums) {
    const int left_at =
        warp_row() * Shape::kRowBytes + Sums::template first_left<Shape::kRowBytes>();
    const int right_at = Sums::template first_right<Shape::kWeightBytes>(warp_channel());
    for_each_step([](int, const char*) {},
                  [&](int step, const char* a) {
                    const int bytes = bytes_left(step);
#pragma unroll
                    for (int t = 0; t < Shape::kTaps; ++t) {
                      // A warp whose rows do not meet this tap has nothing to add.
                      if (!meets(step, t, warp() / Shape::kWarpsN)) continue;
#pragma unroll
                      for (int deep = 0; deep < Shape::kTapBytes; deep += kDeep) {
                        if (deep >= bytes) break;
                        sums->template add<Shape::kRowBytes, Shape::kWeightBytes>(
                            a, left_at, a + Shape::kBytesA, right_at, t * Shape::kTapBytes + deep);
                      }
                    }
                  });
  }

  /// Stages all steps, one after the other. start(step, stage) is called before the copies of a
  /// later step are asked for, finish(step, stage) after that; when it returns, this warp no longer
  /// uses the stage.
  template <class Start, class Finish>
  __device__ void for_each_step(const Start& start, const Finish& finish) {
    constexpr int kAhead = Shape::kAhead;
#pragma unroll 1
    for (int step = 0; step < kAhead; ++step) ask_for_indices(step, step);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // makes the first indices of all threads visible to all
#pragma unroll 1
    for (int step = 0; step < kAhead; ++step) {
      ask_for_rows(step, step, step);
      ask_for_indices(step + kAhead, step + kAhead);
      ptx::cp_async_commit_group();
    }
    // Places in the two rings, counted: a remainder would cost more.
    int read = 0, write = kAhead, known = kAhead, asked = 0;
#pragma unroll 1
    for (int step = 0; step < steps_; ++step) {
      ptx::cp_async_wait_group<kAhead - 1>();
      if constexpr (Shape::kAlongK) ptx::fence_proxy_async();  // copies that wgmma will read
      // Makes the copies of all threads visible to all: of this step's rows and weights, and of the
      // indices of the rows that are asked for now. And separates the loads of the step before from
      // the copies that will overwrite them.
      __syncthreads();
      start(step, stage(read));
      ask_for_rows(step + kAhead, write, known);
      ask_for_indices(step + 2 * kAhead, asked);
      ptx::cp_async_commit_group();  // also without copies: the waits count groups
      finish(step, stage(read));
      read = read + 1 == Shape::kStages ? 0 : read + 1;
      write = write + 1 == Shape::kStages ? 0 : write + 1;
      known = known + 1 == Shape::kIndexStages ? 0 : known + 1;
      asked = asked + 1 == Shape::kIndexStages ? 0 : asked + 1;
    }
  }

  /// Whether any of a warp's rows, part `part` of the tile, meet tap t of a step.
  __device__ bool meets(int step, int t, int part) const {
    const int entry = by_chunks_.quotient(step) * Shape::kTaps + t;
    return exists(entry) && (taps_[entry] >> (kWarpBits + part) & 1) != 0;
  }

  /// Bytes of a row from a step on: those beyond Shape::kTapBytes belong to the next steps.
  __device__ int bytes_left(int step) const {
    const int chunk = by_chunks_.remainder(step, by_chunks_.quotient(step));
    return (conv_.summed - chunk * Shape::kDepth) * Shape::kSize;
  }

  /// Stores the sums of a warp by mma.sync.
  template <class Sums>
  __device__ void store(const Sums& sums) const {
    store(sums, warp_row(), warp_channel());
  }

  /// Stores sums whose rows and channels begin here in the tile.
  template <class Sums>
  __device__ void store(const Sums& sums, int first_row, int first_channel) const {
    const bool whole = Shape::kPieces && n0_ + Shape::N <= conv_.channels;
    sums.for_each([&](int row, int channel, const auto& values) {
      constexpr int kCount = Sums::kTogether;
      row += first_row;
      if (m0_ + row >= conv_.rows) return;
      channel += n0_ + first_channel;
      T results[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const bool exists = whole || channel + i < conv_.channels;
        const float bias = conv_.bias != nullptr && exists ? conv_.bias[channel + i] : 0.0f;
        results[i] = rounded_to<T>(activated(conv_.activation, values[i] + bias));
      }
      T* const to = conv_.to + std::int64_t{rows_[row]} * conv_.channels + channel;
      if (whole) {
        using Together =
            std::conditional_t<sizeof results == 16, float4,
                               std::conditional_t<sizeof results == 8, float2, std::uint32_t>>;
        Together together;
        std::memcpy(&together, results, sizeof together);
        *reinterpret_cast<Together*>(to) = together;
      } else {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          if (channel + i < conv_.channels) to[i] = results[i];
        }
      }
    });
  }

 private:
  __device__ static char* aligned_shared() {
    char* const begin = dynamic_shared<char>();
    if constexpr (Shape::kAlignment == 16) return begin;
    return begin +
           (Shape::kAlignment - ptx::shared_address(begin) % Shape::kAlignment) % Shape::kAlignment;
  }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int warp_row() { return warp() / Shape::kWarpsN * kWarpRows; }
  __device__ static int warp_channel() { return warp() % Shape::kWarpsN * Shape::kWarpN; }

  __device__ char* stage(int place) const { return stages_ + place * Shape::kStageBytes; }
  __device__ int tap(int entry) const { return taps_[entry] & ((1 << kWarpBits) - 1); }
  /// The last step may have fewer taps than the others.
  __device__ bool exists(int entry) const { return Shape::kTaps == 1 || entry < listed_; }

  /// Asks for the rows of `from` that the tile's rows meet.
  __device__ void ask_for_indices(int step, int place) const {
    if (step >= steps_) return;
#pragma unroll
    for (int t = 0; t < Shape::kTaps; ++t) {
      const int entry = by_chunks_.quotient(step) * Shape::kTaps + t;
      std::int32_t* const to = indices_ + (place * Shape::kTaps + t) * Shape::M;
      const std::int32_t* const table =
          conv_.table + (exists(entry) ? std::int64_t{tap(entry)} * conv_.rows : 0);
      for (int i = static_cast<int>(threadIdx.x); i < Shape::M; i += Shape::kThreads) {
        if (exists(entry)) {
          ptx::cp_async<4>(to + i, table + rows_[i]);
        } else {
          to[i] = -1;
        }
      }
    }
  }

  /// Asks for a step's part of the rows and of the weights; zeros for rows that meet nothing, and
  /// past the last channels.
  __device__ void ask_for_rows(int step, int place, int indices) const {
    if (step >= steps_) return;
    constexpr int kCount = kPiece / Shape::kSize;  // of a piece
    const int quotient = by_chunks_.quotient(step), entry = quotient * Shape::kTaps;
    const int s0 = by_chunks_.remainder(step, quotient) * Shape::kDepth;
    const int thread = static_cast<int>(threadIdx.x);
    char* const to = stage(place);
    {
      constexpr int kPieces = Shape::kRowBytes / kPiece, kRows = Shape::kThreads / kPieces;
      static_assert(Shape::M % kRows == 0 && kRows % 8 == 0, "the permutation must repeat");
      constexpr int kTapPieces = kPieces / Shape::kTaps;
      const int piece = thread % kPieces, row = thread / kPieces, t = piece / kTapPieces;
      const int s = s0 + piece % kTapPieces * kCount;
      const T* const from = conv_.from + s;
      const int left = conv_.summed - s;
      const std::int32_t* const met = indices_ + (indices * Shape::kTaps + t) * Shape::M + row;
      char* const a = to + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;
#pragma unroll
      for (int i = 0; i < Shape::M; i += kRows) {
        const int index = met[i];
        const std::int64_t at = std::int64_t{index < 0 ? 0 : index} * conv_.summed;
        copy_piece<Shape::kPieces>(a + i * Shape::kRowBytes, from + at, index < 0 ? 0 : left);
      }
    }
    if constexpr (Shape::kAlongK) {
      static_assert(Shape::kTaps == 1, "rows of weights belong to one tap");
      constexpr int kPieces = Shape::kRowBytes / kPiece, kRows = Shape::kThreads / kPieces;
      static_assert(Shape::N % kRows == 0 && kRows % 8 == 0, "the permutation must repeat");
      const int piece = thread % kPieces, row = thread / kPieces, s = s0 + piece * kCount;
      const T* const from = conv_.weights +
                            (std::int64_t{tap(entry)} * conv_.channels + n0_ + row) * conv_.summed +
                            s;
      const int left = conv_.summed - s, rows = conv_.channels - n0_ - row;
      char* const b = to + Shape::kBytesA + row * Shape::kRowBytes +
                      (piece ^ permutation<kPieces>(row)) * kPiece;
#pragma unroll
      for (int i = 0; i < Shape::N; i += kRows) {
        copy_piece<Shape::kPieces>(b + i * Shape::kRowBytes, from + std::int64_t{i} * conv_.summed,
                                   i < rows ? left : 0);
      }
    } else {
      constexpr int kPieces = Shape::kWeightBytes / kPiece, kRows = Shape::kThreads / kPieces;
      static_assert(Shape::kDepth % kRows == 0 && kRows % (std::is_same_v<T, float> ? 4 : 8) == 0,
                    "the permutation must repeat");
      const int piece = thread % kPieces, row = thread / kPieces, channel = n0_ + piece * kCount;
      const int left = conv_.channels - channel;
      char* const b = to + Shape::kBytesA + place_of_weights<T, Shape::kWeightBytes>(row, piece);
      if constexpr (Shape::kTaps == 1) {
        const T* const from =
            conv_.weights + (std::int64_t{tap(entry)} * conv_.summed + s0 + row) * conv_.channels +
            channel;
        const int rows = conv_.summed - s0 - row;
#pragma unroll
        for (int i = 0; i < Shape::kDepth; i += kRows) {
          copy_piece<Shape::kPieces>(b + i * Shape::kWeightBytes,
                                     from + std::int64_t{i} * conv_.channels, i < rows ? left : 0);
        }
      } else {
#pragma unroll
        for (int i = 0; i < Shape::kDepth; i += kRows) {
          const int t = (row + i) / Shape::kTapDepth, s = (row + i) % Shape::kTapDepth;
          const bool there = exists(entry + t) && s < conv_.summed && left > 0;
          const std::int64_t k =
              there ? std::int64_t{tap(entry + t)} * conv_.summed + s : std::int64_t{0};
          copy_piece<Shape::kPieces>(b + i * Shape::kWeightBytes,
                                     conv_.weights + (there ? k * conv_.channels + channel : 0),
                                     there ? left : 0);
        }
      }
    }
  }

  GatheredRows<T> conv_;
  FastDivision by_chunks_;
  std::int64_t m0_;
  int n0_;
  char* stages_;
  std::int32_t *indices_, *rows_, *taps_;
  int listed_ = 0, steps_ = 0;
};

// --- What the host does for all rungs of this kind.

/// Why tensor cores cannot multiply the numbers of a problem, if so.
inline Declined declined_by_precision(const SparseConvProblem& conv) {
  if (conv.dtype == DType::f32 && conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  return {};
}

/// Whether tiles of 128 rows and channels are fewer than the multiprocessors: smaller ones keep
/// more of them busy. Tests lower max_strided_blocks, which here means a small machine: so small
/// problems have many tiles, too.
inline bool has_few_tiles(std::int64_t rows, int channels) {
  const std::int64_t tiles = ceil_div<std::int64_t>(rows, 128) * ceil_div(channels, 128);
  return tiles < std::min<std::int64_t>(multiprocessors(), max_strided_blocks);
}

/// Whether pieces can be copied from or to there.
inline bool begins_at_piece(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kPiece == 0;
}

/// Whether all rows consist of pieces.
template <class T>
bool consists_of_pieces(const GatheredRows<T>& conv) {
  constexpr int kCount = kPiece / static_cast<int>(sizeof(T));
  return conv.summed % kCount == 0 && conv.channels % kCount == 0 && begins_at_piece(conv.from) &&
         begins_at_piece(conv.weights) && begins_at_piece(conv.to);
}

/// The same for a rung's choice, without arrays: as if they began at multiples of 16 bytes.
template <class T>
bool would_consist_of_pieces(int summed, int channels) {
  GatheredRows<T> conv{};
  conv.summed = summed;
  conv.channels = channels;
  return consists_of_pieces(conv);
}

/// A forward pass with the rows in the order of their masks, as it was given.
template <class T>
GatheredRows<T> gathered_rows(const SparseConvProblem& problem, const Arguments& arrays) {
  return {.taps = problem.book.KV,
          .rows = problem.M,
          .summed = problem.Cin,
          .channels = problem.Cout,
          .table = arrays.in<std::int32_t>("nbr"),
          .mask = arrays.in<std::int32_t>("mask"),
          .order = arrays.in<std::int32_t>("order"),
          .from = arrays.in<T>("features"),
          .weights = arrays.in<T>("weights"),
          .to = arrays.out<T>("y"),
          .bias = arrays.in_or_null<float>("bias"),
          .activation = problem.activation};
}

/// Launches a kernel over all tiles, those of the same rows side by side.
template <class Shape>
void launch_tiles(void (*kernel)(GatheredRows<typename Shape::Number>, FastDivision, unsigned),
                  const GatheredRows<typename Shape::Number>& conv) {
  const std::int64_t tiles_m = ceil_div<std::int64_t>(conv.rows, Shape::M);
  const auto tiles_n = static_cast<unsigned>(ceil_div(conv.channels, Shape::N));
  launch(kernel,
         {blocks_for(tiles_m * tiles_n, 1), static_cast<unsigned>(Shape::kThreads),
          Shape::shared_bytes(conv.taps)},
         conv, FastDivision(ceil_div(conv.summed, Shape::kDepth)), tiles_n);
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
