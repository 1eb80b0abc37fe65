/// @file lattice_problems.cuh
/// @brief Which problems a Lattice takes, how many sites they find at most, and bad sites.
#pragma once

#include <algorithm>
#include <numeric>

#include "core/cuda/device_array.hpp"
#include "core/cuda/site_check.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The most sites that those of coords can lead to. Of the taps along an axis, those that lead
/// somewhere are stride / gcd(stride, dilation) apart: with stride 2 and dilation 2, all may.
inline std::int64_t most_found(const RulebookProblem& book) {
  std::int64_t most = book.sites;
  for (int axis = 0; axis < book.ndim; ++axis) {
    const int step = book.mode == SparseMode::transposed
                         ? 1
                         : book.stride[axis] / std::gcd(book.stride[axis], book.dilation[axis]);
    most *= ceil_div(book.kernel[axis], step);  // at most KV * sites: no overflow
  }
  return std::min(most, key_count(book, book.out_shape));
}

/// What a Lattice does not take.
inline Declined lattice_supports(const RulebookProblem& book) {
  if (book.mode == SparseMode::subm) return "modes strided, transposed and inverse only";
  for (int axis = 0; axis < book.ndim; ++axis) {
    const std::int64_t extent = std::max(book.shape[axis], book.out_shape[axis]);
    if (extent * book.stride[axis] + book.pad[axis] +
            window_extent(book.kernel[axis], book.dilation[axis]) >=
        std::int64_t{1} << 31)
      return "windows that end before 2^31 only";
  }
  return {};
}

/// The same for kernels that number cells with 32 bits. The found sites' grid counts as well as the
/// given ones': under `transposed` it is the larger one.
inline Declined small_lattice_supports(const RulebookProblem& book) {
  if (const std::int64_t most = std::int64_t{1} << 31;
      key_count(book, book.shape) >= most || key_count(book, book.out_shape) >= most)
    return "grids of fewer than 2^31 cells only";
  return lattice_supports(book);
}

/// Says what is wrong with the sites, once a kernel has found that something is: slowly, and with
/// the numbers of the rows. @throws BadInput
inline void report_site_errors(const RulebookProblem& book, const std::int32_t* coords) {
  const SiteCheck sites(book, coords);
  const DeviceArray<std::int64_t> keys(book.sites);
  const DeviceArray<std::int32_t> rows(book.sites);
  sort_sites(book, coords, keys.data(), rows.data(), sites.errors());
  sites.require_distinct();
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
