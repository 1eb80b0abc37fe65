/// @file
/// @brief What control.hpp and the environment set, as the rest reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/device_models.hpp>

namespace cuda_on_cpu {

/// Of the device where no model was chosen: few, because each block of a cooperative launch takes
/// an OS thread.
inline constexpr int kDefaultMultiprocessors = 8;
/// What the device is where no model was chosen.
const control::DeviceModel* default_model();

struct Settings {
  control::ThreadOrder order = control::ThreadOrder::forward;
  std::uint64_t seed = 0;
  bool nan_fill = true;
  std::chrono::milliseconds deadlock_timeout{2000};
  const control::DeviceModel* model = default_model();
  int multiprocessors = kDefaultMultiprocessors;
};

/// A copy of the settings as they are now.
Settings current_settings();

/// The byte that fresh memory is filled with. 0xFF makes a NaN of every float, double and half.
inline unsigned char fill_byte(const Settings& settings) { return settings.nan_fill ? 0xFF : 0x00; }

/// A positive number in the environment; `otherwise`, if there is none.
inline int number_in_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  const int number = text == nullptr ? 0 : std::atoi(text);
  return number > 0 ? number : otherwise;
}

}  // namespace cuda_on_cpu
