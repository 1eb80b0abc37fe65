/// @file error.hpp
/// @brief The exceptions that a caller can handle.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "core/text.hpp"

namespace convladder {

/// An invalid request: the message names the parameter, its value and the rule that it violates.
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

/// Checks an array that this rung reads, though not every rung does. @param elements its number of
/// elements
/// @throws BadInput if it is null and not empty
template <class T>
T* needed(const std::string& name, T* array, std::int64_t elements) {
  require(array != nullptr || elements == 0, name, "null", "this rung reads it");
  return array;
}

}  // namespace convladder
