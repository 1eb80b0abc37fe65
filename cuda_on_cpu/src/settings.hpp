/// @file
/// @brief What control.hpp sets, as the rest reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cuda_on_cpu/control.hpp>

namespace cuda_on_cpu {

struct Settings {
  control::ThreadOrder order = control::ThreadOrder::forward;
  std::uint64_t seed = 0;
  bool nan_fill = true;
  std::chrono::milliseconds deadlock_timeout{2000};
};

/// A copy of the settings as they are now.
Settings current_settings();

/// The byte that fresh memory is filled with. 0xFF makes a NaN of every float, double and half.
inline unsigned char fill_byte(const Settings& settings) { return settings.nan_fill ? 0xFF : 0x00; }

}  // namespace cuda_on_cpu
