/// @file fft_to_real.hpp
/// @brief Which transforms lead from frequencies to real points: few rungs of fft know them.
#pragma once

#include "core/fft_problem.hpp"

namespace convladder {

/// Whether x holds half of the frequencies, and y real points: the inverse with FftInput::real.
HOST_DEVICE constexpr bool is_to_real(const FftProblem& fft) {
  return fft.is_real() && fft.exchanges();
}

}  // namespace convladder
