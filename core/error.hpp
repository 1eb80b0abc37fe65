/// @file error.hpp
/// @brief The errors that a caller can act on.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "core/text.hpp"

namespace convladder {

/// A request that makes no sense: the message names the parameter, its value and the rule it
/// breaks.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws BadInput "`parameter` = `value`: `rule`" unless `holds`.
template <class Value>
void require(bool holds, const std::string& parameter, const Value& value,
             const std::string& rule) {
  if (!holds) throw BadInput(text(parameter, " = ", value, ": ", rule));
}

/// An array that this rung reads, though not every rung does. @param elements how many it has
/// @throws BadInput if it is null, and has elements
template <class T>
T* needed(const std::string& name, T* array, std::int64_t elements) {
  require(array != nullptr || elements == 0, name, "null", "this rung reads it");
  return array;
}

}  // namespace convladder
