/// @file sparse_identities.hpp
/// @brief Identities of rulebooks and of the convolutions over them.
#pragma once

#include <cstdint>
#include <span>

#include "tests/identity_tools.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {

/// Sites and parameters in every mode, in 1 to 4 dimensions.
std::vector<SparseCase> identity_sites();

/// The numbers of an array of coordinates, rows or counts.
inline std::span<const std::int32_t> integers(const Array& array) {
  return array.as<std::int32_t>();
}

/// Checks a rung of a sparse ladder: for rulebooks the equation, coverage, the mirror, permuted
/// rows and samples, and the swap; for convolutions the adjoints with the other two ladders,
/// linearity, permuted channels and the dense convolution of the scattered rows; for the others see
/// sparse_pool_identities.hpp.
void check_sparse_identities(const Subject& subject, const CheckOptions& options,
                             CheckReport& report);

}  // namespace convladder::testing
