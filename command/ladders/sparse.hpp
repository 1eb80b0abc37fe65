/// @file sparse.hpp
/// @brief Functions that the sparse ladders share.
#pragma once

#include <string>
#include <vector>

#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::command {

/// A float array that a sparse ladder accepts.
struct SparseArray {
  std::string name;
  std::vector<std::string> axes;  ///< "cin" and "cout" stand for those extents.
};

/// The inputs of a sparse ladder beside the sites.
struct SparseParameters {
  std::vector<SparseArray> arrays = {};   ///< Arrays; their names are also options.
  std::vector<std::string> options = {};  ///< The other options.
};

/// The options of the kernel over the sites, and further ones.
std::vector<std::string> kernel_options_and(const std::vector<std::string>& others);

/// LadderCommand::read of a sparse ladder.
std::function<std::vector<Task>(const Ladder&, const Options&)> sparse_reader(SparseParameters own);

/// The rulebook over sites. @throws BadInput if it does not fit into memory
Rulebook rulebook_over(const OverSites& over);

/// Throws BadInput if a rulebook does not fit into memory.
void require_room_for(const RulebookProblem& book);

/// Adds the arrays of the rulebook to a task whose problem is known.
void take_rulebook(Task& task, Rulebook rulebook);

}  // namespace convladder::command
