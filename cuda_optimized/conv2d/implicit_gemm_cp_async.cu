/// @file implicit_gemm_cp_async.cu
/// @brief conv2d as a matrix product: the copies of two steps are in flight during the arithmetic.
///
/// - Before: implicit_gemm_vectorized.cu
/// - After: implicit_gemm_split_k.cu, implicit_gemm_mma_tf32.cu
/// - The kernel: implicit_gemm_pipeline.cuh
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** cp.async copies from global to shared memory without waiting. With three stages, a
/// block starts the copies for the step after next, and computes the step whose copies it started
/// two steps ago. The copy also pads: told to read 0 bytes, it writes zeros. And the weights are
/// packed with the channel as the fastest index, k = (r, s, c) instead of (c, r, s): a step of 16
/// products is then 16 channels of *one* tap. Where that tap lies, and whether in the padding, is
/// found once for C / 16 steps; in between, an address moves on by H * W for each channel.
///
///     stage 0   copy 0 . . . . | compute 0    | copy 3 . . . . . . . . . . | compute 3
///     stage 1     copy 1 . . . . . . . . . .  | compute 1   | copy 4 . . . . . . . . .
///     stage 2                  | copy 2 . . . . . . . . . . | compute 2    | copy 5 ...
///                              one barrier a step: before a stage is read, and another overwritten
///
/// **Expect.** With 128 x 64 sums and 16 products a step, a thread has 1024 multiply-adds between
/// two barriers, loads 64 vectors, and starts 12 copies with some 30 instructions: 58 TFLOP/s at
/// best on an H200, 4.1 ms for B10 (64x512x28x28, 512 filters 3x3), 0.13 ms for B4 (32x64x56x56, 64
/// filters 3x3). 128 registers a thread and 36 KB: four blocks an SM.
/// **Costs.** Few tiles leave SMs idle: B7 (32x512x7x7) has 100 for 132 SMs. If C / groups is no
/// multiple of the step (B3), k stays (c, r, s), with a table as in implicit_gemm_hoisted.cu.
/// Declines NHWC, other types, the maps split_k and stream_k, and images too large for 32-bit
/// offsets.
/// **Try.** Set the stages in implicit_gemm_tiles.cuh to 2, and to 5. How long may a copy take in
/// each case, and how many blocks does shared memory leave for an SM?
#include "core/conv2d_problem.hpp"
#include "cuda_optimized/conv2d/implicit_gemm_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// The convolution as the one product of the kernel.
template <class T>
Products<1> products_of(TileTag<T> tag, const Conv2dProblem& conv) {
  return {.of = {planned_for(tag, forward_product(conv))}, .map = conv.map};
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product(conv)) return reason;
  if (const Declined reason = why_no_gather(forward_product(conv))) return reason;
  return with_tile(forward_product(conv), [&](auto tag) {
    return tile_map::why_no_whole_tiles(products_of(tag, conv).tiles());
  });
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return with_tile(forward_product(conv), [&](auto tag) {
    const GatheredProduct product = planned_for(tag, forward_product(conv));
    return static_cast<std::size_t>(product.packed_floats()) * sizeof(float) + kAlignment;
  });
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  with_tile(forward_product(conv), [&](auto tag) {
    using T = typename decltype(tag)::Tile;
    const Products<1> products = products_of(tag, conv);
    const GatheredProduct& product = products.of[0];
    auto* packed = aligned<float>(arrays.workspace<void>());
    launch_pack(product, arrays.in<float>("weights"), packed);
    const StoreImages store(product, arrays.out<float>("y"), arrays.in_or_null<float>("bias"),
                            conv.activation);
    launch_gathered<T>(products, store, arrays.in<float>("x"), packed);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return with_tile(forward_product(conv), [&](auto tag) {
    const GatheredProduct product = planned_for(tag, forward_product(conv));
    return text(in_words(tag, product.table), pixels_in_fours(product) ? ", pixels in fours" : "");
  });
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_cp_async() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
