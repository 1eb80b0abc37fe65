/// @file
/// @brief The same as <cuda_runtime.h>: the separation into a C and a C++ part is not needed.
#pragma once
#include <cuda_runtime.h>
