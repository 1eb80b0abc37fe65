/// @file async_copies.cuh
/// @brief Asynchronous copies for implicit_gemm_cp_async.cu: the shared memory of a block, the list
/// of a tile's taps, and the copies of a step's rows and weights.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/rulebook_problem.hpp"
#include "cuda_optimized/sparse_conv/shared/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// The shape of a block's work, and its shared memory: first the stages, then the rest.
/// @tparam Tile_ a gemm::ThreadTile: rows x channels of y, and how deep a step is
/// @tparam kStages_ steps whose tiles are in shared memory or in flight; at least 2
template <class Tile_, int kStages_>
struct AsyncRows {
  using Tile = Tile_;                                 ///< Of y.
  static constexpr int kStages = kStages_;            ///< See above.
  static constexpr int kWarps = Tile::kThreads / 32;  ///< Per block.
  static constexpr int kWarpRows = Tile::kWarpM;      ///< A warp copies and multiplies them.
  static constexpr int kPitchA = Tile::kBlockK + 4;   ///< Of the gathered rows.
  static constexpr int kPitchB = Tile::kBlockN;       ///< Of the weights.
  static constexpr int kRowFloats = Tile::kBlockM * kPitchA;  ///< Of a stage's gathered rows.
  static constexpr int kStageFloats = kRowFloats + Tile::kBlockK * kPitchB;  ///< Per stage.
  static_assert(Tile::kBlockK % 8 == 0 && kWarpRows <= 32);
  static_assert(Tile::kWarpsN == 1, "a warp multiplies the rows that it copies, and no others");
  static_assert(kWarps <= 16, "a list's entry has 16 bits for them");

  /// Dynamic shared memory of a block.
  static constexpr std::size_t shared_bytes(int taps) {
    const int words = mask_words(taps);
    const int behind = Tile::kBlockM * (1 + kStages) + kWarps * words + 32 * words + 1;
    return (static_cast<std::size_t>(kStages) * kStageFloats + static_cast<std::size_t>(behind)) *
           sizeof(float);
  }

  /// [kBlockM][kPitchA]: a stage's gathered rows.
  static __device__ float* rows_at(int stage) {
    return dynamic_shared<float>() + stage * kStageFloats;
  }
  /// [kBlockK][kPitchB]: a stage's weights.
  static __device__ float* weights_at(int stage) { return rows_at(stage) + kRowFloats; }
  /// [kBlockM]: indices of the tile's rows, or -1.
  static __device__ std::int32_t* rows() {
    return dynamic_shared<std::int32_t>() + kStages * kStageFloats;
  }
  /// [kStages][kBlockM]: nbr at some taps.
  static __device__ std::int32_t* inputs(int slot) { return rows() + (1 + slot) * Tile::kBlockM; }
  /// [kWarps][words]: taps that any row of a warp has.
  static __device__ unsigned* masks() { return reinterpret_cast<unsigned*>(inputs(kStages)); }
  /// [32 * words + 1]: taps that the block does, with a bit from 16 on for each warp that has it;
  /// last their number.
  static __device__ unsigned* list(int words) { return masks() + kWarps * words; }
};

/// A tile's rows, and the taps that any of them has.
/// @tparam Shape_ an AsyncRows
template <class Shape_>
class ListedTaps {
 public:
  using Shape = Shape_;  ///< Of the tile.

  /// All threads of the block call it. It contains two barriers, and before them writes to memory
  /// that the previous tile has read: a barrier must separate the two.
  __device__ ListedTaps(const HalfOfTaps& half, std::int64_t first_row)
      : warp_(static_cast<int>(threadIdx.x) / 32), lane_(static_cast<int>(threadIdx.x) % 32),
        words_(mask_words(half.conv.KV)) {
    if (lane_ < Shape::kWarpRows) {
      const std::int64_t at = first_row + warp_ * Shape::kWarpRows + lane_;
      if (at < half.conv.M) row_ = half.order[at];
      Shape::rows()[warp_ * Shape::kWarpRows + lane_] = row_;
    }
    for (int word = 0; word < words_; ++word) {
      unsigned bits = 0;
      if (row_ >= 0) {
        bits = static_cast<unsigned>(half.conv.mask[std::int64_t{row_} * words_ + word]);
      }
      for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
      if (lane_ == 0) Shape::masks()[warp_ * words_ + word] = bits & taps_in_word(half, word);
    }
    __syncthreads();  // all masks are stored before warp 0 reads them
    if (warp_ == 0) list_taps();
    __syncthreads();  // the list is complete before its length is read
    count_ = static_cast<int>(Shape::list(words_)[32 * words_]);
  }

  /// The row of this lane, or -1; a warp's first lanes have its rows.
  __device__ int row() const { return row_; }
  /// How many taps there are.
  __device__ int count() const { return count_; }
  /// The i-th of them.
  __device__ int tap(int i) const { return static_cast<int>(Shape::list(words_)[i] & 0xffff); }
  /// Whether any row of this warp has the i-th.
  __device__ bool warp_has(int i) const {
    return (Shape::list(words_)[i] >> (16 + warp_) & 1) != 0;
  }

 private:
  /// Warp 0 lists the taps that any warp has.
  __device__ void list_taps() {
    unsigned* const list = Shape::list(words_);
    int listed = 0;
    for (int word = 0; word < words_; ++word) {
      unsigned warps = 0;
#pragma unroll
      for (int w = 0; w < Shape::kWarps; ++w)
        warps |= (Shape::masks()[w * words_ + word] >> lane_ & 1) << w;
      const unsigned any = __ballot_sync(~0u, warps != 0);
      if (warps != 0) {
        list[listed + __popc(any & ((1u << lane_) - 1))] =
            static_cast<unsigned>(32 * word + lane_) | warps << 16;
      }
      listed += __popc(any);
    }
    if (lane_ == 0) list[32 * words_] = static_cast<unsigned>(listed);
  }

  int warp_, lane_;
  int words_;     // of a mask
  int row_ = -1;  // of this lane
  int count_;     // of taps
};

/// A step, counted without divisions.
struct Step {
  int entry = 0, chunk = 0;  ///< Of the list, and of the entry's tap.
  int stage = 0;             ///< Whose memory it has: steps modulo kStages.
  int slot = 0;              ///< Of the inputs: entries modulo kStages.
};

/// What is copied for a tile: through all channels of a tap, then the next tap of the list.
/// @tparam Taps a ListedTaps
/// @tparam kAligned rows of features, weights and y consist of 16-byte pieces
template <class Taps, bool kAligned>
class AsyncCopies {
  using Shape = typename Taps::Shape;
  using Tile = typename Shape::Tile;
  static constexpr int kFloats = kAligned ? 4 : 1;  // of one copy

 public:
  /// @param co0 the tile's first channel
  __device__ AsyncCopies(const ImplicitGemm& conv, const Taps& taps, int co0)
      : conv_(conv), taps_(taps), co0_(co0), warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32), chunks_(ceil_div(conv.Cin, Tile::kBlockK)) {}

  /// To the next step.
  __device__ void advance(Step& step) const {
    step.stage = step.stage + 1 == Shape::kStages ? 0 : step.stage + 1;
    if (++step.chunk < chunks_) return;
    step.chunk = 0;
    ++step.entry;
    step.slot = step.slot + 1 == Shape::kStages ? 0 : step.slot + 1;
  }

  /// Starts the copies of the input indices of this warp's rows at the next step, if a tap begins
  /// there.
  __device__ void find_inputs() {
    if (found_.entry >= taps_.count()) return;
    if (found_.chunk == 0 && taps_.warp_has(found_.entry) && lane_ < Shape::kWarpRows) {
      // A row beyond the end gets input 0: its accumulators are not stored.
      const int row = taps_.row();
      ptx::cp_async<4>(Shape::inputs(found_.slot) + warp_ * Shape::kWarpRows + lane_,
                       conv_.nbr + taps_.tap(found_.entry) * std::int64_t{conv_.M} + max(row, 0),
                       row >= 0 ? 4 : 0);
    }
    advance(found_);
  }

  /// Starts the copies of the next step, and of the indices for the step kStages - 1 later.
  __device__ void ask_for_next() {
    if (copied_.entry < taps_.count()) {
      if (taps_.warp_has(copied_.entry)) copy_rows();
      copy_weights();
      advance(copied_);
      find_inputs();
    }
    ptx::cp_async_commit_group();  // committed even without copies, since the waits count groups
  }

 private:
  /// This warp's rows, zeros where a row has no input.
  __device__ void copy_rows() const {
    constexpr int kPieces = Tile::kBlockK / kFloats;  // of a row
    constexpr int kAtOnce = 32 / kPieces;             // rows of a warp's copy
    static_assert(Shape::kWarpRows % kAtOnce == 0);
    const int first = copied_.chunk * Tile::kBlockK;
    const int s = lane_ % kPieces * kFloats, begin = warp_ * Shape::kWarpRows + lane_ / kPieces;
    const bool inside = first + s < conv_.Cin;
    const auto* const from =
        reinterpret_cast<const char*>(conv_.features + (inside ? first + s : 0));
    const std::uint64_t pitch = static_cast<unsigned>(conv_.Cin) * 4;
    float* const to = Shape::rows_at(copied_.stage);
    // All loads first, then all copies: if they alternated, each copy would wait for its load.
    std::int32_t met[Shape::kWarpRows / kAtOnce];
#pragma unroll
    for (int i = 0; i < Shape::kWarpRows; i += kAtOnce) {
      met[i / kAtOnce] = Shape::inputs(copied_.slot)[begin + i];
    }
#pragma unroll
    for (int i = 0; i < Shape::kWarpRows; i += kAtOnce) {
      const int input = met[i / kAtOnce];
      // Unsigned 32-bit product and addition: one IMAD instruction.
      ptx::cp_async<4 * kFloats>(to + (begin + i) * Shape::kPitchA + s,
                                 from + static_cast<unsigned>(max(input, 0)) * pitch,
                                 inside && input >= 0 ? 4 * kFloats : 0);
    }
  }

  /// This thread's share of the weights, zeros past the channels.
  __device__ void copy_weights() const {
    constexpr int kPieces = Tile::kBlockN / kFloats;   // of a row
    constexpr int kAtOnce = Tile::kThreads / kPieces;  // rows of a block's copy
    static_assert(Tile::kThreads % kPieces == 0 && Tile::kBlockK % kAtOnce == 0);
    const int first = copied_.chunk * Tile::kBlockK;
    const int s = static_cast<int>(threadIdx.x) / kPieces;
    const int c = static_cast<int>(threadIdx.x) % kPieces * kFloats;
    const bool inside = co0_ + c < conv_.Cout;
    const auto* const weights = reinterpret_cast<const char*>(conv_.weights);
    const std::uint64_t pitch = static_cast<unsigned>(conv_.Cout) * 4;
    const int row = taps_.tap(copied_.entry) * conv_.Cin + first + s;
    const std::uint64_t at =
        static_cast<unsigned>(row) * pitch + static_cast<unsigned>(co0_ + c) * std::uint64_t{4};
    float* const to = Shape::weights_at(copied_.stage) + s * Shape::kPitchB + c;
    if (inside && first + Tile::kBlockK <= conv_.Cin) {  // all of them exist
#pragma unroll
      for (int i = 0; i < Tile::kBlockK; i += kAtOnce) {
        ptx::cp_async<4 * kFloats>(to + i * Shape::kPitchB,
                                   weights + (at + static_cast<unsigned>(i) * pitch));
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < Tile::kBlockK; i += kAtOnce) {
        const bool exists = inside && first + s + i < conv_.Cin;
        ptx::cp_async<4 * kFloats>(to + i * Shape::kPitchB,
                                   weights + (exists ? at + static_cast<unsigned>(i) * pitch : 0),
                                   exists ? 4 * kFloats : 0);
      }
    }
  }

  const ImplicitGemm& conv_;
  const Taps& taps_;
  int co0_;
  int warp_, lane_;
  int chunks_;           // steps of a tap
  Step found_, copied_;  // the next step to find inputs for, and the next one to copy
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
