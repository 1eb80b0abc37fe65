#include <nlohmann/json.hpp>

#include "command/inspect/inspect.hpp"

namespace convladder::command {
namespace {

namespace microscope = cuda_on_cpu::microscope;
using Json = nlohmann::ordered_json;

Json json_of(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(const microscope::Counts& counts, microscope::Space space) {
  const bool global = space == microscope::Space::global;
  const bool shared = space == microscope::Space::shared;
  return {{"requests", counts.requests},
          {"lanes", counts.lanes},
          {"bytes", counts.bytes},
          {"sectors", global ? Json(counts.sectors) : Json(nullptr)},
          {"sectors_ideal", global ? Json(counts.sectors_ideal) : Json(nullptr)},
          {"wavefronts", shared ? Json(counts.wavefronts) : Json(nullptr)},
          {"excess", shared ? Json(counts.excess) : Json(nullptr)},
          {"contention", counts.contention == 0 ? Json(nullptr) : Json(counts.contention)},
          {"joined", shared ? Json{{"requests", counts.joined_requests},
                                   {"wavefronts", counts.joined_wavefronts},
                                   {"excess", counts.joined_excess}}
                            : Json(nullptr)}};
}

Json json_of(const microscope::Kernel& kernel) {
  Json totals = Json::object(), sites = Json::array();
  for (const microscope::Space space :
       {microscope::Space::global, microscope::Space::shared, microscope::Space::constant}) {
    for (const microscope::Operation operation :
         {microscope::Operation::load, microscope::Operation::store, microscope::Operation::atomic,
          microscope::Operation::async}) {
      microscope::Counts sum;
      for (const microscope::Line& line : kernel.lines) {
        if (line.space == space && line.operation == operation) sum += line.counts;
      }
      if (sum.requests == 0) continue;
      totals[microscope::name_of(space)][microscope::name_of(operation)] = json_of(sum, space);
    }
  }
  for (const microscope::Line& line : kernel.lines) {
    Json site = {{"file", json_of(line.file)},
                 {"line", line.line},
                 {"function", json_of(line.function)},
                 {"space", microscope::name_of(line.space)},
                 {"op", microscope::name_of(line.operation)},
                 {"width", line.width},
                 {"array", json_of(line.array)}};
    site.update(json_of(line.counts, line.space));
    sites.push_back(std::move(site));
  }
  return {{"name", kernel.name},
          {"launches", kernel.launches},
          {"grid", kernel.grid},
          {"block", kernel.block},
          {"shared_bytes", kernel.shared_bytes},
          {"blocks", {{"run", kernel.blocks_run}, {"counted", kernel.blocks_counted}}},
          {"barriers", kernel.barriers},
          {"grid_barriers", kernel.grid_barriers},
          {"factor_bytes", kernel.factor_bytes},
          {"totals", totals},
          {"sites", sites}};
}

Json json_of(const microscope::Place& place) {
  return {{"file", json_of(place.file)},
          {"line", place.line},
          {"block", place.block},
          {"thread", place.thread}};
}

Json json_of(const microscope::Unwritten& read) {
  Json json = json_of(read.place);
  json["space"] = microscope::name_of(read.space);
  json["array"] = json_of(read.array);
  json["element"] = read.element;
  return json;
}

}  // namespace

std::string inspect_json(const Inspection& inspection) {
  const microscope::Report& seen = inspection.seen;
  Json kernels = Json::array(), races = Json::array(), unwritten = Json::array(),
       unused = Json::array();
  std::uint64_t barriers = 0;
  for (const microscope::Kernel& kernel : seen.kernels) {
    kernels.push_back(json_of(kernel));
    barriers += kernel.barriers;
  }
  Json loads = Json::object(), footprint = Json::object();
  for (const auto& [array, number] : inspection.loads_per_output())
    loads[array] = inspection.outputs == 0 ? Json(nullptr) : Json(number);
  for (const auto& [array, bytes] : seen.footprint) footprint[array] = bytes;
  for (const microscope::Race& race : seen.races) {
    races.push_back({{"kind", microscope::name_of(race.kind)},
                     {"severity", race.is_error ? "error" : "note"},
                     {"space", microscope::name_of(race.space)},
                     {"array", json_of(race.array)},
                     {"element", race.element},
                     {"first", json_of(race.first)},
                     {"second", json_of(race.second)},
                     {"why", json_of(race.why)}});
  }
  for (const microscope::Unwritten& read : seen.unwritten) unwritten.push_back(json_of(read));
  for (const microscope::Unwritten& read : inspection.unused) unused.push_back(json_of(read));
  const Json json = {{"schema", "convladder-inspect-1"},
                     {"rung", inspection.rung},
                     {"source", inspection.source},
                     {"problem", inspection.problem},
                     {"compiler", inspection.compiler},
                     {"agrees", inspection.agrees},
                     {"blocks", {{"run", seen.blocks_run}, {"counted", seen.blocks_counted}}},
                     {"kernels", kernels},
                     {"outputs", inspection.outputs},
                     {"per_output", {{"loads", loads}}},
                     {"barriers", barriers},
                     {"footprint", footprint},
                     {"races", races},
                     {"unwritten", unwritten},
                     {"unwritten_unused", unused},
                     {"events", seen.events}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace convladder::command
