/// @file results.hpp
/// @brief A run of the benchmarks, as data and as the JSON of `bench --json`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace convladder::benchmarks {

/// The times of a rung on a problem, in one precision, layout and state of the L2 cache.
struct Row {
  std::string ladder, rung, source_hash, problem;
  std::string dtype;   ///< "fp32", "tf32", "fp16", "bf16", "fp8"; of rulebooks "int32".
  std::string layout;  ///< "nchw", "nhwc"; "row_major" for matrices, "rows" of sparse features.
  std::string l2;      ///< "warm", "cold".
  double median_us = 0, spread_us = 0, host_us = 0;
  double tflops = 0;    ///< By the definition's operations.
  double roofline = 0;  ///< The time that arithmetic or traffic takes at least, of the time taken.
  std::int64_t bytes = 0;  ///< That have to be read and written at least, each array once.
  int launches = 0, host_syncs = 0, registers = 0, shared_bytes = 0, spills = 0;
  double occupancy = 0;
  std::map<std::string, double> baselines = {}, limits = {};  ///< Microseconds by name.
  /// Of scratch memory: the workspace, and the most that a run allocates at once beside it.
  std::int64_t memory_bytes = 0;
};

/// A run on one machine.
struct Run {
  std::string gpu, driver, toolkit, cudnn, spconv, date, commit;
  std::map<std::string, double> ceilings = {};
  std::vector<Row> rows = {};
};

/// The JSON text of `bench --json`.
std::string to_json(const Run& run);

/// @throws std::exception if it is not the text of a run
Run from_json(const std::string& text);

/// The newest committed run: the last by date, then name, of a folder's *.json files.
/// @throws std::exception if it cannot be understood
std::optional<Run> newest_run(const std::filesystem::path& folder);

/// True for algorithms that save multiplications (Winograd's, FFT), which plain arithmetic cannot
/// keep up with where it has to do them all.
bool saves_multiplications(const std::string& name);

/// The name of a time, less ", host clock" behind those that are not on the GPU's clock.
std::string without_clock(const std::string& name);

/// The fastest of a row's baselines on the GPU's clock; for a rung in plain arithmetic, of those in
/// plain arithmetic. Null without any.
const std::pair<const std::string, double>* best_baseline(const Row& row);

}  // namespace convladder::benchmarks
