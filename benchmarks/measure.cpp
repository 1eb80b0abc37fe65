/// @file measure.cpp
/// @brief Which contests are held, and the rows that they make.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "benchmarks/contests.hpp"
#include "benchmarks/runs.hpp"
#include "benchmarks/variants.hpp"
#include "provenance/provenance.hpp"

namespace convladder::benchmarks {
namespace {

/// The name of the rate that limits arithmetic in that type.
const char* ceiling_of(const std::string& dtype) {
  return dtype == "tf32"                      ? "tf32_tflops"
         : dtype == "fp16" || dtype == "bf16" ? "fp16_tflops"
         : dtype == "fp8"                     ? "fp8_tflops"
                                              : "fma_tflops";
}

/// The least time, in microseconds, that the operations and the bytes of a row take.
double floor_us(const Row& row, double flops, const std::map<std::string, double>& ceilings) {
  const double peak = ceilings.at(ceiling_of(row.dtype));
  const double arithmetic = peak > 0 ? flops / peak * 1e-6 : 0;
  const auto copy = row.limits.find("copy");
  return std::max(arithmetic, copy == row.limits.end() ? 0 : copy->second);
}

/// Whether the run has the rung's times already.
bool complete(const Run& run, const Plan& plan, const Rung& rung, const Variant& variant) {
  return row_of(run, plan.problem->ladder, rung.name, plan.problem->id, variant.dtype,
                variant.layout, name_of(L2::warm)) != nullptr;
}

/// What came out for a rung.
Row measured_row(const BenchmarkProblem& benchmark, const Variant& variant, const Contest& contest,
                 const Rung& rung, L2 l2, const Standing& standing, const Timing& timing,
                 const std::map<std::string, double>& ceilings) {
  Row row;
  row.ladder = benchmark.ladder;
  row.rung = rung.name;
  row.source_hash = built_source_hashes().at(row.rung);
  row.problem = benchmark.id;
  row.dtype = variant.dtype;
  row.layout = variant.layout;
  row.l2 = name_of(l2);
  row.median_us = timing.median_us;
  row.spread_us = timing.spread_us;
  row.host_us = timing.host_us;
  row.bytes = static_cast<std::int64_t>(contest.bytes);
  row.launches = timing.launches;
  row.host_syncs = timing.host_syncs;
  row.registers = timing.registers;
  row.shared_bytes = timing.shared_bytes;
  row.spills = timing.spills;
  row.occupancy = timing.occupancy;
  row.memory_bytes = timing.memory_bytes;
  row.baselines = standing.baselines;
  row.limits = standing.limits;
  const double flops = operations(variant.problem);
  row.tflops = flops / timing.median_us * 1e-6;
  const double peak = ceilings.at(ceiling_of(row.dtype));
  if (flops > 0 && peak > 0)
    row.limits[row.dtype == "fp32" ? "fma" : "tensor cores"] = flops / peak * 1e-6;
  row.roofline = floor_us(row, flops, ceilings) / timing.median_us;
  return row;
}

}  // namespace

bool measure(Run& run, const std::vector<Plan>& plans, const Watcher& watcher) {
  bool right = true;
  if (!run.ceilings.contains("fp8_tflops")) {
    const Ceilings ceilings = measure_ceilings();
    // What an earlier run measured of them stays, as its rows were held against it.
    run.ceilings.merge(std::map<std::string, double>{{"copy_tb_s", ceilings.copy_tb_s},
                                                     {"copy_l2_tb_s", ceilings.copy_l2_tb_s},
                                                     {"fma_tflops", ceilings.fma_tflops},
                                                     {"tf32_tflops", ceilings.tf32_tflops},
                                                     {"fp16_tflops", ceilings.fp16_tflops},
                                                     {"fp8_tflops", ceilings.fp8_tflops}});
  }
  for (const Plan& plan : plans) {
    watcher.begin(plan);
    const BenchmarkProblem& benchmark = *plan.problem;
    // Rung, layout and type, in its strictest precision.
    std::set<std::tuple<std::string, std::string, DType>> taken;
    std::optional<SampledData> data;  // once it is needed
    for (Variant& variant : variants_of(benchmark)) {
      std::vector<Entrant> entrants;
      std::vector<const Rung*> rungs;
      bool whole = false;
      for (const Rung* rung : plan.rungs) {
        const auto& code = rung->code_at(Where::gpu);
        const std::tuple key{rung->name, variant.layout, dtype_of(variant.problem)};
        if (!code || taken.contains(key)) continue;
        if (complete(run, plan, *rung, variant)) {
          taken.insert(key);
          continue;
        }
        // A rulebook may take seconds to make: only where something is left to be timed.
        if (!whole) variant.problem = whole_problem(benchmark, variant.problem);
        whole = true;
        if (code->supports(variant.problem)) continue;
        taken.insert(key);
        entrants.push_back({rung->name, &*code, rung->winograd, rung->float_spectra});
        rungs.push_back(rung);
      }
      if (entrants.empty()) continue;
      if (!data || data->dtype != dtype_of(variant.problem))
        data = data_of(benchmark, variant.problem);
      Contest contest = contest_of(benchmark, variant, *data);
      contest.rungs = entrants;
      const std::string where =
          text(benchmark.ladder, " ", benchmark.id, " ", variant.dtype, " ", variant.layout, ": ");
      const Standings standings = benchmarks::measure(
          contest, [&](const std::string& what) { watcher.note(where + what); });
      std::vector<Row> rows;
      for (const L2 l2 : {L2::warm, L2::cold}) {
        const auto& standing = standings[static_cast<std::size_t>(l2)];
        if (!standing) continue;
        for (std::size_t i = 0; i < rungs.size(); ++i) {
          const Timing& timing = standing->rungs[i];
          if (!timing.wrong.empty()) {
            if (!timing.declined) {
              right = false;
              watcher.differs(where + rungs[i]->name + ": " + timing.wrong);
            }
            continue;
          }
          rows.push_back(measured_row(benchmark, variant, contest, *rungs[i], l2, *standing, timing,
                                      run.ceilings));
        }
      }
      merge(run, rows);
      watcher.timed(rows);
      watcher.save(run);
    }
  }
  return right;
}

}  // namespace convladder::benchmarks
