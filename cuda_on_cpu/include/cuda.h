/// @file
/// @brief The declarations of CUDA's driver header that kernels with tensor maps use. The rest of
/// the driver API is not available.
#pragma once

#include <cuda_on_cpu/tensor_map.hpp>

using namespace cuda_on_cpu;
