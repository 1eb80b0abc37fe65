/// @file site_check.hpp
/// @brief The sites of a rulebook, checked on the device before anything is made of them.
///
/// A row outside of the batch or the grid has no key, or another site's: looked up or stored, it
/// would read and write out of bounds. So those are ruled out first. Rows that repeat a site are
/// found by the index that a rung builds anyway, and counted in the same place.
#pragma once

#include "core/cuda/device_array.hpp"
#include "core/site_errors.hpp"

namespace convladder::BACKEND {

/// The check of one run's sites.
class SiteCheck {
 public:
  /// Looks at every row of coords [sites][1 + ndim], on the device. The host waits for the answer.
  /// @throws BadInput if rows lie outside of batch and shape, with their number and the first
  SiteCheck(const RulebookProblem& book, const std::int32_t* coords);

  /// Where kernels count the rows that repeat a site, on the device: see count_duplicate().
  SiteErrors* errors() const { return errors_.data(); }

  /// Waits for what kernels have counted. @throws BadInput if they found duplicates
  void require_distinct() const;

 private:
  RulebookProblem book_;
  const std::int32_t* coords_;
  DeviceArray<SiteErrors> errors_;
};

/// Reads back what kernels have counted; the host waits. @throws BadInput if they found rows
/// outside of batch and shape, or duplicates
/// @param coords [sites][1 + ndim], on the device
/// @param errors on the device
void require_no_errors_on_device(const RulebookProblem& book, const std::int32_t* coords,
                                 const SiteErrors* errors);

/// Counts `row`, which repeats the site of a row before. On the device.
inline __device__ void count_duplicate(SiteErrors* errors, std::int32_t row) {
  atomicAdd(&errors->duplicates, 1);
  atomicMin(&errors->first_duplicate, row);
}

/// Sorts the keys of all sites, which lie inside of the grid: an index of them for binary search.
/// Equal neighbours are duplicates, and counted. Takes temporary memory of 36 bytes a site or so.
/// @param coords [sites][1 + ndim]
/// @param keys [sites], out: key_of() in the grid `shape`, ascending
/// @param rows [sites], out: the row of each; of equal keys the smallest first
/// @param errors where duplicates are counted
void sort_sites(const RulebookProblem& book, const std::int32_t* coords, std::int64_t* keys,
                std::int32_t* rows, SiteErrors* errors);

}  // namespace convladder::BACKEND
