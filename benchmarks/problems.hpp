/// @file problems.hpp
/// @brief The problems that rungs are timed on: one table for all ladders.
#pragma once

#include <string>
#include <vector>

#include "core/problem.hpp"

namespace convladder::benchmarks {

/// A problem with a name. The same name stands for the same sizes in related ladders: B4 of conv2d,
/// of both its gradients, and of im2col and col2im.
struct BenchmarkProblem {
  std::string ladder;
  std::string id;       ///< "B4".
  std::string teaches;  ///< Why it is there.
  Problem problem;      ///< In fp32 and NCHW.
};

/// All of them, ladder by ladder in the rung table's order.
const std::vector<BenchmarkProblem>& benchmark_problems();

/// Multiplications and additions of a problem, as the definition counts them; 0 for copies.
double operations(const Problem& problem);

}  // namespace convladder::benchmarks
