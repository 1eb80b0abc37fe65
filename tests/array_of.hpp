/// @file array_of.hpp
/// @brief Arrays of numbers that stand in a test.
#pragma once

#include <algorithm>
#include <vector>

#include "core/array.hpp"

namespace convladder::testing {

/// The values, row-major. @tparam T float or std::int32_t
template <class T = float>
Array array_of(const std::vector<T>& values, Shape shape) {
  Array array(dtype_of<T>(), std::move(shape));
  std::copy(values.begin(), values.end(), array.template as<T>().begin());
  return array;
}

}  // namespace convladder::testing
