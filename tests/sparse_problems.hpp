/// @file sparse_problems.hpp
/// @brief The edge problems of the sparse ladders: one list of sites and parameters serves all of
/// them.
#pragma once

#include <string>
#include <vector>

#include "tests/problems.hpp"
#include "tests/sites.hpp"

namespace convladder::testing {

/// Whether a ladder pools over a rulebook: its problems are SparsePoolProblems.
bool pools_over_rulebook(const std::string& ladder);

/// A problem of a sparse ladder over these sites. @param layer of the convolutions: channels, bias
/// and activation; other ladders take its Cin, and a global pooling is a mean where its Cout is odd
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

}  // namespace convladder::testing
