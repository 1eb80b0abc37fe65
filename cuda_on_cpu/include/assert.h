/// @file
/// @brief An <assert.h> in which a failed assert() in a kernel is an error of the launch and does
/// not end the process.
///
/// This file is found before the C library's <assert.h>, also by <cassert>. As specified by C, it
/// may be included again after NDEBUG has changed, so it has no include guard.
#pragma GCC system_header
#include_next <assert.h>

#if defined(__cplusplus)
#include <source_location>

namespace cuda_on_cpu::detail {

/// Inside a kernel it raises cudaErrorAssert; outside it calls the C library's function.
[[noreturn]] void assertion_failed(const char* expression, const std::source_location& site);

}  // namespace cuda_on_cpu::detail

#if !defined(NDEBUG)
#undef assert
#define assert(...)               \
  (static_cast<bool>(__VA_ARGS__) \
       ? static_cast<void>(0)     \
       : ::cuda_on_cpu::detail::assertion_failed(#__VA_ARGS__, ::std::source_location::current()))
#endif
#endif
