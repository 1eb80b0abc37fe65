/// @file
/// @brief The counters of control::statistics().
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

void count_launch(std::uint64_t blocks, std::uint64_t threads);
void count_fiber_switches(std::uint64_t count);

}  // namespace cuda_on_cpu
