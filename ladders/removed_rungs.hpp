/// @file removed_rungs.hpp
/// @brief Rungs of earlier versions, and which rung to use in place of each.
#pragma once

#include <string>
#include <vector>

namespace convladder {

/// A rung that is no longer there. docs/other_names.md lists the same rungs, with reasons.
struct RemovedRung {
  std::string name;     ///< As it was called, "cuda_optimized/conv2d/winograd_chunks".
  std::string instead;  ///< The name of a rung.
};

/// All of them.
const std::vector<RemovedRung>& removed_rungs();

}  // namespace convladder
