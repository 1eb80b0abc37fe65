#include "core/arithmetic.hpp"

#include "core/error.hpp"

namespace convladder {

std::int64_t checked_product(std::initializer_list<std::int64_t> factors, const std::string& what) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      throw BadInput(text(what, " = ", joined(factors, " * "), ": exceeds 2^63 - 1"));
    }
  }
  return product;
}

}  // namespace convladder
