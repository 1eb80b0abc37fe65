/// @file host_run.hpp
/// @brief Runs a C++ rung on the caller's own arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "core/rung.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::python {

/// The arrays of a call by name.
using Given = std::map<std::string, HostArray>;

/// Whether run_on_host() supports a problem: not if the memory order of an array differs from its
/// shape, or if an output is initialised from an input.
bool runs_on_host(const Signature& signature);

/// Runs a C++ rung on the caller's arrays in place, and returns its new outputs by name and its
/// milliseconds. An input is copied only if its type differs from the problem's, if it is not
/// aligned to its elements' size, or if a rung uses its values as indices: these are checked, and
/// must not change between the check and the run.
///
/// Writes outside of the outputs are not detected; tests use run_guarded() for that.
/// @param signature the problem's @param book of a sparse problem; otherwise null
/// @throws BadInput, UnsupportedProblem, or nb::python_error of a signal's handler
std::pair<nanobind::dict, double> run_on_host(const Ladder& of, const Rung& rung,
                                              const Problem& problem, Signature signature,
                                              const Given& given, const Rulebook* book);

/// The array as the input `spec` of a run. @throws BadInput unless it has the shape and a type that
/// can be rounded to the input's
Array as_input(const ArraySpec& spec, Array array);

}  // namespace convladder::python
