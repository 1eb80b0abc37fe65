/// @file sparse.hpp
/// @brief What the ladders over sites have in common.
#pragma once

#include <string>
#include <vector>

#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::command {

/// An array of floats that can be given to a sparse ladder.
struct SparseArray {
  std::string name;
  std::vector<std::string> axes;  ///< "cin" and "cout" tell those extents.
};

/// What a sparse ladder can be given beside sites.
struct SparseParameters {
  std::vector<SparseArray> arrays = {};   ///< Their names are options, too.
  std::vector<std::string> options = {};  ///< The other ones.
};

/// The options that say how a kernel moves over sites, and others.
std::vector<std::string> kernel_options_and(const std::vector<std::string>& others);

/// LadderCommand::read of a sparse ladder.
std::function<std::vector<Task>(const Ladder&, const Options&)> sparse_reader(SparseParameters own);

/// A rulebook over sites. @throws BadInput if it does not fit into the memory
Rulebook rulebook_over(const OverSites& over);

/// Throws BadInput if a rulebook does not fit into the memory.
void require_room_for(const RulebookProblem& book);

/// Gives a task, whose problem is known, the arrays of the rulebook that the problem takes.
void take_rulebook(Task& task, Rulebook rulebook);

}  // namespace convladder::command
