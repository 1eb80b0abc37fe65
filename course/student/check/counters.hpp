/// @file counters.hpp
/// @brief Numbers of a run under the microscope, by name.
#pragma once

#include <functional>
#include <string>

#include "check/run.hpp"
#include "command/inspect/inspect.hpp"

namespace convladder::check {

/// Runs the judged rung once, watched.
/// @param run does so, with these options
/// @throws BadInput if it declines the problem, or makes too many events to count
command::Inspection watch(const Judged& judged, const Trial& trial,
                          const std::function<Outcome(const RunOptions&)>& run);

/// The same by run_once(), which compares the result, too. (It is the microscope's own.)
command::Inspection look(const Judged& judged, const Trial& trial);

/// One of
/// - loads_per_output.ARRAY: lanes that loaded from the array, for each element of the output
/// - sectors_per_load.ARRAY, sectors_per_store.ARRAY: of 32 bytes, for each request
/// - stores_per_element.ARRAY: lanes that stored to the array, for each element of the output
/// - barriers_per_block: that a block passes, on average
/// - excess_wavefronts: turns of the banks of shared memory beyond those without conflicts
/// - atomics: requests
/// @throws BadInput for another name
double counter(const command::Inspection& inspection, const std::string& name);

}  // namespace convladder::check
