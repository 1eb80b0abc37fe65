/// @file with_type.hpp
/// @brief From a number type of a problem to one of C++.
#pragma once

#include "core/array.hpp"
#include "core/half.hpp"

namespace convladder {

/// Calls body with a number of that type: Half, BFloat16, or float for all others. A body is a
/// template: `[&]<class T>(T) { ... }`.
template <class Body>
auto with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f16: return body(Half{});
    case DType::bf16: return body(BFloat16{});
    default: return body(float{});
  }
}

}  // namespace convladder
