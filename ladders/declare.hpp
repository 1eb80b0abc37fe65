/// @file declare.hpp
/// @brief Macros with which a ladder's header declares its rungs.
#pragma once

#include "core/error.hpp"
#include "core/implementation.hpp"

/// Declares a CPU rung: an Implementation, which is called like a function.
#define CPU_RUNG(A, folder, ladder, name) \
  namespace convladder::folder::ladder {  \
  extern const Implementation<A> name;    \
  }

/// Declares a CUDA rung twice: compiled by nvcc for a GPU, and emulated by cuda_on_cpu.
#define CUDA_RUNG(A, folder, ladder, name)         \
  namespace convladder::gpu::folder::ladder {      \
  extern const Implementation<A> name;             \
  }                                                \
  namespace convladder::emulated::folder::ladder { \
  extern const Implementation<A> name;             \
  }
