/// @file devices.hpp
/// @brief The two CUDA devices. core/cuda/device.cu is compiled once for each.
#pragma once

#include "core/device.hpp"

namespace convladder {

namespace emulated {
/// cuda_on_cpu's device; never null.
Device* cuda_device();
/// For symmetry with gpu: never asked, as there always is one.
std::string why_no_device();
}  // namespace emulated

namespace gpu {
/// The first GPU; null if there is none.
Device* cuda_device();
/// Why there is none, in CUDA's words.
std::string why_no_device();
}  // namespace gpu

}  // namespace convladder
