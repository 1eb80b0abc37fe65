/// @file in_place.hpp
/// @brief Runs of rungs on tensors that other libraries own, such as PyTorch's on a GPU, where they
/// lie.
#pragma once

#include <nanobind/nanobind.h>

namespace convladder::python {

/// Adds run_in_place(), and what its callers need to make outputs and workspaces.
void add_in_place(nanobind::module_& module);

}  // namespace convladder::python
