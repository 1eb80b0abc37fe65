/// @file dtype_name.hpp
/// @brief What `--dtype` calls the numbers of a problem.
#pragma once

#include "core/type_names.hpp"

namespace convladder {

/// As on the command line: "fp16"; of floats, how exactly they are multiplied.
constexpr const char* dtype_name(DType dtype, Precision precision) {
  switch (dtype) {
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    default: return name_of(precision);
  }
}

}  // namespace convladder
