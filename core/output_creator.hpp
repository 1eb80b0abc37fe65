/// @file output_creator.hpp
/// @brief Outputs whose shape a rung has to find out first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/types.hpp"

namespace convladder {

/// Gives memory to an output, of int32, whose shape is known now: once for each output and run.
using OutputCreator = std::function<std::int32_t*(const std::string& name, const Shape& shape)>;

}  // namespace convladder
