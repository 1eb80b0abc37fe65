/// @file fft_to_real.hpp
/// @brief Identifies transforms from spectra to real points, which few rungs of fft support.
#pragma once

#include "core/fft_problem.hpp"

namespace convladder {

/// Whether x holds half of the frequencies, and y real points: the inverse with FftInput::real.
HOST_DEVICE constexpr bool is_to_real(const FftProblem& fft) {
  return fft.is_real() && fft.exchanges();
}

}  // namespace convladder
