/// @file problems.hpp
/// @brief The problems of all ladders, created from Python's keyword arguments.
#pragma once

#include <nanobind/nanobind.h>

namespace convladder::python {

/// Adds a function for each type of problem: conv2d_problem(N=1, C=3, ...).
void add_problems(nanobind::module_& module);

}  // namespace convladder::python
