/// @file identities.hpp
/// @brief Identities that every right implementation has, whatever the reference says.
///
/// With small integers all sums are exact, so each identity must hold to the last bit. They guard
/// the reference as well: a misreading of the formulas that rung and reference shared would break
/// them.
#pragma once

#include "tests/check.hpp"

namespace convladder::testing {

/// Checks the identities of the rung's ladder on several problems: linearity, permutations, padding
/// by hand, stride as subsampling, dilation as zero-stuffing, groups as a block-diagonal filter,
/// adjoints with the first rungs of the neighbouring ladders, and more. On cuda_on_cpu the threads
/// run forward, in reverse and shuffled in turn. Counts one "problem" for
/// each identity on each problem. An identity that needs a problem which the rung declines is
/// counted as declined; a rung without any identity fails.
CheckReport check_identities(const Ladder& ladder, const Rung& rung, Where where,
                             const CheckOptions& options);

}  // namespace convladder::testing
