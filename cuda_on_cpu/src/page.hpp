/// @file
/// @brief The page size of the system.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

inline constexpr std::size_t kPage = 4096;  ///< In bytes.

}  // namespace cuda_on_cpu
