/// @file weight_stationary.cu
/// @brief Weight-stationary 1 x 1 filters: all weights stay in shared memory, and each pixel of dy
/// is loaded once.
///
/// - Before: halo_tile.cu
/// - The kernels: cuda_optimized/conv2d/hopper/weight_stationary.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With one tap and stride 1 the input gradient is a GEMM whose rows are pixels of
/// dy, and the weights of all tiles of dx's channels stay in shared memory, by the forward pass's
/// kernel. B5 has one such tile, of 64 channels, and a sum over 256 filters: halo_tile.cu loads its
/// pixels once, too. But here a tile is any 128 pixels of all images:
///
///     halo_tile.cu       28 x 8 pixels of an image     448 tiles    4 waves of 132 SMs, 3.39 full
///     this file          128 pixels                    784 tiles    6 waves,            5.94 full
///
/// So the SM with the most work has 768 columns instead of 896. A dy that is too large for the L2
/// cache is read with an evict-first hint: each pixel is needed once, and dx may stay.
///
/// **Expect.** B5 a seventh less than with halo_tile.cu, 18 us.
/// @expect on --n 1 --c 128 --h 16 --w 16 --k 64 --r 1 --s 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 2) = 6, two blocks: pixels, and twice 64 channels of dx
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.dx.store 0, TMA stores
/// **Costs.** As the forward pass. Stride 1 only.
/// **Try.** Which tile, of 128 or of 192 pixels, wastes less of the last wave with half the images?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/hopper/weight_stationary.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_not_one_product(conv)) return why;
  return conv2d::why_not_weight_stationary(product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  conv2d::launch_weight_stationary(product_of(conv), arrays_of(arrays));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv2d::weight_stationary_in_words(product_of(conv));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_weight_stationary = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
