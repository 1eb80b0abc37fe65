#include "core/array.hpp"

#include "core/float8.hpp"

namespace convladder {

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) {
      throw BadInput(text("shape = ", to_string(shape), ": has more than 2^63 - 1 elements"));
    }
  }
  return count;
}

Array rounded_to(const Array& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  Array result(dtype, array.shape());
  with_any_float_type(array.dtype(), [&]<class From>(From) {
    with_any_float_type(dtype, [&]<class To>(To) {
      const auto from = array.as<From>();
      const auto to = result.as<To>();
      for (std::size_t i = 0; i < from.size(); ++i) to[i] = rounded_to<To>(to_float(from[i]));
    });
  });
  return result;
}

}  // namespace convladder
