/// @file contains.hpp
/// @brief Whether a message says something.
#pragma once

#include <string>

namespace convladder::testing {

/// Whether `part` stands in `text`.
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace convladder::testing
