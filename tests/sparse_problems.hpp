/// @file sparse_problems.hpp
/// @brief The edge problems of the sparse ladders: one list of sites and parameters serves all of
/// them.
#pragma once

#include <string>
#include <vector>

#include "tests/problems.hpp"
#include "tests/sites.hpp"

namespace convladder::testing {

/// Whether the ladder's problems are rulebooks, convolutions or poolings over them, or their sites.
bool is_sparse(const std::string& ladder);

/// A problem of a sparse ladder over these sites. @param layer of the convolutions: channels, bias
/// and activation; other ladders take its Cin
TestProblem sparse_problem(const std::string& ladder, const std::string& name,
                           const SparseCase& sites,
                           const SparseConvProblem& layer = {.Cin = 3, .Cout = 5});

/// As problems_of(): all edge problems of a sparse ladder.
std::vector<TestProblem> sparse_problems(const std::string& ladder);

/// As rounding_problems(): of the convolutions, and of other sparse ladders none.
std::vector<TestProblem> sparse_rounding_problems(const std::string& ladder);

/// As random_problems(): random sites, modes and parameters, in 1 to 4 dimensions.
std::vector<TestProblem> random_sparse_problems(const std::string& ladder, int count,
                                                std::uint64_t seed);

/// A golden case with its full answer (tests/golden/README.md).
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
