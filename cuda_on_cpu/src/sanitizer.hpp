/// @file
/// @brief AddressSanitizer's interface; empty functions if it is off.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ASAN 1
#endif
#endif

#if defined(CUDA_ON_CPU_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_on_cpu::sanitizer {

#if defined(CUDA_ON_CPU_ASAN)
inline constexpr bool kAddress = true;
inline void poison(const void* p, std::size_t n) { ASAN_POISON_MEMORY_REGION(p, n); }
inline void unpoison(const void* p, std::size_t n) { ASAN_UNPOISON_MEMORY_REGION(p, n); }
/// Must be called before leaving a stack for another; `save` null: the stack is never entered
/// again.
inline void start_switch(void** save, const void* to_bottom, std::size_t to_size) {
  __sanitizer_start_switch_fiber(save, to_bottom, to_size);
}
/// Must be called on arriving on a stack; returns the bounds of the stack that was left.
inline void finish_switch(void* saved, const void** from_bottom, std::size_t* from_size) {
  __sanitizer_finish_switch_fiber(saved, from_bottom, from_size);
}
#else
inline constexpr bool kAddress = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline void start_switch(void**, const void*, std::size_t) {}
inline void finish_switch(void*, const void**, std::size_t*) {}
#endif

}  // namespace cuda_on_cpu::sanitizer
