/// @file async_copies.cuh
/// @brief The rows and weights of a tile's listed taps, copied asynchronously step by step;
/// implicit_gemm_cp_async.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/sparse_conv/shared/async_rows.cuh"
#include "cuda_optimized/sparse_conv/shared/implicit_gemm.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

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

  /// Starts to copy which inputs this warp's rows have at the next step, if a tap begins there.
  __device__ void find_inputs() {
    if (found_.entry >= taps_.count()) return;
    if (found_.chunk == 0 && taps_.warp_has(found_.entry) && lane_ < Shape::kWarpRows) {
      // A row past the end gets input 0: its sums are not stored.
      const int row = taps_.row();
      ptx::cp_async<4>(Shape::inputs(found_.slot) + warp_ * Shape::kWarpRows + lane_,
                       conv_.nbr + taps_.tap(found_.entry) * std::int64_t{conv_.M} + max(row, 0),
                       row >= 0 ? 4 : 0);
    }
    advance(found_);
  }

  /// Starts the copies of the next step, and those that tell what the step kStages - 1 later will
  /// copy.
  __device__ void ask_for_next() {
    if (copied_.entry < taps_.count()) {
      if (taps_.warp_has(copied_.entry)) copy_rows();
      copy_weights();
      advance(copied_);
      find_inputs();
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
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
    // First all loads, then all copies: in turns, each copy would wait for its load.
    std::int32_t met[Shape::kWarpRows / kAtOnce];
#pragma unroll
    for (int i = 0; i < Shape::kWarpRows; i += kAtOnce) {
      met[i / kAtOnce] = Shape::inputs(copied_.slot)[begin + i];
    }
#pragma unroll
    for (int i = 0; i < Shape::kWarpRows; i += kAtOnce) {
      const int input = met[i / kAtOnce];
      // The product of unsigned numbers of 32 bits, and the sum, are one instruction.
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
