/// @file text.hpp
/// @brief Builds messages from values.
#pragma once

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>

namespace convladder {

/// The values, streamed one after the other: `text("H = ", 5)` is "H = 5".
template <class... Values>
std::string text(const Values&... values) {
  std::ostringstream stream;
  stream.precision(9);  // enough digits to distinguish any two floats
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

/// "one", "two" or "several": for texts that must not depend on the exact number. "no" for 0.
constexpr const char* how_many(std::int64_t count) {
  return count == 0 ? "no" : count == 1 ? "one" : count == 2 ? "two" : "several";
}
/// "one part", "two parts", "several parts"; the noun is given in the singular.
inline std::string how_many(std::int64_t count, const char* what) {
  return std::string(how_many(count)) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace convladder
