/// @file in_place.hpp
/// @brief Runs rungs in place on tensors of other libraries, such as PyTorch's on a GPU.
#pragma once

#include <nanobind/nanobind.h>

namespace convladder::python {

/// Adds run_in_place(), and the functions that its callers need to create outputs and workspaces.
void add_in_place(nanobind::module_& module);

}  // namespace convladder::python
