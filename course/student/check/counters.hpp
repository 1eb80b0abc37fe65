/// @file counters.hpp
/// @brief Numbers of a run under the microscope, by name.
#pragma once

#include <functional>
#include <string>

#include "check/run.hpp"
#include "command/inspect/inspect.hpp"

namespace convladder::check {

/// The GPU of model times.
struct Gpu {
  double bytes_per_second, multiprocessors, clock, launch_seconds;
};

/// That of check/gpu.txt.
Gpu gpu_of_model();

/// Runs the checked rung once under the microscope.
/// @param run runs the rung with the given options
/// @throws BadInput if the rung does not support the problem, or causes too many events
command::Inspection watch(const Judged& judged, const Trial& trial,
                          const std::function<Outcome(const RunOptions&)>& run);

/// The same by run_once(), which compares the result, too. (It is the microscope's own.)
command::Inspection look(const Judged& judged, const Trial& trial);

/// As docs/microscope.md of the project names counters; one of
/// - loads_per_output.WHERE: lanes that loaded from there, for each element of the outputs
/// - WHAT.WHERE.OPERATION, WHAT_per_UNIT.WHERE.OPERATION: sectors_per_request.x.load. WHAT is
///   requests, lanes, bytes, sectors, wavefronts or excess (wavefronts of shared memory in addition
///   to those without bank conflicts); WHERE an array, or global, shared, constant; OPERATION load,
///   store, atomic or async, or left out for all; UNIT request, lane, output or block
/// - barriers_per_block: that a block passes, of each kernel that has barriers, together
/// - launches
/// - model_microseconds: what the GPU of check/gpu.txt would need if nothing counted but the
///   busiest of these: bytes of sectors, wavefronts of shared memory, requests, bytes of sectors of
///   atomics; and its time for each launch
/// @throws BadInput for another name
double counter(const command::Inspection& inspection, const std::string& name);

}  // namespace convladder::check
