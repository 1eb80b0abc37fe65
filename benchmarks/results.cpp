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

Json as_json(const std::string& value) { return value; }
Json as_json(std::int64_t value) { return value; }
Json as_json(int value) { return value; }
Json as_json(double value) { return rounded(value); }
Json as_json(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = rounded(value);
  return json;
}

// The keys of the file, in their order, once for writing and reading: visit(name, member).

template <class AnyRow, class Visit>
void visit_row(AnyRow& row, const Visit& visit) {
  visit("ladder", row.ladder);
  visit("rung", row.rung);
  visit("source_hash", row.source_hash);
  visit("problem", row.problem);
  visit("dtype", row.dtype);
  visit("layout", row.layout);
  visit("l2", row.l2);
  visit("median_us", row.median_us);
  visit("spread_us", row.spread_us);
  visit("host_us", row.host_us);
  visit("tflops", row.tflops);
  visit("roofline", row.roofline);
  visit("bytes", row.bytes);
  visit("launches", row.launches);
  visit("host_syncs", row.host_syncs);
  visit("registers", row.registers);
  visit("shared_bytes", row.shared_bytes);
  visit("spills", row.spills);
  visit("occupancy", row.occupancy);
  visit("baselines", row.baselines);
  visit("limits", row.limits);
}

template <class AnyRun, class Visit>
void visit_run(AnyRun& run, const Visit& visit) {
  visit("gpu", run.gpu);
  visit("driver", run.driver);
  visit("toolkit", run.toolkit);
  visit("cudnn", run.cudnn);
  visit("spconv", run.spconv);
  visit("date", run.date);
  visit("commit", run.commit);
  visit("ceilings", run.ceilings);
}

/// A visitor that writes.
auto into(Json& json) {
  return [&json](const char* name, const auto& value) { json[name] = as_json(value); };
}

/// A visitor that reads.
auto from(const Json& json) {
  return [&json](const char* name, auto& value) { json.at(name).get_to(value); };
}

// Beside the keys that every row has: only where a rung takes scratch memory.
constexpr const char* kMemory = "memory_bytes";

}  // namespace

std::string to_json(const Run& run) {
  Json json;
  visit_run(run, into(json));
  // A row a line: a file that is committed should have readable differences.
  std::string text = json.dump(1);
  text.erase(text.rfind('}'));
  while (text.back() == '\n') text.pop_back();
  text += ",\n \"rows\": [";
  const char* between = "\n";
  for (const Row& row : run.rows) {
    Json fields;
    visit_row(row, into(fields));
    if (row.memory_bytes != 0) fields[kMemory] = row.memory_bytes;
    text += between + ("  " + fields.dump());
    between = ",\n";
  }
  return text + (run.rows.empty() ? "]\n}\n" : "\n ]\n}\n");
}

Run from_json(const std::string& text) {
  const Json json = Json::parse(text);
  Run run;
  visit_run(run, from(json));
  for (const Json& row : json.at("rows")) {
    visit_row(run.rows.emplace_back(), from(row));
    run.rows.back().memory_bytes = row.value(kMemory, std::int64_t{0});
  }
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
  static constexpr const char* kWords[] = {CONVLADDER_FEWER_MULTIPLICATIONS};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

std::string without_clock(const std::string& name) {
  return name.substr(0, name.rfind(", host clock"));
}

const std::pair<const std::string, double>* best_baseline(const Row& row) {
  const std::pair<const std::string, double>* best = nullptr;
  for (const auto& baseline : row.baselines) {
    if (without_clock(baseline.first) != baseline.first) continue;
    if (saves_multiplications(baseline.first) && !saves_multiplications(row.rung)) continue;
    if (best == nullptr || baseline.second < best->second) best = &baseline;
  }
  return best;
}

}  // namespace convladder::benchmarks
