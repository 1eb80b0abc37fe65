/// @file blanks.hpp
/// @brief The functions that are not written yet.
#pragma once

#include <string>
#include <vector>

namespace convladder::check {

/// The blanks that the program still has, in order: "3.1 load_tile".
std::vector<std::string> not_written();

/// The blank that a run came to since the last call; empty: none.
std::string take_reached_blank();

}  // namespace convladder::check
