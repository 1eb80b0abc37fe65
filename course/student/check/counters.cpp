#include "check/counters.hpp"

#include <algorithm>
#include <cuda_on_cpu/control.hpp>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "check/blanks.hpp"
#include "core/error.hpp"

namespace convladder::check {
namespace {

namespace microscope = cuda_on_cpu::microscope;

/// "sectors.x.load" as three words.
std::vector<std::string> split_at_points(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream in(name);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  return parts;
}

/// What all lines do with an array or a space. @param operation empty: all of them
microscope::Counts counts_of(const microscope::Report& seen, const std::string& where,
                             const std::string& operation) {
  microscope::Counts sum;
  for (const microscope::Kernel& kernel : seen.kernels) {
    for (const microscope::Line& line : kernel.lines) {
      const bool there = line.array == where || microscope::name_of(line.space) == where;
      if (there && (operation.empty() || microscope::name_of(line.operation) == operation))
        sum += line.counts;
    }
  }
  return sum;
}

/// One of the counts; negative: there is none of that name.
double value_of(const microscope::Counts& counts, const std::string& what) {
  if (what == "requests") return static_cast<double>(counts.requests);
  if (what == "lanes") return static_cast<double>(counts.lanes);
  if (what == "bytes") return static_cast<double>(counts.bytes);
  if (what == "sectors") return static_cast<double>(counts.sectors);
  if (what == "wavefronts") return static_cast<double>(counts.wavefronts);
  if (what == "excess") return static_cast<double>(counts.excess);
  return -1;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

double blocks_of(const microscope::Kernel& kernel) {
  return static_cast<double>(kernel.launches) * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
}

double blocks(const microscope::Report& seen) {
  double sum = 0;
  for (const microscope::Kernel& kernel : seen.kernels) sum += blocks_of(kernel);
  return sum;
}

double launches(const microscope::Report& seen) {
  std::uint64_t sum = 0;
  for (const microscope::Kernel& kernel : seen.kernels) sum += kernel.launches;
  return static_cast<double>(sum);
}

/// Of a block of each kernel that has barriers, together.
double barriers_per_block(const microscope::Report& seen) {
  double sum = 0;
  for (const microscope::Kernel& kernel : seen.kernels) {
    if (kernel.barriers == 0) continue;
    const unsigned threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    const unsigned warps = (threads + 31) / 32;
    sum += static_cast<double>(kernel.barriers) / (warps * blocks_of(kernel));
  }
  return sum;
}

/// The busiest of memory, shared memory, the issue of requests and atomics, and the launches. It
/// knows of no latency, no caches and no occupancy.
double model_microseconds(const microscope::Report& seen) {
  constexpr double kSectorBytes = 32;
  const Gpu gpu = gpu_of_model();
  const double cycles = gpu.multiprocessors * gpu.clock;  // a second, of all SMs together
  microscope::Counts all, atomics;
  for (const char* space : {"global", "shared", "constant"}) all += counts_of(seen, space, "");
  atomics += counts_of(seen, "global", "atomic");
  const double seconds = std::max(
      {kSectorBytes * static_cast<double>(all.sectors - atomics.sectors) / gpu.bytes_per_second,
       static_cast<double>(all.wavefronts) / cycles, static_cast<double>(all.requests) / cycles,
       kSectorBytes * static_cast<double>(atomics.sectors) / gpu.bytes_per_second});
  return 1e6 * (seconds + launches(seen) * gpu.launch_seconds);
}

}  // namespace

command::Inspection watch(const Judged& judged, const Trial& trial,
                          const std::function<Outcome(const RunOptions&)>& run) {
  require(judged.rung->is_cuda(), "rung", judged.rung->name,
          "runs on the CPU; the microscope counts CUDA kernels only");
  const std::string source = std::string(CONVLADDER_SOURCE_DIR "/") + judged.rung->source;
  microscope::Microscope lens({.source = source, .helpers = {"/core/"}});
  RunOptions options;
  options.poison = false;  // a fill would hide unwritten memory
  options.placed = [&](const std::string& name, const void* data, std::size_t bytes, DType dtype) {
    lens.name_array(data, bytes, size_of(dtype), name == "the workspace" ? "workspace" : name);
  };
  cuda_on_cpu::control::set_worker_threads(1);  // so that each run counts the same
  const Outcome outcome = run(options);
  if (const std::string blank = take_reached_blank(); !blank.empty())
    throw BadInput(blank + " is not written yet");
  require(outcome.status != Status::declined, "rung", judged.rung->name, outcome.reason);

  command::Inspection seen;
  seen.rung = judged.rung->name;
  seen.source = judged.rung->source;
  seen.problem = describe(trial.problem);
  seen.agrees = outcome.status == convladder::Status::agrees;
  seen.reason = outcome.reason;
  for (const auto& [name, array] : outcome.outputs)
    seen.outputs += static_cast<std::uint64_t>(array.size());
  seen.seen = lens.report();
  require(!seen.seen.overflowed, "problem", seen.problem, "too large to count all of it");
  const auto shorten = [](std::string& file) {
    const std::string root = CONVLADDER_SOURCE_DIR "/";
    if (file.starts_with(root)) file.erase(0, root.size());
  };
  for (microscope::Kernel& kernel : seen.seen.kernels)
    for (microscope::Line& line : kernel.lines) shorten(line.file);
  for (microscope::Race& race : seen.seen.races)
    shorten(race.first.file), shorten(race.second.file);
  for (microscope::Unwritten& read : seen.seen.unwritten) shorten(read.place.file);
  // Such memory holds NaNs: where the result is right, it does not depend on them.
  if (seen.agrees) seen.unused = std::exchange(seen.seen.unwritten, {});
  return seen;
}

double counter(const command::Inspection& inspection, const std::string& name) {
  const microscope::Report& seen = inspection.seen;
  if (name == "barriers_per_block") return barriers_per_block(seen);
  if (name == "launches") return launches(seen);
  if (name == "model_microseconds") return model_microseconds(seen);
  const std::vector<std::string> parts = split_at_points(name);
  if (parts.size() == 2 && parts[0] == "loads_per_output")
    return ratio(counts_of(seen, parts[1], "load").lanes, inspection.outputs);
  require(parts.size() == 2 || parts.size() == 3, "counter", name, "no counter has this name");
  // As sectors_per_request.x.load, or without the unit, or without the operation.
  const std::size_t unit_begins = parts[0].find("_per_");
  const std::string what = parts[0].substr(0, unit_begins);
  const std::string unit = unit_begins == std::string::npos ? "" : parts[0].substr(unit_begins + 5);
  const microscope::Counts counts = counts_of(seen, parts[1], parts.size() == 3 ? parts[2] : "");
  const double value = value_of(counts, what);
  require(value >= 0, "counter", name, text("no counter is named ", what));
  if (unit.empty()) return value;
  const double units = unit == "request"  ? static_cast<double>(counts.requests)
                       : unit == "lane"   ? static_cast<double>(counts.lanes)
                       : unit == "output" ? static_cast<double>(inspection.outputs)
                       : unit == "block"  ? blocks(seen)
                                          : -1;
  require(units >= 0, "counter", name, text("there is no unit ", unit));
  return units == 0 ? 0 : value / units;
}

}  // namespace convladder::check
