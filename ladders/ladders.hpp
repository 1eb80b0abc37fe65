/// @file ladders.hpp
/// @brief The rung table: every ladder, with its rungs in the order of reading.
///
/// Tests, the command, benchmarks, notebooks and the docs all read this table; nothing else selects
/// a rung. To add a rung, add its file, one row in its ladder's .cpp, and its docs page.
#pragma once

#include <string>
#include <vector>

#include "core/rung.hpp"

namespace convladder {

/// All ladders, in the order in which a newcomer reads them.
const std::vector<Ladder>& ladders();

/// Operations under names of their own that the rungs of other ladders compute: ladders whose rungs
/// are those, with arrays and problems in the operation's terms. They are not among ladders().
const std::vector<Ladder>& aliases();

/// The ladder, or alias, of that name. @throws BadInput that names the nearest ladder.
const Ladder& ladder(const std::string& name);

/// The candidate that differs from `word` by the fewest edits; empty without candidates.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace convladder
