/// @file sites.hpp
/// @brief Sets of sites for sparse problems: random ones, and shapes whose pairs can be counted by
/// hand.
#pragma once

#include <functional>
#include <vector>

#include "core/array.hpp"
#include "core/rulebook_problem.hpp"
#include "tests/dice.hpp"

namespace convladder::testing {

/// A rulebook's parameters and its sites.
struct SparseCase {
  RulebookProblem book;  ///< Validated.
  Array coords;          ///< [sites][1 + ndim]
};

/// One line, for messages.
inline std::string describe(const SparseCase& sites) { return convladder::describe(sites.book); }

/// These sites, in this order: rows of 1 + ndim numbers.
SparseCase case_of(RulebookProblem book, const std::vector<std::vector<int>>& sites);

/// All sites of the grid for which `holds` is true, in ascending order.
SparseCase case_where(const RulebookProblem& book, const std::function<bool(const Site&)>& holds);

/// `count` distinct sites, or all if there are not so many, in random order.
SparseCase random_case(RulebookProblem book, int count, Dice& dice);

/// The same sites with another mode or other parameters; the sites stay.
SparseCase with_parameters(const SparseCase& sites, RulebookProblem book);

}  // namespace convladder::testing
