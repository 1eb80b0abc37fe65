/// @file bad_sites.hpp
/// @brief Sites of which some cannot be used, and what every rung must say of them.
#pragma once

#include <cstdint>
#include <string>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder {

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
