/// @file cluster_split_k.cu
/// @brief Split-K over a cluster: two blocks compute half of dy's channels of a tile each, and
/// exchange accumulators.
///
/// - Before: halo_tile.cu
/// - The kernels: cuda_optimized/conv2d/hopper/cluster_split_k.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** Where tiles are few and sums are long, the two blocks of a cluster compute the
/// same tile, each over half of dy's channels, and write halves of their accumulators into each
/// other's shared memory. The kernel is the forward pass's, for the windows of dy:
///
///     block 0   dy's channels 0 to 255      columns 112 ... 223  ->  shared memory of block 1
///     block 1   dy's channels 256 to 511    columns   0 ... 111  ->  shared memory of block 0
///
/// Weights are the transposed operand A, as in halo_tile.cu. The transposition in `wgmma` costs
/// nothing: shared memory is not the limit while 224 columns are multiplied.
///
/// **Expect.** The forward pass's time for the same products: B7 15.5 us.
/// @expect on --n 4 --c 64 --h 7 --w 7 --k 128 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * (1 + 9) + 2 * 4 * 14 = 132, boxes of two blocks, and sums
/// @expect launches 1
/// @expect blocks 2, a cluster
/// **Costs.** As the forward pass. Stride 1 only; not supported: sums over 64 filters or fewer.
/// **Try.** What do the two blocks load that is the same? Let TMA multicast it to both.
#include "core/conv2d_gradients.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/hopper/cluster_split_k.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

Declined supports(const Conv2dProblem& conv) {
  if (const Declined why = why_not_one_product(conv)) return why;
  return conv2d::why_no_cluster_split_k(product_of(conv));
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context&) {
  conv2d::launch_cluster_split_k(product_of(conv), arrays_of(arrays));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv2d::cluster_split_k_in_words(product_of(conv));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> hopper_cluster_split_k = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
