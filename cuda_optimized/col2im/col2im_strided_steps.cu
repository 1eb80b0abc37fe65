/// @file col2im_strided_steps.cu
/// @brief col2im: only those windows are visited that read the pixel.
///
/// - Before: col2im_batched.cu
/// - After: col2im_vectorized.cu
/// - The kernel: strided_steps.cuh
/// - The same maths: cpu_reference/col2im/col2im.cpp
///
/// **The idea.** A dilated window has gaps, and it is usual to try every window that covers the
/// pixel, and to go on if the pixel is in a gap. But which windows read it is known beforehand.
/// Window o reads position `at` as tap k if o * stride + k * dilation = at. Let g = gcd(stride,
/// dilation): if g does not divide `at`, no window does. Otherwise o is known modulo dilation / g
/// (from the inverse of stride / g, which the host finds once), and from one such window to the
/// next, o grows by dilation / g and k falls by stride / g. So the elements of col that belong to a
/// pixel form a box, with the same three strides for all pixels.
///
///     stride 2, dilation 3, 3 taps                  at = 8: windows 1, 2, 3 and 4 cover it.
///     0 1 2 3 4 5 6 7 8 9 ...                       2 o + 3 k = 8: o = 1 (modulo 3).
///         x     x     x                window 1     Window 1 reads it, as tap 2; window 4,
///             x     x     x            window 2     3 windows on, 2 taps earlier, as tap 0.
///                 x     x     x        window 3
///                     x     x     x    window 4
///
/// **Expect.** As many iterations as terms: for stride 1 and dilation d, d times fewer for each
/// axis. The divisions are by numbers that the host knows, hence multiplications, and a fixed
/// number of them a pixel. A copy of the bytes of B3 or B4 takes 61 us; this takes several times as
/// long, as loads have 4 bytes, and each sum waits for its load.
/// **Costs.** A dozen constants. Declines NHWC, other types, and 2^31 or more pixels in a channel.
/// **Try.** Count the iterations of both rungs on the host for stride 1, dilation 4, 3 taps.
#include "core/im2col_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/col2im/strided_steps.cuh"

namespace convladder::BACKEND::cuda_optimized::col2im {
namespace {

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return too_large_for_steps(problem);
}

void run(const Im2colProblem& problem, const Arguments& arrays) {
  launch_col2im_strided_steps(problem, arrays.in<float>("col"), arrays.out<float>("x"));
}

}  // namespace

Implementation<Im2colProblem> col2im_strided_steps() { return {.supports = supports, .run = run}; }

}  // namespace convladder::BACKEND::cuda_optimized::col2im
