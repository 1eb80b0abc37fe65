/// @file best_rung.hpp
/// @brief Which rung to take for a problem, by how long each is expected to take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rung.hpp"

namespace convladder {

/// How long a C++ rung is expected to take on the CPU, in seconds: what it counts in the problem
/// (products, elements, columns ...) times the cost of each, which was measured on two cores of an
/// AMD EPYC, of conv2d and gemm on one with AVX-512. Other machines differ by a factor that is
/// about the same for all rungs of a ladder. Empty for CUDA rungs, and for a rung that was never
/// measured.
std::optional<double> expected_seconds(const Ladder& ladder, const Rung& rung,
                                       const Problem& problem);

/// The same of the ladder's reference (reference() in oracle/).
double expected_seconds_of_reference(const Ladder& ladder, const Problem& problem);

/// A rung in a ranking.
struct RankedRung {
  const Rung* rung;               ///< Of the ladder.
  std::optional<double> seconds;  ///< expected_seconds().
};

/// The ladder's rungs that take the problem on the CPU, the fastest first; those without an
/// expected time come after the others, the highest first.
/// @param allow_transforms whether rungs that save multiplications by a transform (Winograd's, FFT)
/// may take part: they round more than the definition. Without, they come last.
std::vector<RankedRung> ranked_rungs(const Ladder& ladder, const Problem& problem,
                                     bool allow_transforms = false);

}  // namespace convladder
