#include <bit>
#include <nlohmann/json.hpp>
#include <optional>

#include "command/inspect/inspect.hpp"
#include "command/inspect/listing.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

namespace microscope = cuda_on_cpu::microscope;
using Json = nlohmann::ordered_json;

/// More requests cannot be stepped through, and their page would be larger than a photograph.
constexpr std::size_t kMostRequests = 100'000;

/// The constant stride in bytes from each active lane to the next; empty if it is not constant.
std::optional<std::int64_t> stride_of(const microscope::TracedRequest& request) {
  std::optional<std::int64_t> stride;
  int before = -1;
  for (int lane = 0; lane < 32; ++lane) {
    if ((request.lanes >> lane & 1u) == 0) continue;
    if (before >= 0) {
      const auto own = static_cast<std::int64_t>(request.byte[static_cast<std::size_t>(lane)] -
                                                 request.byte[static_cast<std::size_t>(before)]);
      const std::int64_t lanes = lane - before;
      if (own % lanes != 0 || (stride && *stride != own / lanes)) return {};
      stride = own / lanes;
    }
    before = lane;
  }
  return stride.value_or(0);
}

/// [interval, warp, line, lanes, first lane's byte, stride], or a list of bytes in place of the
/// last two.
Json json_of(const microscope::TracedRequest& request) {
  Json json = {request.interval, request.warp, request.line, request.lanes};
  if (const std::optional<std::int64_t> stride = stride_of(request)) {
    json.push_back(request.byte[static_cast<std::size_t>(std::countr_zero(request.lanes))]);
    json.push_back(*stride);
    return json;
  }
  Json bytes = Json::array();
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if ((request.lanes >> lane & 1u) != 0) bytes.push_back(request.byte[lane]);
  }
  json.push_back(std::move(bytes));
  return json;
}

Json json_of(const microscope::TracedBlock& block) {
  Json requests = Json::array(), landings = Json::array();
  for (const microscope::TracedRequest& request : block.requests)
    requests.push_back(json_of(request));
  for (const microscope::TracedLanding& landing : block.landings)
    landings.push_back({landing.interval, landing.array, landing.byte, landing.bytes});
  return {{"kernel", block.kernel},
          {"launch", block.launch},
          {"block", block.block},
          {"intervals", block.intervals},
          {"requests", std::move(requests)},
          {"landings", std::move(landings)}};
}

Json json_of(const microscope::Kernel& kernel) {
  Json lines = Json::array();
  for (const microscope::Line& line : kernel.lines) {
    lines.push_back({{"file", line.file},
                     {"line", line.line},
                     {"function", line.function},
                     {"space", microscope::name_of(line.space)},
                     {"op", microscope::name_of(line.operation)},
                     {"width", line.width},
                     {"array", line.array}});
  }
  return {{"name", short_name_of(kernel)},
          {"grid", kernel.grid},
          {"block", kernel.block},
          {"shared_bytes", kernel.shared_bytes},
          {"lines", std::move(lines)}};
}

}  // namespace

std::string inspect_trace(const Inspection& inspection) {
  const microscope::Report& seen = inspection.seen;
  std::size_t requests = 0;
  for (const microscope::TracedBlock& block : seen.traces) requests += block.requests.size();
  require(requests <= kMostRequests, "trace", requests,
          "a trace holds at most 100000 requests: choose a smaller problem, or fewer --blocks");
  Json arrays = Json::object(), kernels = Json::array(), blocks = Json::array(),
       races = Json::array();
  for (const auto& [name, array] : inspection.arrays) {
    arrays[name] = {{"bytes", array.bytes},
                    {"element_bytes", array.element_bytes},
                    {"begins", array.begins},
                    {"axes", array.axes},
                    {"extents", array.extents}};
  }
  for (const microscope::Kernel& kernel : seen.kernels) kernels.push_back(json_of(kernel));
  for (const microscope::TracedBlock& block : seen.traces) blocks.push_back(json_of(block));
  for (const microscope::Race& race : seen.races) {
    if (race.is_error) races.push_back(sentence_of(race));
  }
  const Json json = {{"schema", "convladder-trace-1"},
                     {"rung", inspection.rung},
                     {"source", inspection.source},
                     {"problem", inspection.problem},
                     {"agrees", inspection.agrees},
                     {"races", races},
                     {"arrays", arrays},
                     {"kernels", kernels},
                     {"blocks", blocks}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace convladder::command
