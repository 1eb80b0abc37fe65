/// @file roofline.hpp
/// @brief The roofline picture of a benchmark run.
#pragma once

#include <optional>

#include "benchmarks/results.hpp"
#include "command/drawing.hpp"

namespace convladder::command {

/// The set of ladders in a picture.
enum class Convolutions {
  dense,  ///< dense convolutions and GEMMs
  sparse  ///< sparse ladders
};

/// The fastest rung of each problem and precision, L2 warm, below the ceilings of the GPU:
/// operations per second over operations per byte. Empty if no row has both.
std::optional<Drawing> roofline_picture(const benchmarks::Run& run, Convolutions kind);

}  // namespace convladder::command
