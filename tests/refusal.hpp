/// @file refusal.hpp
/// @brief What is said of a problem that makes no sense.
#pragma once

#include <string>

#include "core/error.hpp"

namespace convladder::testing {

/// What validated() throws, or "" if it accepts.
template <class P>
std::string refusal(const P& problem) {
  try {
    validated(problem);
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

}  // namespace convladder::testing
