/// @file error.hpp
/// @brief The errors that a caller can act on.
#pragma once

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

}  // namespace convladder
