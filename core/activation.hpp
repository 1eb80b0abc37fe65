/// @file activation.hpp
/// @brief The activation functions of an output.
#pragma once

#include "core/arithmetic.hpp"

namespace convladder {

/// The activation function that is applied to a complete sum.
enum class Activation {
  none,  ///< identity
  relu   ///< negative numbers become 0
};

/// The name on the command line: "relu".
constexpr const char* name_of(Activation activation) {
  return activation == Activation::none ? "none" : "relu";
}

/// The activated value of a complete sum, bias included. NaN is preserved, as in PyTorch:
/// max(value, 0) would discard it. -0 stays -0, which equals 0.
HOST_DEVICE constexpr float activated(Activation activation, float value) {
  return activation == Activation::relu && value < 0.0f ? 0.0f : value;
}

}  // namespace convladder
