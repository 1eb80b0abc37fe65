/// @file sparse_pool_identities.hpp
/// @brief Identities of poolings, of the gradient of one, and of the step to a dense tensor: see
/// identities.hpp.
#pragma once

#include "tests/identity_tools.hpp"

namespace convladder::testing {

/// Checks the identities of sparse_max_pool, sparse_max_pool_dgrad, sparse_avg_pool,
/// sparse_global_pool or sparse_to_dense.
void check_pool_identities(const Subject& subject, const CheckOptions& options,
                           CheckReport& report);

}  // namespace convladder::testing
