/// @file padding_after.hpp
/// @brief Rulebooks whose padding differs before the first site and behind the last one.
#pragma once

#include "core/rulebook_problem.hpp"

namespace convladder {

/// The problem with another padding behind the last site than before the first one, where kernels
/// need not know: of the two, only `pad` tells which sites meet, and both tell the output extent,
/// which may end earlier or later. So the difference becomes out_padding, which under `transposed`
/// is less by as much as the padding is more.
/// @param after by axis @throws BadInput if it is negative, or out_padding out of its own range: 0
/// but under `transposed`, there less than the larger of stride and dilation
RulebookProblem with_padding_after(RulebookProblem problem, const PerAxis& after);

}  // namespace convladder
