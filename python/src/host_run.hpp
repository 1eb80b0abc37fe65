/// @file host_run.hpp
/// @brief A rung of C++ on the caller's own arrays.
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

/// Whether run_on_host() takes a problem: not where arrays lie in another order than their shape's,
/// or where an output begins as an input.
bool runs_on_host(const Signature& signature);

/// Runs a rung of C++ where the caller's arrays lie, and returns its new outputs by name, and its
/// milliseconds. An input is copied only if it has another type than the problem's, if it does not
/// begin at a multiple of its elements' size, or if a rung indexes memory by its values: these are
/// checked, and must not change between the check and the run.
///
/// Nothing looks for writes outside of the outputs: tests do, see run_guarded().
/// @param signature the problem's @param book of a sparse problem; else null
/// @throws BadInput, UnsupportedProblem, or nb::python_error of a signal's handler
std::pair<nanobind::dict, double> run_on_host(const Ladder& of, const Rung& rung,
                                              const Problem& problem, Signature signature,
                                              const Given& given, const Rulebook* book);

/// The array, as the input `spec` of a run. @throws BadInput unless it has the shape and a type
/// that can be rounded to its own
Array as_input(const ArraySpec& spec, Array array);

}  // namespace convladder::python
