/// @file properties.hpp
/// @brief What must hold beside the public cases: relations between rungs, and sweeps over more
/// problems than cases have room for.
#pragma once

#include <string>
#include <vector>

namespace convladder::check {

/// Something that must hold.
struct Property {
  std::string name;             ///< "adjoint"
  std::string (*difference)();  ///< Where it does not hold, in words; empty: nowhere.
};

/// Those of this assignment. (check/assignment.cpp was written for it.)
const std::vector<Property>& properties();

/// im2col and col2im are adjoint: <im2col(x), c> = <x, col2im(c)> for the problems of all cases of
/// im2col.
std::string adjoint();

}  // namespace convladder::check
