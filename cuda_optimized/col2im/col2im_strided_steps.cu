/// @file col2im_strided_steps.cu
/// @brief col2im, rung 4: only those windows are visited that read the pixel.
///
/// - Before: col2im_batched.cu (visits every window whose extent covers the pixel)
/// - After:  col2im_vectorized.cu (col is read four elements at a time)
/// - The same maths: cpu_reference/col2im/col2im.cpp
///
/// **The idea.** A dilated window has gaps, and Caffe's, MXNet's and PyTorch's kernels all carry
/// the same note: try every window that covers the pixel, and go on if it is in a gap ("TODO: use
/// LCM of stride and dilation"). But which windows do read it is known beforehand. Window o reads
/// position `at` as tap k if
///
///     o * stride + k * dilation = at           g = gcd(stride, dilation)
///
/// If g does not divide `at`, none does. Otherwise divide by g: o is known modulo dilation / g, and
/// there is one such o in each dilation / g neighbours (stride / g has an inverse modulo
/// dilation / g; the extended Euclidean algorithm finds it once, on the host). From one such window
/// to the next, o grows by dilation / g and k falls by stride / g.
///
///     stride 2, dilation 3, 3 taps                  at = 8: windows 1, 2, 3 and 4 cover it.
///     0 1 2 3 4 5 6 7 8 9 ...                       2 o + 3 k = 8: o = 1 (modulo 3).
///         x     x     x                window 1     Window 1 reads it, as tap 2; window 4,
///             x     x     x            window 2     3 windows on, 2 taps earlier, as tap 0.
///                 x     x     x        window 3
///                     x     x     x    window 4
///
/// So the elements of col that belong to one pixel form a box with the same three strides for all
/// pixels, and the innermost loop is a pointer that moves on.
///
/// **Expect.** As many iterations as terms. Over all sizes that the tests of the formula sweep,
/// they fall from 60623 to 36594; for stride 1 and dilation d, d times for each axis. The divisions
/// are by numbers that the host knows, hence multiplications (core/fast_division.hpp), and a
/// constant number of them a pixel. Measured on an H200 (2026-11-21): B4 168 us, col2im_batched
/// 372; B3 191 and 566. The bytes would take 61: each sum waits for its load, and loads have 4
/// bytes.
/// **Costs.** A dozen constants. Declined: 2^31 or more pixels in an image's channel.
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
