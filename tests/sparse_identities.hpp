/// @file sparse_identities.hpp
/// @brief Identities of rulebooks and of the convolutions over them.
#pragma once

#include "tests/identity_tools.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {

/// Checks a rung of a sparse ladder: for rulebooks the equation, coverage, the mirror, permuted
/// rows and samples, and the swap; for convolutions the adjoints with the other two ladders,
/// linearity, permuted channels and the dense convolution of the scattered rows.
void check_sparse_identities(const Subject& subject, const CheckOptions& options,
                             CheckReport& report);

}  // namespace convladder::testing
