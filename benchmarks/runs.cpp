#include "benchmarks/runs.hpp"

#include <algorithm>
#include <tuple>

#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "provenance/provenance.hpp"
#ifdef CONVLADDER_HAVE_NVCC
#include "benchmarks/gpu/contest.hpp"
#endif

namespace convladder::benchmarks {
namespace {

using Key =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

Key key_of(const Row& row) {
  return {row.ladder, row.rung, row.problem, row.dtype, row.layout, row.l2};
}

/// Where a row stands: ladder, problem, layout, dtype, L2 state, rung.
std::array<std::size_t, 5> order_of(const Row& row) {
  std::size_t ladder = 0, rung = 0, problem = 0;
  for (const Ladder& candidate : ladders()) {
    if (candidate.name == row.ladder) {
      while (rung < candidate.rungs.size() && candidate.rungs[rung].name != row.rung) ++rung;
      break;
    }
    ++ladder;
  }
  for (const BenchmarkProblem& candidate : benchmark_problems()) {
    if (candidate.ladder == row.ladder && candidate.id == row.problem) break;
    ++problem;
  }
  const std::size_t dtype = row.dtype == "tf32"   ? 1
                            : row.dtype == "fp16" ? 2
                            : row.dtype == "bf16" ? 3
                            : row.dtype == "fp8"  ? 4
                                                  : 0;
  const std::size_t variant = (row.layout == "nhwc" ? 5u : 0u) + dtype;
  return {ladder, problem, variant, row.l2 == "warm" ? 0u : 1u, rung};
}

}  // namespace

Run new_run() {
  Run run;
  run.driver = driver_version();
  run.toolkit = toolkit_version();
  run.date = today();
  run.commit = commit();
  const Device* gpu = device_at(Where::gpu);
  if (gpu != nullptr) run.gpu = gpu->name();
#ifdef CONVLADDER_HAVE_NVCC
  run.cudnn = cudnn_version();
#endif
  return run;
}

std::string why_not_resumed(const Run& earlier, const Run& now) {
  for (const auto& [what, then, today] : {std::tuple{"GPU", earlier.gpu, now.gpu},
                                          {"driver", earlier.driver, now.driver},
                                          {"toolkit", earlier.toolkit, now.toolkit},
                                          {"cuDNN", earlier.cudnn, now.cudnn}}) {
    if (then != today) {
      return text("holds a run with ", what, " ", then.empty() ? "none" : then, ", this one has ",
                  today.empty() ? "none" : today);
    }
  }
  return "";
}

const Row* row_of(const Run& run, const std::string& ladder, const std::string& rung,
                  const std::string& problem, const std::string& dtype, const std::string& layout,
                  const std::string& l2) {
  const auto hash = built_source_hashes().find(rung);
  for (const Row& row : run.rows) {
    if (key_of(row) == Key{ladder, rung, problem, dtype, layout, l2} &&
        hash != built_source_hashes().end() && row.source_hash == hash->second) {
      return &row;
    }
  }
  return nullptr;
}

void merge(Run& run, std::vector<Row> rows) {
  std::map<Key, Row*> fresh;
  for (Row& row : rows) fresh.emplace(key_of(row), &row);
  for (const Row& row : run.rows) {
    const auto found = fresh.find(key_of(row));
    if (found == fresh.end()) continue;
    const auto keep = [](const std::map<std::string, double>& before,
                         std::map<std::string, double>& now) {
      for (const auto& [name, us] : before)
        if (name.starts_with(kMeasuredBeside)) now.emplace(name, us);
    };
    keep(row.baselines, found->second->baselines);
    keep(row.limits, found->second->limits);
  }
  std::erase_if(run.rows, [&](const Row& row) { return fresh.contains(key_of(row)); });
  run.rows.insert(run.rows.end(), std::move_iterator(rows.begin()), std::move_iterator(rows.end()));
  std::stable_sort(run.rows.begin(), run.rows.end(),
                   [](const Row& a, const Row& b) { return order_of(a) < order_of(b); });
}

#ifndef CONVLADDER_HAVE_NVCC
bool measure(Run&, const std::vector<Plan>&, const Watcher&) {
  throw std::logic_error("a build without nvcc has no GPU to measure on");
}
#endif

}  // namespace convladder::benchmarks
