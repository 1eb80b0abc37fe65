/// @file made_up_sites.hpp
/// @brief Generated sites for sparse problems: their distribution, their order, and invalid ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

/// The distribution of made-up sites in their grid.
enum class Places {
  scattered,  ///< anywhere
  cluster,    ///< anywhere in a box of about twice as many cells
  block,      ///< all cells of a box, as far as the number of sites permits
  plane,      ///< anywhere in a plane across one of the axes
  line,       ///< anywhere on a line along one of the axes
  corners     ///< anywhere in two boxes, at the first and the last cell of the grid
};

/// The name on the command line, by Places.
inline constexpr std::array<std::string_view, 6> kPlaces = {"scattered", "cluster", "block",
                                                            "plane",     "line",    "corners"};

/// The order of made-up sites.
enum class SiteOrder {
  drawn,     ///< in drawing order
  sorted,    ///< ascending, the innermost axis fastest
  reversed,  ///< descending
  innermost  ///< ascending by the innermost axis first, like the columns of a scanner
};

/// The name on the command line, by SiteOrder.
inline constexpr std::array<std::string_view, 4> kSiteOrders = {"drawn", "sorted", "reversed",
                                                                "innermost"};

/// Distinct sites of the grid `book.shape`, int32 [sites][1 + ndim]: `count` of them, or as many as
/// the distribution permits. The same seed gives the same sites on every machine.
Array made_up_sites(const RulebookProblem& book, std::int64_t count, Places places, SiteOrder order,
                    std::uint64_t seed);

/// Distinct sites [count][1 + ndim] in the grid of a problem, in random order. The same seed gives
/// the same sites on every machine. @param count at most the number of cells
Array random_sites(const RulebookProblem& book, std::int64_t count, std::uint64_t seed);

/// The kind of error that makes rows of coords invalid.
enum class BadSite {
  repeated,  ///< Another row has the same site.
  outside    ///< The batch index or a coordinate is below 0, or too large.
};

/// Coordinates with invalid rows.
struct BadSites {
  Array coords;         ///< int32 [sites][1 + ndim]
  std::string refusal;  ///< The beginning of the message that rejects them; empty: all are valid.
};

/// Makes up to `count` rows of `coords` invalid, selected by `seed`. There are no duplicates if
/// there are fewer than two sites. @pre all of coords are valid
BadSites bad_sites(const RulebookProblem& book, Array coords, BadSite kind, std::int64_t count,
                   std::uint64_t seed);

}  // namespace convladder
