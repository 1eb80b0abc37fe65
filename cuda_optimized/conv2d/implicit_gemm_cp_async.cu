/// @file implicit_gemm_cp_async.cu
/// @brief conv2d as a matrix product: copies of three stages are in flight during the arithmetic.
///
/// - Before: implicit_gemm_vectorized.cu (copies a step, waits, computes it, waits)
/// - After:  implicit_gemm_split_k.cu (several blocks share the sums of a tile)
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** cp.async copies from global to shared memory without a register in between, and
/// without waiting. With three tiles of each factor in shared memory, a block starts the copies of
/// the step after next, waits for those that it started two steps ago, and computes:
///
///     stage 0   copy 0 . . . . | compute 0    | copy 3 . . . . . . . . . . | compute 3
///     stage 1     copy 1 . . . . . . . . . .  | compute 1   | copy 4 . . . . . . . . .
///     stage 2                  | copy 2 . . . . . . . . . . | compute 2    | copy 5 ...
///                              one barrier a step: before a stage is read, and before it is left
///
/// The copy can also write fewer bytes than it is long, and zeros for the rest: with 0 bytes for a
/// tap in the padding, the hardware pads. And as the weights are packed anyway, they are packed
/// with the channel as the fastest index: (r, s, c) instead of (c, r, s). A step of 16 products is
/// then 16 channels of *one* tap. Whether that lies in the padding, and where, is found once for C
/// / 16 steps; from a step to the next a thread adds 16 * H * W to its address, and that is all:
///
///     k = (r, s, c):   tap 0: c = 0 ... 15 | 16 ... 31 | ...   tap 1: c = 0 ... 15 | ...
///
/// If C / groups is no multiple of the step, whole tiles of channels would be mostly padding (B3
/// has 3 channels). Then k stays (c, r, s), with a table of offsets in shared memory and a bit for
/// each row and column of taps, as in implicit_gemm_hoisted.cu.
///
/// **Expect.** At 128 x 64 sums and 16 products a step, a thread computes 1024 multiply-adds
/// between two barriers, loads 64 vectors from shared memory, and starts 12 copies, which take some
/// 30 instructions. 128 registers and 36 KB of shared memory: four blocks an SM. Measured on an
/// H200: 5.0 ms for B10 (64x512x28x28, 512 filters 3x3), 47.6 TFLOP/s, where cuBLAS reaches 51 for
/// a plain product; 178 us for B4 (32x64x56x56, 64 filters 3x3), 41.5 TFLOP/s. 87 % of the
/// instructions are multiply-adds; what is left is mostly their operands in the same register bank.
/// Tried and not kept: 128 x 128 sums a block (3 % slower for B10, 7 % for B8, as fewer blocks hide
/// each other's waiting), 128 x 256 (2 % faster for B10, slower elsewhere), 8 products a step (6 %
/// slower), and a number of bytes that is computed instead of chosen (the compiler then corrects
/// each address).
/// **Costs.** Problems with few tiles leave SMs idle: B7 (32x512x7x7) has 100 tiles for 132 SMs.
/// The sums of the real data differ in the last bits from those of the rungs before, as k has
/// another order. Declines what implicit_gemm_vectorized.cu declines, but for R + S; of
/// the tile maps, those that hand out less than whole tiles.
/// **Try.** Set kStages to 2, and to 5. What does the second barrier protect in the first case,
/// that is missing then? What does shared memory allow in the second?
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
