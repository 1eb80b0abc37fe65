/// @file implicit_gemm_cp_async.cu
/// @brief conv2d_dgrad as a matrix product: packed weights, and copies of three stages in flight.
///
/// - Before: implicit_gemm.cu
/// - After: implicit_gemm_split_k.cu, implicit_gemm_few_channels.cu, implicit_gemm_mma_tf32.cu
/// - The kernel: cuda_optimized/conv2d/implicit_gemm_pipeline.cuh
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** A residue class is a convolution of dy with stride 1, so the kernel of the forward
/// pass computes it as it is: cuda_optimized/conv2d/implicit_gemm_cp_async.cu explains it. What
/// differs is the packing of the weights, and where the sums go:
///
///     forward    packed [r, s, c][k]      from weights [k][c][r][s]     y, all pixels
///     here       packed [r, s, k][c]      the taps of the class only    dx, every stride-th pixel
///
/// One grid computes up to four classes, all that stride 2 has: the grid of a single class may be
/// too small, and its last blocks would leave SMs idle.
///
/// **Expect.** The forward pass's times for the same sizes, as for B4 and B10. B8 (1 x 1, stride 2)
/// has 103 MB of dx to write, three quarters of it zeros, and every second float at a time: each
/// sector is written twice.
/// **Costs.** A workspace of the size of the weights, rounded up to whole tiles. With few channels
/// most rows of a tile are empty: B3 fills 3 of 32. Declined: what implicit_gemm.cu declines, and a
/// dy of some 2^29 elements an image.
/// **Try.** Launch a grid for each class instead, each on a stream of its own. Which is faster, and
/// why?
#include "core/conv2d_problem.hpp"
#include "cuda_optimized/conv2d/implicit_gemm_tiles.cuh"
#include "cuda_optimized/conv2d_dgrad/packed_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

constexpr int kClasses = 4;  ///< Of a grid, at most.

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product(conv)) return reason;
  return conv2d::why_no_gather(largest_class(conv));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return conv2d::with_tile(largest_class(conv), [&](auto tag) {
    using T = typename decltype(tag)::Tile;
    const bool table = all_take_table<T>(conv);
    std::int64_t floats = 0;
    for_each_class(conv, [&](const ResidueClass&, const conv2d::GatheredProduct& product) {
      floats += conv2d::planned<T>(product, table).packed_floats();
    });
    return static_cast<std::size_t>(floats) * sizeof(float) + conv2d::kAlignment;
  });
}

/// Packs the weights of all classes, and computes them, kClasses in a grid.
template <class T>
void run_with(const Conv2dProblem& conv, const Arguments& arrays) {
  const bool table = all_take_table<T>(conv);
  const StoreClass store(conv, arrays.out<float>("dx"));
  auto* packed = conv2d::aligned<float>(arrays.workspace<void>());
  auto* next_packed = packed;  // where the next class's weights go
  conv2d::Products<kClasses> products{};
  products.count = 0;
  const auto launch_products = [&] {
    if (products.count == 0) return;
    conv2d::launch_gathered<T>(products, store, arrays.in<float>("dy"), packed);
    packed = next_packed;
    products.count = 0;
  };
  for_each_class(conv, [&](const ResidueClass& residue, const conv2d::GatheredProduct& unplanned) {
    const conv2d::GatheredProduct product = conv2d::planned<T>(unplanned, table);
    launch_pack_class(conv, residue, product, arrays.in<float>("weights"), next_packed);
    next_packed += product.packed_floats();
    products.of[products.count++] = product;
    if (products.count == kClasses) launch_products();
  });
  launch_products();
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  conv2d::with_tile(largest_class(conv),
                    [&](auto tag) { run_with<typename decltype(tag)::Tile>(conv, arrays); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  return conv2d::with_tile(largest_class(conv), [&]<class T>(conv2d::TileTag<T> tag) {
    return text(in_words(tag, all_take_table<T>(conv)), ", ", classes_in_words(conv, kClasses),
                pixels_in_fours(conv) ? ", pixels in fours" : "");
  });
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_cp_async() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
