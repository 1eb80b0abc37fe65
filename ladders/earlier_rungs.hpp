/// @file earlier_rungs.hpp
/// @brief Rungs of earlier versions: the new names of renamed rungs, and the replacements of
/// removed rungs.
#pragma once

#include <string>
#include <vector>

namespace convladder {

/// A removed rung. docs/other_names.md lists the same rungs with reasons.
struct RemovedRung {
  std::string name;     ///< The earlier name, "cuda_optimized/conv2d/winograd_chunks".
  std::string instead;  ///< The name of the rung to use instead.
};

/// All removed rungs.
const std::vector<RemovedRung>& removed_rungs();

/// A renamed rung. The command and the Python module accept the earlier name until the next release
/// and report the present name. docs/other_names.md lists the same names.
struct RenamedRung {
  std::string name;  ///< The earlier name, "cuda_optimized/conv2d/direct_tiled".
  std::string now;   ///< The present name, "cuda_optimized/conv2d/direct/tiled".
};

/// All renamed rungs.
const std::vector<RenamedRung>& renamed_rungs();

}  // namespace convladder
