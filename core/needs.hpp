/// @file needs.hpp
/// @brief Which GPUs run code for an architecture, and which features the others lack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/text.hpp"

namespace convladder {

/// The compute capability in "sm_75", "sm_90a": 75, 90.
constexpr int capability_of(std::string_view architecture) {
  int capability = 0;
  for (const char c : architecture)
    if (c >= '0' && c <= '9') capability = 10 * capability + (c - '0');
  return capability;
}

/// Whether a GPU of that compute capability (10 * major + minor) runs code for `architecture`. An
/// architecture with the suffix "a" runs on that compute capability only.
constexpr bool runs_on(std::string_view architecture, int capability) {
  const int needed = capability_of(architecture);
  return architecture.ends_with('a') ? capability == needed : capability >= needed;
}

/// The instructions for which the rungs of this project need an architecture.
constexpr const char* features_of(std::string_view architecture) {
  const int capability = capability_of(architecture);
  return architecture == "sm_90a" ? "wgmma"
         : capability >= 90       ? "TMA and clusters"
         : capability >= 80       ? "mma in TF32, bf16 and 16 x 8 x 16 fp16"
                                  : "CUDA 13";
}

/// "needs sm_90a: wgmma; this device is sm_86". @param feature the required feature
inline std::string need_in_words(std::string_view architecture, int capability,
                                 std::string_view feature = {}) {
  return text("needs ", architecture, ": ",
              feature.empty() ? std::string_view(features_of(architecture)) : feature,
              "; this device is sm_", capability);
}

/// The part of the message about missing shared memory.
inline constexpr const char* kOfSharedMemory = " KiB of shared memory per block; ";

/// "needs 160 KiB of shared memory per block; sm_86 has 99 KiB".
inline std::string shared_need_in_words(std::int64_t bytes, std::int64_t has, int capability) {
  return text("needs ", (bytes + 1023) / 1024, kOfSharedMemory, "sm_", capability, " has ",
              has / 1024, " KiB");
}

}  // namespace convladder
