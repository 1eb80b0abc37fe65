/// @file golden.hpp
/// @brief Rulebooks with their full answers, from a file (tests/golden/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sites.hpp"

namespace convladder::testing {

/// A golden case with its full answer.
struct GoldenCase {
  std::string name, why;                 ///< What it guards against.
  SparseCase sites;                      ///< The problem.
  std::vector<std::int32_t> out_coords;  ///< [M][1 + ndim]
  std::vector<std::int32_t> pairs;       ///< [P][3], in canonical order
  std::vector<int> all_ones_output;      ///< y for features and weights of 1; empty if not given.
};

/// The twenty cases of tests/golden/sparse_small.json.
const std::vector<GoldenCase>& golden_cases();

}  // namespace convladder::testing
