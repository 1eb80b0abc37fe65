/// @file
/// @brief The watcher that receives the events, if there is one.
#pragma once

#include <cuda_on_cpu/inspect.hpp>

namespace cuda_on_cpu::detail {

inline constinit inspect::Watcher* the_watcher = nullptr;

/// Calls `tell` with the watcher if there is one.
template <class Tell>
void tell_watcher(Tell tell) {
  if (the_watcher != nullptr) [[unlikely]]
    tell(*the_watcher);
}

}  // namespace cuda_on_cpu::detail
