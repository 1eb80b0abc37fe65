/// @file text.hpp
/// @brief Puts values together into a message.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

namespace convladder {

/// The values, streamed one after the other: `text("H = ", 5)` is "H = 5".
template <class... Values>
std::string text(const Values&... values) {
  std::ostringstream stream;
  stream.precision(9);  // tells any two floats apart
  (stream << ... << values);
  return stream.str();
}

/// The values with `separator` between them: `joined({1, 2}, "x")` is "1x2".
template <class Range>
std::string joined(const Range& values, const char* separator) {
  std::ostringstream stream;
  const char* between = "";
  for (const auto& value : values) {
    stream << between << value;
    between = separator;
  }
  return stream.str();
}

/// "1.5 GB".
inline std::string gigabytes(double bytes) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, bytes < 1e14 ? "%.1f GB" : "%.1e GB", bytes / 1e9);
  return buffer;
}

}  // namespace convladder
