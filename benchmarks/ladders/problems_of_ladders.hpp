/// @file problems_of_ladders.hpp
/// @brief Each ladder's problems, one function a family of ladders: benchmark_problems() puts them
/// together.
#pragma once

#include <vector>

#include "benchmarks/problems.hpp"

namespace convladder::benchmarks {

using BenchmarkProblems = std::vector<BenchmarkProblem>;

BenchmarkProblems conv2d_problems();              ///< conv2d.cpp: and those of both gradients.
BenchmarkProblems column_problems();              ///< conv2d.cpp: im2col's and col2im's.
BenchmarkProblems gemm_problems();                ///< gemm.cpp
BenchmarkProblems rulebook_problems();            ///< rulebook.cpp
BenchmarkProblems sparse_conv_problems();         ///< sparse_conv.cpp: and those of both gradients.
BenchmarkProblems sparse_max_pool_problems();     ///< sparse_max_pool.cpp: of all poolings.
BenchmarkProblems sparse_global_pool_problems();  ///< sparse_global_pool.cpp
BenchmarkProblems sparse_to_dense_problems();     ///< sparse_to_dense.cpp
BenchmarkProblems voxelize_problems();            ///< voxelize.cpp
BenchmarkProblems fft_problems();                 ///< fft.cpp

}  // namespace convladder::benchmarks
