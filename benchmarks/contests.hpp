/// @file contests.hpp
/// @brief What entrants of a benchmark compute on, and what of their results is compared.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "benchmarks/gpu/contest.hpp"
#include "benchmarks/problems.hpp"
#include "benchmarks/variants.hpp"
#include "oracle/data.hpp"
#include "oracle/samples.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder::benchmarks {

/// A problem's data and some of its right answers, which all variants of the same type have in
/// common.
struct SampledData {
  DType dtype = DType::f32;
  Arrays inputs;
  std::vector<std::vector<std::int64_t>> places;  // by output; row-major
  std::vector<std::vector<ExpectedElement>> elements;
  /// Of a convolution that Winograd's rungs compute, by tile: what bounds their rounding at these
  /// places of its first output.
  std::map<WinogradTile, WinogradBound> winograd;
  std::vector<double> fourier;  // the same, of rungs by Fourier transforms in float; or empty
};

/// Of the problem, one of the benchmark's variants.
SampledData data_of(const BenchmarkProblem& benchmark, const Problem& problem);

/// The contest of a variant, as yet without entrants.
Contest contest_of(const BenchmarkProblem& benchmark, const Variant& variant,
                   const SampledData& data);

}  // namespace convladder::benchmarks
