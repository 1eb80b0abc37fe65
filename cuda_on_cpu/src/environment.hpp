/// @file
/// @brief Settings that come from outside of the program.
#pragma once

#include <cstdlib>

namespace cuda_on_cpu {

/// A positive number in the environment; `otherwise`, if there is none.
inline int number_in_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  const int number = text == nullptr ? 0 : std::atoi(text);
  return number > 0 ? number : otherwise;
}

}  // namespace cuda_on_cpu
