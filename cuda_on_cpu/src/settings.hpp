/// @file
/// @brief The settings of control.hpp and of the environment, as used by the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/device_models.hpp>

namespace cuda_on_cpu {

/// SMs of the default device: few, because each block of a cooperative launch needs an OS thread.
inline constexpr int kDefaultMultiprocessors = 8;
/// The default device.
const control::DeviceModel* default_model();

struct Settings {
  control::ThreadOrder order = control::ThreadOrder::forward;
  std::uint64_t seed = 0;
  bool nan_fill = true;
  std::chrono::milliseconds deadlock_timeout{2000};
  const control::DeviceModel* model = default_model();
  int multiprocessors = kDefaultMultiprocessors;
};

/// A copy of the current settings.
Settings current_settings();

/// The byte that fresh memory is filled with. 0xFF produces a NaN in float, double and fp16.
inline unsigned char fill_byte(const Settings& settings) { return settings.nan_fill ? 0xFF : 0x00; }

/// A positive number from the environment; `otherwise` if there is none.
inline int number_in_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  const int number = text == nullptr ? 0 : std::atoi(text);
  return number > 0 ? number : otherwise;
}

}  // namespace cuda_on_cpu
