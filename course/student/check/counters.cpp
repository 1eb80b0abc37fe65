#include "check/counters.hpp"

#include <cuda_on_cpu/control.hpp>
#include <utility>

#include "check/blanks.hpp"
#include "core/error.hpp"

namespace convladder::check {
namespace {

namespace microscope = cuda_on_cpu::microscope;
using microscope::Operation;
using microscope::Space;

/// What all lines do that `matches` takes.
template <class Matches>
microscope::Counts sum_of(const microscope::Report& seen, const Matches& matches) {
  microscope::Counts sum;
  for (const microscope::Kernel& kernel : seen.kernels) {
    for (const microscope::Line& line : kernel.lines)
      if (matches(line)) sum += line.counts;
  }
  return sum;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

double barriers_per_block(const microscope::Report& seen) {
  double barriers = 0, blocks = 0;
  for (const microscope::Kernel& kernel : seen.kernels) {
    const unsigned threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    const unsigned warps = (threads + 31) / 32;
    barriers += static_cast<double>(kernel.barriers) / warps;
    blocks +=
        static_cast<double>(kernel.launches) * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  }
  return blocks == 0 ? 0 : barriers / blocks;
}

}  // namespace

command::Inspection watch(const Judged& judged, const Trial& trial,
                          const std::function<Outcome(const RunOptions&)>& run) {
  require(judged.rung->is_cuda(), "rung", judged.rung->name,
          "runs on the CPU: the microscope looks at kernels");
  const std::string source = std::string(CONVLADDER_SOURCE_DIR "/") + judged.rung->source;
  microscope::Microscope lens({.source = source, .helpers = {"/core/"}});
  RunOptions options;
  options.poison = false;  // a fill would hide what nobody wrote
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
  const std::string kind = name.substr(0, name.find('.'));
  const std::string array = kind == name ? "" : name.substr(kind.size() + 1);
  const auto of = [&](Operation operation) {
    return sum_of(seen, [&](const microscope::Line& line) {
      return line.space == Space::global && line.operation == operation && line.array == array;
    });
  };
  if (kind == "loads_per_output") return ratio(of(Operation::load).lanes, inspection.outputs);
  if (kind == "stores_per_element") return ratio(of(Operation::store).lanes, inspection.outputs);
  if (kind == "sectors_per_load") {
    const microscope::Counts loads = of(Operation::load);
    return ratio(loads.sectors, loads.requests);
  }
  if (kind == "sectors_per_store") {
    const microscope::Counts stores = of(Operation::store);
    return ratio(stores.sectors, stores.requests);
  }
  if (kind == "barriers_per_block") return barriers_per_block(seen);
  if (kind == "excess_wavefronts") {
    return static_cast<double>(sum_of(seen, [](const microscope::Line& line) {
                                 return line.space == Space::shared;
                               }).excess);
  }
  if (kind == "atomics") {
    return static_cast<double>(sum_of(seen, [](const microscope::Line& line) {
                                 return line.operation == Operation::atomic;
                               }).requests);
  }
  throw BadInput(text("counter = ", name, ": there is none of that name"));
}

}  // namespace convladder::check
