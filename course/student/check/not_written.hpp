/// @file not_written.hpp
/// @brief What stands where you are to write a function. The build includes it in every file.
#pragma once

#ifdef __CUDACC__
#define NOT_WRITTEN(name)  // nvcc compiles the file as it is
#else
#include <algorithm>
#include <cstddef>

namespace convladder::check {

/// A string as an argument of a template.
template <std::size_t kLength>
struct BlankName {
  /// Of the literal's characters.
  constexpr BlankName(const char (&name)[kLength]) { std::copy_n(name, kLength, characters); }
  char characters[kLength];  ///< With the zero at their end.
};

/// Adds to not_written().
bool add_blank(const char* name);

/// Ends the kernel's launch, or throws where no kernel runs: "3.1 load_tile is not written yet".
[[noreturn]] void stop_at_blank(const char* name);

/// Registered before main(), so that a blank is found even if no code calls it.
template <BlankName kName>
inline const bool blank_is_known = add_blank(kName.characters);

}  // namespace convladder::check

/// Takes the place of a body, and goes when you write it.
#define NOT_WRITTEN(name)                                       \
  static_cast<void>(::convladder::check::blank_is_known<name>); \
  ::convladder::check::stop_at_blank(name)
#endif
