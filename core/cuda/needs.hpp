/// @file needs.hpp
/// @brief The reasons why the current device cannot run a kernel.
#pragma once

#include "core/cuda/device_attribute.hpp"
#include "core/needs.hpp"

namespace convladder::BACKEND {

/// The reason why the current device does not run code for "sm_80", "sm_90a" ...; empty if it does.
/// @param feature the required feature, if it is not features_of() the architecture
inline Declined why_not(const char* architecture, const char* feature = "") {
  const int capability = compute_capability();
  if (runs_on(architecture, capability)) return {};
  return need_in_words(architecture, capability, feature);
}

/// The reason why a block cannot have this many bytes of shared memory on the current device; empty
/// if it can.
inline Declined why_no_shared(std::int64_t bytes) {
  const auto most = static_cast<std::int64_t>(max_shared_bytes());
  if (bytes <= most) return {};
  return shared_need_in_words(bytes, most, compute_capability());
}

}  // namespace convladder::BACKEND
