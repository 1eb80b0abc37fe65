/// @file
/// @brief What kernels with tensor maps need of CUDA's driver header. Everything else of the driver API
/// is missing here.
#pragma once

#include <cuda_on_cpu/tensor_map.hpp>

using namespace cuda_on_cpu;
