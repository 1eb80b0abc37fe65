/// @file site_errors.hpp
/// @brief The errors of a rulebook's sites, and their messages.
#pragma once

#include <cstdint>
#include <span>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// Counts of invalid rows of coords [sites][1 + ndim], and the first of each kind. Rows outside are
/// excluded before duplicates are searched: only sites inside of the grid have a key.
struct SiteErrors {
  /// No row.
  static constexpr std::int32_t kNone = 0x7fffffff;
  std::int32_t outside = 0;  ///< Rows with a negative or too large batch index or coordinate.
  std::int32_t first_outside = kNone;    ///< The first of them.
  std::int32_t duplicates = 0;           ///< Rows that repeat the site of an earlier row.
  std::int32_t first_duplicate = kNone;  ///< The first of them.
};

/// Whether a site is inside of the batch and the grid.
HOST_DEVICE inline bool is_inside(const RulebookProblem& book, const Site& site) {
  if (site.batch < 0 || site.batch >= book.batch) return false;
  for (int axis = 0; axis < book.ndim; ++axis) {
    if (site.at[axis] < 0 || site.at[axis] >= book.shape[axis]) return false;
  }
  return true;
}

/// The errors of `coords`, found by sorting.
SiteErrors find_site_errors(const RulebookProblem& book, std::span<const std::int32_t> coords);

/// @throws BadInput "coords = ...: 3 of 100 rows lie outside of ...; the first is row 7" if there
/// are errors. @param coords for the text of the offending rows; may be empty, then only their
/// indices are given.
void require_no_errors(const RulebookProblem& book, const SiteErrors& errors,
                       std::span<const std::int32_t> coords = {});

}  // namespace convladder
