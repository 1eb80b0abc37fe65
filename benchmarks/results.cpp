#include "benchmarks/results.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace convladder::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

/// Four significant digits: more is noise, in a file that is committed.
double rounded(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", value);
  return std::strtod(digits, nullptr);
}

Json rounded_all(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = rounded(value);
  return json;
}

Json to_json(const Row& row) {
  return {{"ladder", row.ladder},
          {"rung", row.rung},
          {"source_hash", row.source_hash},
          {"problem", row.problem},
          {"dtype", row.dtype},
          {"layout", row.layout},
          {"l2", row.l2},
          {"median_us", rounded(row.median_us)},
          {"spread_us", rounded(row.spread_us)},
          {"host_us", rounded(row.host_us)},
          {"tflops", rounded(row.tflops)},
          {"roofline", rounded(row.roofline)},
          {"bytes", row.bytes},
          {"launches", row.launches},
          {"host_syncs", row.host_syncs},
          {"registers", row.registers},
          {"shared_bytes", row.shared_bytes},
          {"spills", row.spills},
          {"occupancy", rounded(row.occupancy)},
          {"baselines", rounded_all(row.baselines)},
          {"limits", rounded_all(row.limits)}};
}

Row row_from(const Json& json) {
  Row row;
  const auto get = [&](const char* name, auto& value) { json.at(name).get_to(value); };
  get("ladder", row.ladder);
  get("rung", row.rung);
  get("source_hash", row.source_hash);
  get("problem", row.problem);
  get("dtype", row.dtype);
  get("layout", row.layout);
  get("l2", row.l2);
  get("median_us", row.median_us);
  get("spread_us", row.spread_us);
  get("host_us", row.host_us);
  get("tflops", row.tflops);
  get("roofline", row.roofline);
  get("bytes", row.bytes);
  get("launches", row.launches);
  get("host_syncs", row.host_syncs);
  get("registers", row.registers);
  get("shared_bytes", row.shared_bytes);
  get("spills", row.spills);
  get("occupancy", row.occupancy);
  get("baselines", row.baselines);
  get("limits", row.limits);
  return row;
}

}  // namespace

std::string to_json(const Run& run) {
  Json json = {{"gpu", run.gpu},         {"driver", run.driver},
               {"toolkit", run.toolkit}, {"cudnn", run.cudnn},
               {"spconv", run.spconv},   {"date", run.date},
               {"commit", run.commit},   {"ceilings", rounded_all(run.ceilings)}};
  // A row a line: a file that is committed should have readable differences.
  std::string text = json.dump(1);
  text.erase(text.rfind('}'));
  while (text.back() == '\n') text.pop_back();
  text += ",\n \"rows\": [";
  const char* between = "\n";
  for (const Row& row : run.rows) {
    text += between + ("  " + to_json(row).dump());
    between = ",\n";
  }
  return text + (run.rows.empty() ? "]\n}\n" : "\n ]\n}\n");
}

Run from_json(const std::string& text) {
  const Json json = Json::parse(text);
  Run run;
  const auto get = [&](const char* name, auto& value) { json.at(name).get_to(value); };
  get("gpu", run.gpu);
  get("driver", run.driver);
  get("toolkit", run.toolkit);
  get("cudnn", run.cudnn);
  get("spconv", run.spconv);
  get("date", run.date);
  get("commit", run.commit);
  get("ceilings", run.ceilings);
  for (const Json& row : json.at("rows")) run.rows.push_back(row_from(row));
  return run;
}

std::optional<Run> newest_run(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::optional<Run> newest;
  for (const auto& file : files) {
    std::ifstream stream(file);
    Run run = from_json({std::istreambuf_iterator<char>(stream), {}});
    if (!newest || run.date >= newest->date) newest = std::move(run);
  }
  return newest;
}

bool saves_multiplications(const std::string& name) {
  return name.find("winograd") != std::string::npos || name.find("fft") != std::string::npos;
}

const std::pair<const std::string, double>* best_baseline(const Row& row) {
  const std::pair<const std::string, double>* best = nullptr;
  for (const auto& baseline : row.baselines) {
    if (saves_multiplications(baseline.first) && !saves_multiplications(row.rung)) continue;
    if (best == nullptr || baseline.second < best->second) best = &baseline;
  }
  return best;
}

}  // namespace convladder::benchmarks
