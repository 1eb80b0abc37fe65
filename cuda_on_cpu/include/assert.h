/// @file
/// @brief <assert.h> whose assert() in a kernel is the launch's error, not the end of the process.
///
/// Found before the C library's, by <cassert> too. Like that one it may be included again after
/// NDEBUG has changed, so it has no include guard.
#pragma GCC system_header
#include_next <assert.h>

#if defined(__cplusplus)
#include <source_location>

namespace cuda_on_cpu::detail {

/// Inside a kernel cudaErrorAssert, outside one what the C library does.
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
