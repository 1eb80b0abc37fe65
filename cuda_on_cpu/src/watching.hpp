/// @file
/// @brief The watcher that is told what happens, if there is one.
#pragma once

#include <cuda_on_cpu/inspect.hpp>

namespace cuda_on_cpu::detail {

inline constinit inspect::Watcher* watcher = nullptr;

/// Calls `tell(watcher)` if somebody watches.
template <class Tell>
void tell_watcher(Tell tell) {
  if (watcher != nullptr) [[unlikely]]
    tell(*watcher);
}

}  // namespace cuda_on_cpu::detail
