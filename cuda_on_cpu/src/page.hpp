/// @file
/// @brief What the system maps and protects at a time.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

inline constexpr std::size_t kPage = 4096;  ///< Bytes.

}  // namespace cuda_on_cpu
