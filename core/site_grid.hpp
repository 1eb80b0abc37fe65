/// @file site_grid.hpp
/// @brief A grid with sites but without a kernel, as a RulebookProblem.
#pragma once

#include <string>

#include "core/rulebook_problem.hpp"

namespace convladder {

/// The same axes, batch, sites and shape, with a kernel of 1.
/// @throws BadInput if an extent is out of range
RulebookProblem validated_site_grid(RulebookProblem grid);

/// "1000 sites in 40x40x10, batch 2".
std::string describe_site_grid(const RulebookProblem& grid);

}  // namespace convladder
