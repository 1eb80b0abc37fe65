/// @file activation.hpp
/// @brief What becomes of an output once it is complete.
#pragma once

#include "core/arithmetic.hpp"

namespace convladder {

/// What becomes of an output once it is complete.
enum class Activation {
  none,  ///< it stays as it is
  relu   ///< negative numbers become 0
};

/// As on the command line: "relu".
constexpr const char* name_of(Activation activation) {
  return activation == Activation::none ? "none" : "relu";
}

/// A complete sum, bias included, as it is stored. Written so that NaN stays NaN, as in PyTorch:
/// max(value, 0) would hide it. -0 stays -0, which equals 0.
HOST_DEVICE constexpr float activated(Activation activation, float value) {
  return activation == Activation::relu && value < 0.0f ? 0.0f : value;
}

}  // namespace convladder
