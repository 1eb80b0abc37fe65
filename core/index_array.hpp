/// @file index_array.hpp
/// @brief The arrays of indices that sparse problems have: coordinates, a rulebook's tables.
#pragma once

#include <string>
#include <utility>

#include "core/array.hpp"

namespace convladder {

/// @param axes one letter an axis, as ArraySpec::axes
inline ArraySpec int_spec(std::string name, std::string axes, Shape shape) {
  return {std::move(name), std::move(axes), std::move(shape), DType::i32};
}

}  // namespace convladder
