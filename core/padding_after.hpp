/// @file padding_after.hpp
/// @brief Rulebooks whose padding after the last site differs from the padding before the first
/// one.
#pragma once

#include "core/rulebook_problem.hpp"

namespace convladder {

/// The problem with a different padding after the last site, represented without a further
/// parameter for kernels: only `pad` determines which sites meet, and both paddings determine the
/// output extent. The difference is therefore added to out_padding; for `transposed`, more padding
/// lowers it.
/// @param after by axis @throws BadInput if it is negative, or out_padding is out of range: it must
/// be 0, or for `transposed` less than the larger of stride and dilation
RulebookProblem with_padding_after(RulebookProblem problem, const PerAxis& after);

}  // namespace convladder
