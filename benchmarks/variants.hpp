/// @file variants.hpp
/// @brief The precisions and layouts in which a benchmark problem is timed.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/problems.hpp"

namespace convladder::benchmarks {

/// A problem in one precision and layout.
struct Variant {
  Problem problem;
  std::string dtype, layout;
};

/// All that its ladder knows, the strict precision first.
std::vector<Variant> variants_of(const BenchmarkProblem& benchmark);

/// A pooling over a rulebook, the gradient of one, a global pooling, or the step to a dense tensor.
bool pools_or_copies(const Problem& problem);

}  // namespace convladder::benchmarks
