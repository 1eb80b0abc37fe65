/// @file baselines.hpp
/// @brief Other people's implementations of a contest's work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gpu/contest.hpp"

namespace convladder::benchmarks {

/// One of them.
struct Baseline {
  std::string name;                           ///< "cudnn implicit_precomp".
  std::function<void(const Arguments&)> run;  ///< Enqueues the work. @throws std::runtime_error
  bool limit = false;                         ///< Less than the same work: a limit.
};

/// Memory that all baselines share for their scratch; they run one after the other.
struct Scratch {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// The most scratch memory that a baseline may ask for.
inline constexpr std::size_t kScratchBytes = std::size_t{4} << 30;

/// cuDNN's algorithms for a convolution; none for other ladders, or in a build without cuDNN.
std::vector<Baseline> cudnn_baselines(const Contest& contest, const Scratch& scratch);

/// The engines of cuDNN's graph interface: the fastest in plain arithmetic, and the fastest that
/// saves multiplications. They are tried out on the arrays of `trial`.
std::vector<Baseline> cudnn_graph_baselines(const Contest& contest, const Scratch& scratch,
                                            const Arguments& trial);

/// CUTLASS's stock tiles for a GEMM, and for a forward convolution in NHWC; none for other
/// problems, or in a build without CUTLASS.
std::vector<Baseline> cutlass_baselines(const Contest& contest);

/// cuBLAS for a GEMM. For a sparse convolution a limit: one GEMM with a row per pair, which has the
/// same arithmetic without the gathers. None for other ladders, or in a build without cuBLAS.
std::vector<Baseline> cublas_baselines(const Contest& contest);

/// cuFFT for a Fourier transform; none for other ladders, or in a build without cuFFT.
std::vector<Baseline> cufft_baselines(const Contest& contest);

}  // namespace convladder::benchmarks
