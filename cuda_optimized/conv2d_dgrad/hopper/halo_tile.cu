/// @file halo_tile.cu
/// @brief Halo-tile reuse: each pixel of dy is loaded once for all taps, in half precision.
///
/// - Before: implicit_gemm/warp_specialized.cu
/// - After: cluster_split_k.cu, full_tiles.cu, weight_stationary.cu, strided_zeros.cu
/// - The kernels: cuda_optimized/conv2d/implicit_gemm/halo_tile.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** With stride 1 the input gradient is a forward pass over dy with rotated filters.
/// So the forward pass's halo tiles apply here, too: TMA loads the pixels of dy that a tile of dx
/// depends on, once, and a tap is an address in them. Channels of dx are the rows of `wgmma`, and
/// pixels its columns. The weights are read in place; they are operand A here, which has a
/// transpose bit as well:
///
///     weights [K][R*S][C]     tap t:  k0  |.. c0 c1 c2 ... c63 ..|       operand A, column-major:
///                                     k1  |.. c0 c1 c2 ... c63 ..|  ->   dx's channels down
///
/// Tap (r, s) of the windows is tap (R - 1 - r, S - 1 - s) of the filter: arithmetic on the
/// coordinates of the box, which does not change the loop over taps. That loop is the forward
/// pass's:
///
///     for chunk of 64 k, r, s:  accumulators[c][p, q] += w[k][r][s][c] * patch[p + r][q + s][k]
///
/// **Expect.** The forward pass's times for the same products: B4 13 us, B6 14, B7 16, B9 85, B10
/// 310 us.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) = 20, two blocks: a patch, weights of nine taps
/// @expect bytes_per_lane.shared.store 16, a row of a matrix of 8 x 8
/// @expect requests.dx.store 0, TMA stores
/// **Costs.** Stride 1 only. Not supported: other types, nchw, filters whose halo tile does not
/// fit.
/// **Try.** A stride of 2 has four residue classes of pixels, each a forward pass with some of the
/// taps. Do their patches share pixels of dy?
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/implicit_gemm/halo_tile.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_not_one_product(conv)) return why;
  return conv2d::why_no_halo_tile(product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  conv2d::launch_halo_tile(product_of(conv), arrays_of(arrays));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv2d::halo_tile_in_words(product_of(conv));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_halo_tile = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
