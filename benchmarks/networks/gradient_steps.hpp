/// @file gradient_steps.hpp
/// @brief What a network's backward pass does between its rungs: an activation's gradient, a bias',
/// and two rearrangements. All arrays are where the rungs compute; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.hpp"

namespace convladder::benchmarks {

/// The steps, in one of the places where rungs compute. They run in the current stream, and may
/// return before they are done.
struct GradientSteps {
  /// From the gradient of y = relu(z + bias), of `dtype`, to those of z and of the bias: dy [rows]
  /// [channels] becomes 0 where y is, and db [channels] the sum of its rows, in one order.
  /// @param parts  part_bytes() of memory
  void (*through_relu)(DType dtype, std::int64_t rows, int channels, const void* y, void* dy,
                       float* db, float* parts);
  /// How much memory through_relu() needs. Depends on nothing but the two numbers.
  std::size_t (*part_bytes)(std::int64_t rows, int channels);
  /// flipped[k] = weights[KV - 1 - k], each a matrix of so many numbers of `dtype`. With them, the
  /// gradient of a submanifold convolution reads the table of its forward pass: of two neighbours,
  /// each lies at the other's opposite tap.
  void (*flip_taps)(DType dtype, int KV, std::int64_t numbers, const void* weights, void* flipped);
  /// Where the pairs of each tap begin: offsets [KV + 1] of pairs [count][3], which are sorted.
  void (*find_offsets)(std::int64_t count, int KV, const std::int32_t* pairs,
                       std::int32_t* offsets);
};

}  // namespace convladder::benchmarks

// gradient_steps.cu is compiled once for each place where kernels run.
namespace convladder::emulated {
extern const benchmarks::GradientSteps gradient_steps;  ///< Of cuda_on_cpu.
}
namespace convladder::gpu {
extern const benchmarks::GradientSteps gradient_steps;  ///< Of a GPU, if nvcc built the program.
}
