/// @file roofline.hpp
/// @brief The picture of a run of the benchmarks.
#pragma once

#include <optional>

#include "benchmarks/results.hpp"
#include "command/drawing.hpp"

namespace convladder::command {

/// Whose rows a picture shows.
enum class Convolutions {
  dense,  ///< of whole images, and matrix products
  sparse  ///< of listed sites
};

/// The fastest rung of each problem and precision, L2 warm, under what the GPU reaches: operations
/// a second over operations a byte. Nothing if no row has both.
std::optional<Drawing> roofline_picture(const benchmarks::Run& run, Convolutions kind);

}  // namespace convladder::command
