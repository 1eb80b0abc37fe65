/// @file full_tiles.cu
/// @brief Full tiles for many channels: no padding columns, and both consumer warpgroups share a
/// halo tile.
///
/// - Before: halo_tile.cu
/// - The kernels: cuda_optimized/conv2d/hopper/full_tiles.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** The forward pass's kernel, for the windows of dy, with the transposed weights of
/// halo_tile.cu. Strips of 8 columns leave 4 of B10's 28, and two images' remainders are a tile
/// without padding columns. Both warpgroups multiply the same patch, each for 64 channels of dx:
///
///     image n        8 | 8 | 8 | 4       7 tiles of 224 pixels, by 128 channels of dx:
///     image n + 1    8 | 8 | 8 | 4       warpgroup 0: 0-63, warpgroup 1: 64-127
///
/// **Expect.** The forward pass's gain: B10 from 317 us to 290 us.
/// @expect on --n 2 --c 128 --h 16 --w 12 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 18) + 3 + 18 = 59, wide tiles, and a narrow one
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.dx.store 0, TMA stores
/// **Costs.** As the forward pass. Not supported: 64 channels of dx or fewer, rows of which more
/// than 4 columns are left, strides, and as before.
/// **Try.** The weights are read transposed. Would a kernel that transposes them first pay, if it
/// has to be done in 2 % of B10's time?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/hopper/full_tiles.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_not_one_product(conv)) return why;
  return conv2d::why_no_full_tiles(product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  conv2d::launch_full_tiles(product_of(conv), arrays_of(arrays));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv2d::full_tiles_in_words(product_of(conv));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_full_tiles = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
