/// @file best_rung.hpp
/// @brief Chooses the rung for a problem by the expected time of each rung.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rung.hpp"

namespace convladder {

/// The time in seconds that a C++ rung is expected to take on the CPU. The estimate multiplies
/// counts of the problem (multiply-adds, elements, columns ...) by measured costs. The costs were
/// measured on two cores of an AMD EPYC; for conv2d and gemm, on one core with AVX-512. On another
/// machine all estimates of a ladder are wrong by about the same factor. Empty for CUDA rungs and
/// for rungs without measured costs.
std::optional<double> expected_seconds(const Ladder& ladder, const Rung& rung,
                                       const Problem& problem);

/// The expected time of the ladder's reference (reference() in oracle/) in seconds.
double expected_seconds_of_reference(const Ladder& ladder, const Problem& problem);

/// One entry of a ranking.
struct RankedRung {
  const Rung* rung;               ///< A rung of the ladder.
  std::optional<double> seconds;  ///< The result of expected_seconds().
};

/// Ranks the rungs of the ladder that support the problem on the CPU, fastest first. Rungs without
/// an expected time follow, the later rungs of the table first.
/// @param allow_transforms whether rungs that use a transform (Winograd, FFT) are ranked by time;
/// their rounding errors are larger. If false, they come last.
std::vector<RankedRung> ranked_rungs(const Ladder& ladder, const Problem& problem,
                                     bool allow_transforms = false);

}  // namespace convladder
