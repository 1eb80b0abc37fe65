/// @file warp_specialized.cu
/// @brief Warp-specialized `wgmma` in half precision: the weights are read in place, through the
/// transpose bit.
///
/// - Before: wgmma_tf32.cu
/// - After: hopper/halo_tile.cu
/// - The kernels: cuda_optimized/conv2d/implicit_gemm/warp_specialized.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** As wgmma_tf32.cu: a forward pass over dy for each residue class of pixels. Its
/// sums run over dy's channels k. The weights [k][r][s][c] have c along their rows, so that for
/// TF32, whose `wgmma` operands must be K-major, a kernel copies them first. In half precision
/// `wgmma` has a transpose bit for operand B: TMA copies a box of 64 k and 64 c of one tap to
/// shared memory, and the tensor cores read it transposed:
///
///     weights [K][R*S][C]     tap t:  k0  |.. c0 c1 c2 ... c63 ..|       operand B, row-major:
///                       R*S*C apart   k1  |.. c0 c1 c2 ... c63 ..|  ->   k down, c across
///
/// The tensor map has an axis for groups, so that what follows a group's last k is zeros, and not
/// the next group's weights. The tap of a step is arithmetic on the box's coordinates (WindowTaps
/// in conv2d/shared/wgmma/windows.cuh). The kernel is the forward pass's; its main loop
///
///     for step = (r, s, 64 channels k of dy):     accumulators[i][c] += dy[window i][k] * w[k][c]
///
/// **Expect.** The forward pass's times: one launch where TF32 has two for each class, and 3 to 8
/// us less for it: B4 25 us, B10 400 us. B8, 1 x 1 with stride 2, sets dx to zero first.
/// @expect on --n 1 --c 64 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype bf16
/// @expect requests.shared.async 2 * 9 * 2 = 36, two tiles, 9 steps, two boxes
/// @expect bytes_per_lane.shared.async (128 + 64) * 64 * 2 / 2 = 12288, twice the channels
/// @expect bytes_per_lane.dx.store 4, two elements
/// @expect lanes.global.load 0, nor does a kernel copy weights
/// **Costs.** Both channels and filters of a group in multiples of 8, otherwise the producer warp
/// gathers, slowly. Not supported: other types, nchw, over 1024 taps, GPUs other than sm_90a.
/// **Try.** Remove the axis of groups. Which problems break, and why is it not enough to zero dy
/// beyond a group's last channel if a weight is infinite?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/implicit_gemm/warp_specialized.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(HalfClasses(conv).parts) * sizeof(float);
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const std::int64_t size = std::int64_t{conv.N} * conv.C * conv.H * conv.W;
  if (size == 0) return;
  const HalfClasses classes(conv);
  if (!classes.all_pixels) {  // those that no tap reaches stay zero
    with_half_type(conv.dtype, [&]<class T>(T) {
      check(cudaMemsetAsync(arrays.dx.as<T>(), 0, static_cast<std::size_t>(size) * sizeof(T),
                            current_stream()));
    });
  }
  for (const HalfProduct& product : classes.products)
    conv2d::launch_windows_half(product, arrays_of(arrays), context.workspace_as<float>());
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const HalfClasses classes(conv);
  std::vector<std::string> words;
  for (const HalfProduct& product : classes.products)
    words.push_back(conv2d::windows_half_in_words(product));
  return text(dtype_name(conv.dtype, conv.precision), ", ",
              classes_in_words(words, classes.all_pixels));
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_warp_specialized = {
    .supports = conv2d::why_no_half_windows,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
