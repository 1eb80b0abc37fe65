/// @file arrays.hpp
/// @brief Arrays of four axes, for identities.
#pragma once

#include <algorithm>
#include <functional>

#include "core/arithmetic.hpp"
#include "tests/identity_tools.hpp"

namespace convladder::testing {

/// A new array of four axes whose element [a, b, c, d] is value(a, b, c, d).
inline Array make4(const Shape& shape, const std::function<float(int, int, int, int)>& value) {
  Array result(DType::f32, shape);
  const auto to = result.as<float>();
  std::size_t i = 0;
  for (int a = 0; a < shape[0]; ++a) {
    for (int b = 0; b < shape[1]; ++b) {
      for (int c = 0; c < shape[2]; ++c) {
        for (int d = 0; d < shape[3]; ++d) to[i++] = value(a, b, c, d);
      }
    }
  }
  return result;
}

/// Element [a, b, c, d] of an array of four axes.
class View4 {
 public:
  explicit View4(const Array& array)
      : data_(floats(array)),
        at_{static_cast<int>(array.shape()[1]), static_cast<int>(array.shape()[2]),
            static_cast<int>(array.shape()[3])} {}
  float operator()(int a, int b, int c, int d) const { return data_[at(at_(a, b, c, d))]; }

 private:
  std::span<const float> data_;
  Index4 at_;
};

/// Image n of a batch, as a batch of one.
inline Array image(const Array& batch, std::int64_t n) {
  Shape shape = batch.shape();
  const std::int64_t one = element_count(shape) / shape[0];
  shape[0] = 1;
  Array result(batch.dtype(), shape);
  std::copy_n(floats(batch).begin() + n * one, one, result.as<float>().begin());
  return result;
}

}  // namespace convladder::testing
