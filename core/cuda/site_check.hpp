/// @file site_check.hpp
/// @brief Checks the sites of a rulebook on the device before they are used.
///
/// A row outside of the batch or the grid has no key, or the key of another site: looking it up or
/// storing it would access memory out of bounds. Such rows are therefore rejected first. Duplicates
/// are found by the index that a rung builds anyway, and are counted in the same structure.
#pragma once

#include "core/cuda/device_array.hpp"
#include "core/site_errors.hpp"

namespace convladder::BACKEND {

/// The check of the sites of one run.
class SiteCheck {
 public:
  /// Checks every row of coords [sites][1 + ndim] on the device. The host waits for the result.
  /// @throws BadInput if rows are outside of batch and shape, with their number and the first of
  /// them
  SiteCheck(const RulebookProblem& book, const std::int32_t* coords);

  /// The device counter of duplicate rows: see count_duplicate().
  SiteErrors* errors() const { return errors_.data(); }

  /// Waits for the kernels' counts. @throws BadInput if they found duplicates
  void require_distinct() const;

 private:
  RulebookProblem book_;
  const std::int32_t* coords_;
  DeviceArray<SiteErrors> errors_;
};

/// Reads the kernels' counts; the host waits. @throws BadInput if they found rows outside of batch
/// and shape, or duplicates
/// @param coords [sites][1 + ndim], on the device
/// @param errors on the device
void require_no_errors_on_device(const RulebookProblem& book, const std::int32_t* coords,
                                 const SiteErrors* errors);

/// Counts `row`, which repeats the site of an earlier row. Device function.
inline __device__ void count_duplicate(SiteErrors* errors, std::int32_t row) {
  atomicAdd(&errors->duplicates, 1);
  atomicMin(&errors->first_duplicate, row);
}

/// Sorts the keys of all sites, which must be inside of the grid, as an index for binary search.
/// Equal neighbours are duplicates and are counted. Takes about 36 bytes of temporary memory per
/// site.
/// @param coords [sites][1 + ndim]
/// @param keys [sites], out: key_of() in the grid `shape`, ascending
/// @param rows [sites], out: the row of each; the smallest first among equal keys
/// @param errors counter of duplicates
void sort_sites(const RulebookProblem& book, const std::int32_t* coords, std::int64_t* keys,
                std::int32_t* rows, SiteErrors* errors);

}  // namespace convladder::BACKEND
