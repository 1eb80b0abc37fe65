/// @file ladders.hpp
/// @brief The rung table: every ladder with its rungs in reading order.
///
/// Tests, the command, benchmarks, notebooks and the documentation read this table; nothing else
/// selects a rung. To add a rung, add its file, one row in the ladder's .cpp file, and its
/// documentation page.
#pragma once

#include <string>
#include <vector>

#include "core/rung.hpp"

namespace convladder {

/// All ladders, in reading order for a newcomer.
const std::vector<Ladder>& ladders();

/// Operations with names of their own that are computed by the rungs of other ladders. The arrays
/// and problems of such a ladder are in the operation's terms. These ladders are not among
/// ladders().
const std::vector<Ladder>& aliases();

/// The ladder or alias with that name. @throws BadInput with the nearest name if there is none.
const Ladder& ladder(const std::string& name);

/// The candidate with the smallest edit distance to `word`; empty without candidates.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace convladder
