/// @file site_taps.cuh
/// @brief A submanifold site in registers, and the keys of the cells that its taps lead to.
#pragma once

#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// A row of coords, in registers: the number of axes is a compile-time constant.
template <int kAxes>
struct GivenSite {
  int sample;          ///< The sample.
  int at[kAxes];       ///< The coordinates.
  bool inside = true;  ///< of the batch and the grid

  /// Row `row` of coords.
  __device__ GivenSite(const RulebookProblem& book, const std::int32_t* coords, std::int64_t row) {
    const std::int32_t* from = coords + row * (1 + kAxes);
    sample = from[0];
    inside = sample >= 0 && sample < book.batch;
    for (int axis = 0; axis < kAxes; ++axis) {
      at[axis] = from[1 + axis];
      inside = inside && at[axis] >= 0 && at[axis] < book.shape[axis];
    }
  }

  /// Its key. @pre inside
  __device__ std::uint64_t key(const RulebookProblem& book) const {
    auto key = static_cast<std::uint64_t>(sample);
    for (int axis = 0; axis < kAxes; ++axis)
      key = key * static_cast<unsigned>(book.shape[axis]) + static_cast<unsigned>(at[axis]);
    return key;
  }
};

/// Calls visit(k, inside, key) for the taps k from `first` to `last` - 1 of a site of mode subm:
/// whether the cell at the tap is inside of the grid, and if so, its key. The taps of a site
/// outside of the grid are all outside.
///
/// A line is the taps of a kernel along the last axis. The part of the key from the other axes is
/// computed once per line, without a division.
template <int kAxes, class Visit>
__device__ void visit_taps(const RulebookProblem& book, const GivenSite<kAxes>& site, int first,
                           int last, Visit visit) {
  constexpr int kLine = kAxes - 1;
  int tap[kAxes] = {};
  if (first != 0) {
    int rest = first;
    for (int axis = kLine; axis >= 0; --axis) {
      tap[axis] = rest % book.kernel[axis];
      rest /= book.kernel[axis];
    }
  }
  // Where a tap leads, modulo 2^32. A coordinate and the padding are less than 2^31, and no tap
  // reaches further than the padding on the other side: coordinates outside of the grid, on either
  // side, are 2^31 or more, and so exceed any extent.
  const auto along = [&](int axis) {
    return static_cast<std::uint32_t>(site.at[axis]) - static_cast<std::uint32_t>(book.pad[axis]) +
           static_cast<std::uint32_t>(tap[axis]) * static_cast<std::uint32_t>(book.dilation[axis]);
  };
  for (int k = first; k < last;) {
    bool inside = site.inside;
    auto line_key = static_cast<std::uint64_t>(site.sample);  // wraps around outside of the grid
    for (int axis = 0; axis < kLine; ++axis) {
      const std::uint32_t there = along(axis), extent = static_cast<unsigned>(book.shape[axis]);
      inside = inside && there < extent;
      line_key = line_key * extent + there;
    }
    line_key *= static_cast<unsigned>(book.shape[kLine]);
    for (; tap[kLine] < book.kernel[kLine] && k < last; ++tap[kLine], ++k) {
      const std::uint32_t there = along(kLine);
      visit(k, inside && there < static_cast<unsigned>(book.shape[kLine]), line_key + there);
    }
    tap[kLine] = 0;
    for (int axis = kLine - 1; axis >= 0; --axis) {
      if (++tap[axis] < book.kernel[axis]) break;
      tap[axis] = 0;
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
