/// @file trial.hpp
/// @brief A problem in words, as on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"

namespace convladder::check {

/// A problem, where its arrays lie, and how kernels are started.
struct Trial {
  Problem problem;
  std::size_t offset = 0;  ///< --offset: bytes between a boundary of 256 and each array
  std::optional<std::int64_t> most_blocks = {};  ///< --most-blocks: of an axis that is strided
};

/// The words between blanks.
std::vector<std::string> split(const std::string& words);

/// conv2d: --n --c --h --w --k --r --s --pad --stride --dilation --groups --bias --activation;
/// im2col and col2im: --n --c --size --kernel --pad --stride --dilation --request; and for all
/// --offset and --most-blocks. The values are those of the project's `./ladder compare`.
/// @throws BadInput for a word that means nothing, and for an invalid problem
Trial read_trial(const std::string& ladder, const std::vector<std::string>& words);

}  // namespace convladder::check
