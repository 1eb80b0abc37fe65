#include "command/inspect/inspect.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "command/files.hpp"
#include "command/inspect/listing.hpp"
#include "command/options.hpp"
#include "command/program.hpp"
#include "command/progress.hpp"
#include "command/report.hpp"
#include "command/selection.hpp"
#include "command/task.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "cuda_on_cpu/control.hpp"
#include "ladders/rung_libraries.hpp"

namespace convladder::command {
namespace {

namespace microscope = cuda_on_cpu::microscope;

std::uint64_t elements_of(const Arrays& outputs) {
  std::uint64_t elements = 0;
  for (const auto& [name, array] : outputs) elements += static_cast<std::uint64_t>(array.size());
  return elements;
}

/// Files of the project by their path from its root.
void shorten_paths(microscope::Report& seen) {
  const std::string root = CONVLADDER_SOURCE_DIR "/";
  const auto shorten = [&](std::string& file) {
    if (file.starts_with(root)) file.erase(0, root.size());
  };
  for (microscope::Kernel& kernel : seen.kernels) {
    for (microscope::Line& line : kernel.lines) shorten(line.file);
  }
  for (microscope::Race& race : seen.races) {
    shorten(race.first.file);
    shorten(race.second.file);
  }
  for (microscope::Unwritten& read : seen.unwritten) shorten(read.place.file);
}

/// Describes the placement of the arrays in memory.
void describe_arrays(Inspection& inspection, const Signature& signature) {
  for (const std::vector<ArraySpec>* specs : {&signature.inputs, &signature.outputs}) {
    for (const ArraySpec& spec : *specs) {
      const auto found = inspection.arrays.find(spec.name);
      if (found == inspection.arrays.end() || spec.dynamic || !spec.order.view.empty()) continue;
      for (std::size_t i = 0; i < spec.shape.size(); ++i) {
        const std::size_t axis =
            spec.order.axes.empty() ? i : static_cast<std::size_t>(spec.order.axes[i]);
        found->second.axes += spec.axes[axis];
        found->second.extents.push_back(spec.shape[axis]);
      }
    }
  }
}

/// The most findings that are kept; an environment variable lowers the number for tests.
std::uint64_t most_events() {
  const char* const given = std::getenv("CONVLADDER_MOST_EVENTS");
  return given == nullptr ? microscope::Options().most_events : std::strtoull(given, nullptr, 10);
}

/// Runs the rung once and counts `blocks` of each launch, or all blocks.
Inspection look(const Options& options, const std::string& problem, const Comparison& comparison,
                const Rung& rung, const std::string& library, std::uint64_t blocks) {
  Inspection inspection;
  inspection.rung = rung.name;
  inspection.source =
      options.source.empty() ? rung.source : std::filesystem::canonical(options.source).string();
  inspection.problem = problem;
  inspection.compiler = text("g++ ", __VERSION__);
#ifdef __clang__
  inspection.compiler = __VERSION__;
#endif
  const InForce conditions(options.conditions, comparison.ladder().signature(comparison.problem()),
                           options.seed);
  RunOptions run_options = conditions.run_options();
  std::optional<Progress> progress;  // of a launch
  microscope::Microscope lens(
      {.library = library,
       .source = std::filesystem::path(CONVLADDER_SOURCE_DIR) / inspection.source,
       .helpers = {"/core/"},
       .blocks_a_launch = blocks,
       .most_events = most_events(),
       .trace = options.trace.has_value(),
       .launch_began =
           [&](const microscope::Kernel& kernel, std::uint64_t count) {
             progress.emplace(count);
             progress->begin(short_name_of(kernel));
           },
       .block_ended = [&] { progress->step(); }});
  run_options.poison = false;  // a fill would hide reads of unwritten memory
  run_options.placed = [&](const std::string& name, const void* data, std::size_t bytes,
                           DType dtype) {
    const std::string short_name = name == "the workspace" ? "workspace" : name;
    lens.name_array(data, bytes, size_of(dtype), short_name);
    inspection.arrays[short_name] = {.bytes = bytes,
                                     .element_bytes = size_of(dtype),
                                     .begins = reinterpret_cast<std::uintptr_t>(data) % 128,
                                     .axes = {},
                                     .extents = {}};
  };
  cuda_on_cpu::control::set_worker_threads(1);  // so that repeated runs count the same
  const Outcome outcome = comparison.run(rung, Where::emulated, run_options);
  progress.reset();
  if (outcome.status == Status::declined)
    throw BadInput(text("rung = ", rung.name, ": ", outcome.reason));
  inspection.agrees = outcome.status == Status::agrees;
  inspection.reason = outcome.reason;
  inspection.outputs = elements_of(outcome.outputs);
  describe_arrays(inspection, comparison.ladder().signature(comparison.problem()));
  inspection.seen = lens.report();
  shorten_paths(inspection.seen);
  if (inspection.agrees) inspection.unused = std::exchange(inspection.seen.unwritten, {});
  return inspection;
}

}  // namespace

int convladder_inspect(const Options& given) {
  Options options = given;
  require(!options.rungs.empty(), "rung", "", "inspect needs the name of a rung (./ladder list)");
  const auto [ladder, rung] = rung_named(options.rungs.front());
  require(rung->is_cuda(), "rung", rung->name, "runs on the CPU: inspect supports CUDA rungs only");
  options.ladder = ladder->name;
  options.rungs.clear();
  if (!options.source.empty()) {
    require(std::filesystem::is_regular_file(options.source), "source", options.source,
            "the file does not exist");
  }
  const char* const library = std::getenv("CONVLADDER_INSPECTED");
  if (library == nullptr || *library == '\0') {
    throw MissingLibrary("the rung is not compiled for inspect: run ./ladder inspect");
  }
  std::optional<OutputFile> json, html, trace;
  if (options.json) json.emplace("json", *options.json);
  if (options.html) html.emplace("html", *options.html);
  if (options.trace) trace.emplace("trace", *options.trace);
  take_rungs_from(folder_of(*rung), library);

  auto blocks = static_cast<std::uint64_t>(options.blocks);
  std::vector<Task> tasks = read_tasks(options);
  require(tasks.size() == 1, "map", "", "inspect supports one map per run: select it with --map");
  Prepared prepared = prepare(std::move(tasks.front()), options.data, options.seed);
  const std::string& problem = prepared.task.title;
  const Comparison comparison =
      comparison_of(prepared.task, prepared.data, std::move(prepared.inputs));
  Inspection inspection = look(options, problem, comparison, *rung, library, blocks);
  // Too many events: the run is repeated with as many blocks as fit, and fewer if necessary.
  while (inspection.seen.overflowed) {
    std::uint64_t launches = 0;
    for (const auto& kernel : inspection.seen.kernels) launches += kernel.launches;
    const std::uint64_t room =
        inspection.seen.blocks_counted * 3 / 4 / std::max<std::uint64_t>(launches, 1);
    const std::uint64_t next =
        std::max<std::uint64_t>(1, blocks == 0 ? room : std::min(room, blocks / 2));
    require(next != blocks, "blocks", next,
            "a single block causes too many events: choose a smaller problem");
    blocks = next;
    inspection = look(options, problem, comparison, *rung, library, blocks);
  }
  if (json) json->write(inspect_json(inspection));
  if (html) html->write(inspect_page(inspection));
  if (trace) trace->write(inspect_trace(inspection));
  std::fputs(inspect_text(inspection).c_str(), stdout);
  return inspection.is_in_order() ? kAllAgree : kSomeDiffer;
}

}  // namespace convladder::command
