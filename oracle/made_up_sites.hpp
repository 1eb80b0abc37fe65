/// @file made_up_sites.hpp
/// @brief Sites for sparse problems that nobody has points for: where they lie, in what order, and
/// which of them cannot be used.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

/// Where made-up sites lie in their grid.
enum class Places {
  scattered,  ///< anywhere
  cluster,    ///< anywhere in a box of about twice as many cells
  block,      ///< in all cells of a box, as far as they reach
  plane,      ///< anywhere in a plane across one of the axes
  line,       ///< anywhere on a line along one of the axes
  corners     ///< anywhere in two boxes, at the first and the last cell of the grid
};

/// As on the command line, by Places.
inline constexpr std::array<std::string_view, 6> kPlaces = {"scattered", "cluster", "block",
                                                            "plane",     "line",    "corners"};

/// The order of made-up sites.
enum class SiteOrder {
  drawn,     ///< as they were drawn: none
  sorted,    ///< ascending, the innermost axis fastest
  reversed,  ///< descending
  innermost  ///< ascending by the innermost axis first, as columns of a scanner come
};

/// As on the command line, by SiteOrder.
inline constexpr std::array<std::string_view, 4> kSiteOrders = {"drawn", "sorted", "reversed",
                                                                "innermost"};

/// Distinct sites of the grid `book.shape`, int32 [sites][1 + ndim]: `count` of them, or as many as
/// there is room for at such places. The same seed gives the same sites on every machine.
Array made_up_sites(const RulebookProblem& book, std::int64_t count, Places places, SiteOrder order,
                    std::uint64_t seed);

/// Distinct sites [count][1 + ndim] in the grid of a problem, in no order. The same seed gives the
/// same sites on every machine. @param count at most the sites that there are
Array random_sites(const RulebookProblem& book, std::int64_t count, std::uint64_t seed);

/// What makes rows of coords unusable.
enum class BadSite {
  repeated,  ///< Another row has the same site.
  outside    ///< The batch id or a coordinate is below 0, or too large.
};

/// Coordinates with unusable rows.
struct BadSites {
  Array coords;         ///< int32 [sites][1 + ndim]
  std::string refusal;  ///< How the message begins that refuses them; empty: all can be used.
};

/// Makes up to `count` rows of `coords` unusable, which rows `seed` says. Nothing repeats where
/// there are fewer than two sites. @pre all of coords can be used
BadSites bad_sites(const RulebookProblem& book, Array coords, BadSite kind, std::int64_t count,
                   std::uint64_t seed);

}  // namespace convladder
