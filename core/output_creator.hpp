/// @file output_creator.hpp
/// @brief Outputs whose shape is computed by the rung.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/types.hpp"

namespace convladder {

/// Allocates an output of int32 whose shape is now known: called once per output and run.
using OutputCreator = std::function<std::int32_t*(const std::string& name, const Shape& shape)>;

}  // namespace convladder
