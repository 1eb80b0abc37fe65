/// @file array_of.hpp
/// @brief Arrays of numbers that stand in a test.
#pragma once

#include <algorithm>
#include <vector>

#include "core/array.hpp"

namespace convladder::testing {

/// The values, row-major.
inline Array array_of(const std::vector<float>& values, Shape shape) {
  Array array(DType::f32, std::move(shape));
  std::copy(values.begin(), values.end(), array.as<float>().begin());
  return array;
}

}  // namespace convladder::testing
