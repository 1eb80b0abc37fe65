/// @file profiled.cpp
/// @brief Runs of which tools/measure_counters.py takes a profile: the microbenchmarks, then each
/// CUDA rung on one problem. Before each, begin_run() launches a kernel that parts them in the
/// profile.
///
///     profiled PROBLEMS     a file of lines "LADDER OPTION..."; a rung gets the first that it
///     takes
///
/// Prints what ran, in order, as JSON.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "benchmarks/counters/microbenchmarks.hpp"
#include "command/options.hpp"
#include "command/program.hpp"
#include "command/report.hpp"
#include "command/task.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "provenance/provenance.hpp"

namespace convladder::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

Json run_microbenchmarks(Device& gpu) {
  constexpr std::size_t kBytes = kMicrobenchmarkElements * sizeof(float);
  std::vector<float> numbers(kMicrobenchmarkElements);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 8);
  void* const from = gpu.allocate(kBytes);
  void* const to = gpu.allocate(kBytes);
  Json runs = Json::array();
  for (const Microbenchmark& one : microbenchmarks()) {
    gpu.upload(from, numbers.data(), kBytes);
    begin_run();
    one.run(static_cast<const float*>(from), static_cast<float*>(to));
    gpu.synchronize();
    runs.push_back({{"microbenchmark", one.name}});
  }
  gpu.release(from);
  gpu.release(to);
  return runs;
}

/// The rungs of a line's ladder that have not run yet and take its problem.
void run_rungs(const std::string& line, std::set<const Rung*>& done, Json& runs) {
  std::istringstream in(line);
  std::vector<std::string> words{"compare"};
  for (std::string word; in >> word;) words.push_back(word);
  const command::Options options = command::parse_options(words);
  command::Prepared prepared =
      command::prepare(command::read_tasks(options).front(), options.data, options.seed);
  const Comparison comparison =
      command::comparison_of(prepared.task, prepared.data, std::move(prepared.inputs));
  for (const Rung& rung : prepared.task.ladder->rungs) {
    if (!rung.is_cuda() || done.contains(&rung)) continue;
    if (rung.code_at(Where::gpu)->supports(comparison.problem())) continue;
    done.insert(&rung);
    begin_run();
    const Outcome outcome = comparison.run(rung, Where::gpu);
    if (outcome.status != Status::agrees) throw std::runtime_error(rung.name + outcome.reason);
    runs.push_back({{"rung", rung.name},
                    {"source_hash", built_source_hashes().at(rung.name)},
                    {"options", line.substr(line.find(' ') + 1)}});
  }
}

int run(const char* problems) {
  Device* const gpu = device_at(Where::gpu);
  require(gpu != nullptr, "gpu", "", "there is none to profile");
  std::ifstream in(problems);
  require(in.good(), "problems", problems, "cannot be read");
  Json record = {{"gpu", gpu->name()},           {"driver", driver_version()},
                 {"toolkit", toolkit_version()}, {"date", today()},
                 {"commit", commit()},           {"runs", run_microbenchmarks(*gpu)}};
  std::set<const Rung*> done;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') run_rungs(line, done, record["runs"]);
  }
  std::cout << record.dump(1) << "\n";
  return command::kAllAgree;
}

}  // namespace
}  // namespace convladder::benchmarks

int main(int count, char** words) {
  return convladder::command::reported([&] {
    convladder::require(count == 2, "problems", "", "profiled PROBLEMS");
    return convladder::benchmarks::run(words[1]);
  });
}
