/// @file earlier_rungs.hpp
/// @brief Rungs of earlier versions: what renamed ones are called now, and which rung to use in
/// place of a removed one.
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

/// A rung that has another name now. Commands and Python take the old one, too, until the next
/// release, and say what it is called now. docs/other_names.md lists the same names.
struct RenamedRung {
  std::string name;  ///< As it was called, "cuda_optimized/conv2d/direct_tiled".
  std::string now;   ///< "cuda_optimized/conv2d/direct/tiled".
};

/// All of them.
const std::vector<RenamedRung>& renamed_rungs();

}  // namespace convladder
