#include "core/array.hpp"

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

}  // namespace convladder
