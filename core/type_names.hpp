/// @file type_names.hpp
/// @brief The names and sizes of element types.
#pragma once

#include <cstddef>

#include "core/types.hpp"

namespace convladder {

/// Bytes of an element.
constexpr std::size_t size_of(DType dtype) {
  if (dtype == DType::f8) return 1;
  return dtype == DType::f16 || dtype == DType::bf16 ? 2 : 4;
}
/// The name in NumPy: "float32"; the last two are those of its extension ml_dtypes.
constexpr const char* name_of(DType dtype) {
  constexpr const char* kNames[] = {"float32", "int32", "float16", "bfloat16", "float8_e4m3fn"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// As on the command line: "tf32".
constexpr const char* name_of(Precision precision) {
  return precision == Precision::fp32 ? "fp32" : "tf32";
}

/// The value of `--dtype` for a problem: "fp16"; for float32, the precision of the products.
constexpr const char* dtype_name(DType dtype, Precision precision) {
  switch (dtype) {
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    case DType::f8: return "fp8";
    default: return name_of(precision);
  }
}

}  // namespace convladder
