/// @file
/// @brief The same as <cuda_runtime.h>: the split into a C and a C++ part has no use here.
#pragma once
#include <cuda_runtime.h>
