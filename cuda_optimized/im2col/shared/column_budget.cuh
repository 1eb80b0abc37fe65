/// @file column_budget.cuh
/// @brief How many images' columns are in memory at a time, where a rung needs the columns of all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/cuda/launch.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized {

/// The columns of all images can take R * S times the memory of the input; those of one image may
/// be too few to fill the GPU. In between: as many images as fit here. So much stays in the L2
/// cache of a large GPU (50 MB on an H200), where the kernel that reads the columns then finds
/// them.
constexpr std::int64_t kColumnBudget = std::int64_t{32} << 20;  // bytes

/// The columns of `images` images of the convolution's input.
inline Im2colProblem columns_of_images(Conv2dProblem conv, int images) {
  conv.N = images;
  return columns_of(conv);
}

/// Bytes of one image's columns. @throws BadInput on overflow.
inline std::int64_t column_bytes(const Conv2dProblem& conv) {
  const Im2colProblem columns = columns_of_images(conv, 1);
  return checked_product({columns.rows(), columns.columns(), sizeof(float)}, "bytes of columns");
}

/// As many images as fit the budget: at least one, at most all of them.
inline int images_at_a_time(const Conv2dProblem& conv) {
  const std::int64_t fitting = std::max<std::int64_t>(1, kColumnBudget / column_bytes(conv));
  return static_cast<int>(std::min<std::int64_t>(conv.N, fitting));
}

/// For a rung's choice.
inline const char* images_in_words(const Conv2dProblem& conv) {
  const int images = images_at_a_time(conv);
  return images == conv.N ? "all images at a time"
         : images == 1    ? "an image at a time"
                          : "some images at a time";
}

/// The workspace for their columns.
inline std::size_t column_workspace(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(
      checked_product({images_at_a_time(conv), column_bytes(conv)}, "bytes of columns"));
}

/// Why the columns cannot be the operand of a GEMM, whose extents are ints.
inline Declined columns_too_large(const Conv2dProblem& conv) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  const Im2colProblem columns = columns_of_images(conv, 1);
  if (columns.rows() > kMax) return "2^31 or more rows of columns (c * r * s)";
  if (columns.columns() > kMax) return "2^31 or more windows an image (p * q)";
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized
