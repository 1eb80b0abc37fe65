/// @file problems.hpp
/// @brief The problems that rungs are timed on: one table for all ladders.
#pragma once

#include <string>
#include <vector>

#include "core/problem.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::benchmarks {

/// A problem with a name. The same name stands for the same sizes in related ladders: B4 of conv2d,
/// of both its gradients, and of im2col and col2im; `sweep-64-subm3` of sparse_conv and of both its
/// gradients.
struct BenchmarkProblem {
  std::string ladder;
  std::string id;       ///< "B4".
  std::string teaches;  ///< Why it is there.
  /// In fp32 and NCHW. Of a sparse convolution or pooling without what only its rulebook tells,
  /// see whole_problem(): rows and pairs.
  Problem problem;
  std::string sites = {};  ///< Of a sparse problem, whose they are: see sites_of().
  /// Of a sparse convolution: timed in bf16, too, beside fp32, TF32 and fp16; of a matrix product:
  /// in bf16 and fp16, too; of a convolution: in bf16, too.
  bool bf16 = true;
  bool fp16 = false;        ///< Of a convolution: timed in fp16 in NHWC, too.
  std::string points = {};  ///< Of voxelize, whose they are: see points_named().
  bool plain = false;       ///< Of a convolution: timed in fp32 and NCHW alone.
  bool fp8 = false;         ///< Of a matrix product: timed in fp8, too.
};

/// All of them, ladder by ladder in the rung table's order.
const std::vector<BenchmarkProblem>& benchmark_problems();

/// One line, without rows and pairs of a rulebook that has not been made yet.
std::string describe(const BenchmarkProblem& benchmark);

/// The sites of a sparse problem: sites_named().
const Array& sites_of(const BenchmarkProblem& benchmark);

/// The parameters of a sparse problem's rulebook, or the grid of a step to a dense tensor; null of
/// other problems.
const RulebookProblem* book_of(const Problem& problem);

/// The rulebook of a sparse problem over its sites; the last ones that were made are kept.
const Rulebook& rulebook_of(const BenchmarkProblem& benchmark);

/// `variant` of the benchmark's problem with all its sizes.
Problem whole_problem(const BenchmarkProblem& benchmark, const Problem& variant);

/// Multiplications and additions of a problem, as the definition counts them; 0 for copies,
/// poolings and rulebooks. Those of a sparse convolution are of its pairs, those of a Fourier
/// transform of a fast one.
double operations(const Problem& problem);

}  // namespace convladder::benchmarks
