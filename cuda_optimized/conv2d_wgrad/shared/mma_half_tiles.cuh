/// @file mma_half_tiles.cuh
/// @brief The tiles of the weight gradient on tensor cores in half precision, and which of them a
/// problem gets; implicit_gemm/mma.cu explains the kernel.
#pragma once

#include "cuda_optimized/conv2d_wgrad/shared/mma_half_copies.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

inline constexpr int kMmaPixels = 16;  ///< Pixels that one mma.sync multiplies.

/// The fewest loads for each product.
struct LargeHalves {
  static constexpr MmaShape kShape{
      .M = 128, .N = 256, .warp_m = 64, .warp_n = 64, .blocks = 1, .step = 64};  ///< see there
  static constexpr int kStages = 3;  ///< Steps in shared memory: one in use, others on their way.
};
/// For at most 64 filters.
struct WideHalves {
  static constexpr MmaShape kShape{
      .M = 64, .N = 192, .warp_m = 64, .warp_n = 48, .blocks = 2, .step = 64};  ///< see there
  static constexpr int kStages = 3;                                             ///< as above
};
/// For few taps and channels, and for what the others do not take.
struct SmallHalves {
  static constexpr MmaShape kShape{
      .M = 64, .N = 64, .warp_m = 32, .warp_n = 32, .blocks = 3, .step = 64};  ///< see there
  static constexpr int kStages = 4;                                            ///< as above
};

/// The sizes of a block that follow from its shape.
template <class Shape>
struct HalfBlock {
  static constexpr MmaShape S = Shape::kShape;                    ///< see there
  static constexpr int kWarpsN = S.N / S.warp_n;                  ///< Warps side by side.
  static constexpr int kThreads = S.M / S.warp_m * kWarpsN * 32;  ///< Of the block.
  static constexpr int kAhead = kThreads / S.step;                ///< Steps decoded at once.
  static constexpr int kNumbersA = S.M * S.step;                  ///< Of a stage's tile of dy.
  static constexpr int kNumbers = kNumbersA + S.N * S.step;       ///< Of a stage.
  static constexpr int kBias = ceil_div(S.warp_m / 16, kWarpsN);  ///< Fragments that a warp
                                                                  ///< adds up for db.
  static constexpr std::size_t kSharedBytes =
      std::size_t{Shape::kStages * kNumbers} * 2 + 2 * kThreads * sizeof(HalfPixel);  ///< In all.
  static_assert(kThreads % S.step == 0 && Shape::kStages <= 2 * kAhead && kAhead > 0);
  using CopiesA = HalfCopies<kThreads, S.step, S.M>;  ///< Of dy.
  using CopiesB = HalfCopies<kThreads, S.step, S.N>;  ///< Of the windows.
};

/// Whether all pieces of 16 bytes are whole, if x and dy begin at multiples of 16 bytes.
inline bool channels_in_eights(const Conv2dProblem& conv) {
  return conv.K / conv.groups % kPiece == 0 && conv.C / conv.groups % kPiece == 0;
}

/// Calls body(Shape{}) for the tile that suits the problem.
template <class Body>
auto with_half_tile(const Conv2dProblem& conv, const Body& body) {
  const std::size_t shared = max_shared_bytes();
  const bool few_filters = conv.K / conv.groups <= WideHalves::kShape.M;
  const bool few_columns = filter_size_of(conv) <= LargeHalves::kShape.N / 2;
  if (channels_in_eights(conv) && !few_columns) {
    if (few_filters && HalfBlock<WideHalves>::kSharedBytes <= shared) return body(WideHalves{});
    if (!few_filters && HalfBlock<LargeHalves>::kSharedBytes <= shared) return body(LargeHalves{});
  }
  return body(SmallHalves{});
}

/// Floats of all parts, [blocks + tiles - 1][S.part()].
template <class Shape>
std::int64_t mma_part_floats(const Conv2dProblem& conv) {
  const MmaProduct product = product_with(conv, Shape::kShape);
  if (product.blocks == 0) return 0;
  return (std::int64_t{product.blocks} + product.tiles - 1) * Shape::kShape.part();
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
