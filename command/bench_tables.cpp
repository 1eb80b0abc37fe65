#include "command/bench_tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "command/table.hpp"
#include "command/terminal.hpp"

namespace convladder::command {
namespace {

using benchmarks::BenchmarkProblem;
using benchmarks::Run;
using TimedRow = benchmarks::Row;

std::string microseconds(double us) { return time_text(us / 1000); }

std::string percent(double share) { return text(static_cast<int>(std::lround(100 * share)), " %"); }

/// "1.23 x winograd_nonfused": the speed-up over the best baseline of the same kind.
std::string against_baseline(const TimedRow& row) {
  const auto* best = benchmarks::best_baseline(row);
  if (best == nullptr) return "-";
  char times[32];
  std::snprintf(times, sizeof times, "%.2f x ", best->second / row.median_us);
  return times + best->first;
}

/// A table of one problem in one dtype and layout: rungs and baselines, the fastest last.
std::string table_of(const BenchmarkProblem& problem, const std::vector<const TimedRow*>& rows) {
  struct Line {
    std::string name;
    std::optional<double> warm_us = {}, cold_us = {}, host_us = {};
    const TimedRow* row = nullptr;  // of a rung, with a warm L2 if that was measured
  };
  std::vector<Line> lines;
  const auto line_of = [&](const std::string& name) -> Line& {
    for (Line& line : lines) {
      if (line.name == name) return line;
    }
    return lines.emplace_back(Line{name});
  };
  for (const TimedRow* row : rows) {
    const bool warm = row->l2 == "warm";
    Line& line = line_of(row->rung);
    (warm ? line.warm_us : line.cold_us) = row->median_us;
    if (warm || !line.host_us) line.host_us = row->host_us;
    if (line.row == nullptr || warm) line.row = row;
    for (const auto* times : {&row->baselines, &row->limits}) {
      for (const auto& [name, us] : *times) {
        const std::string whose = benchmarks::without_clock(name);
        Line& other = line_of((times == &row->limits ? "limit: " : "") + whose);
        (whose != name ? other.host_us : warm ? other.warm_us : other.cold_us) = us;
      }
    }
  }
  const auto sort_key = [](const Line& line) {
    return line.warm_us ? *line.warm_us : line.cold_us.value_or(0);
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Line& a, const Line& b) { return sort_key(a) > sort_key(b); });
  std::size_t width = 4;
  for (const Line& line : lines) width = std::max(width, line.name.size());

  const TimedRow& any = *rows.front();
  std::string out = styled(Style::bold, text(problem.ladder, " ", problem.id, ", ", any.dtype, ", ",
                                             any.layout)) +
                    text(": ", benchmarks::describe(problem), " (", problem.teaches, ")\n");
  const auto add = [&](const std::string& name, const std::string& warm, const std::string& cold,
                       const std::string& host, const std::string& tflops, const std::string& limit,
                       const std::string& baseline, bool is_rung) {
    std::string line = "  " + left(name, width) + right(warm, 10) + right(cold, 10) +
                       right(host, 10) + right(tflops, 9) + right(limit, 9) + "  " + baseline;
    line.erase(line.find_last_not_of(' ') + 1);
    out += (is_rung ? line : styled(Style::dim, line)) + "\n";
  };
  add("", "L2 warm", "L2 cold", "on host", "TFLOP/s", "of limit", "against the best baseline",
      false);
  for (const Line& line : lines) {
    const auto time = [](const std::optional<double>& us) {
      return us ? microseconds(*us) : std::string("-");
    };
    char tflops[32] = "";
    if (line.row != nullptr && line.row->tflops > 0)
      std::snprintf(tflops, sizeof tflops, "%.2f", line.row->tflops);
    add(line.name, time(line.warm_us), time(line.cold_us), time(line.host_us), tflops,
        line.row == nullptr ? "" : percent(line.row->roofline),
        line.row == nullptr ? "" : against_baseline(*line.row), line.row != nullptr);
  }
  return out;
}

}  // namespace

std::vector<std::string> tables_of(const BenchmarkProblem& problem,
                                   const std::vector<TimedRow>& rows) {
  std::vector<std::pair<std::string, std::vector<const TimedRow*>>> variants;
  for (const TimedRow& row : rows) {
    if (row.ladder != problem.ladder || row.problem != problem.id) continue;
    const std::string variant = row.dtype + row.layout;
    if (variants.empty() || variants.back().first != variant) variants.push_back({variant, {}});
    variants.back().second.push_back(&row);
  }
  std::vector<std::string> tables;
  for (const auto& variant : variants) tables.push_back(table_of(problem, variant.second));
  return tables;
}

std::string machine_line(const Run& run) {
  std::string line = text(run.gpu, ", driver ", run.driver, ", CUDA ", run.toolkit);
  if (!run.cudnn.empty()) line += ", cuDNN " + run.cudnn;
  return text(line, ", ", run.date, ", commit ", run.commit);
}

std::string ceilings_line(const Run& run) {
  const auto of = [&](const char* name) {
    const auto found = run.ceilings.find(name);
    return found == run.ceilings.end() ? 0.0 : found->second;
  };
  char line[200];
  std::snprintf(line, sizeof line,
                "Measured ceilings: copy %.2f TB/s (inside of the L2 %.2f), FMA %.1f TFLOP/s, TF32 "
                "%.0f TFLOP/s",
                of("copy_tb_s"), of("copy_l2_tb_s"), of("fma_tflops"), of("tf32_tflops"));
  std::string words = line;
  if (of("fp16_tflops") > 0)  // earlier runs do not have it
    words += text(", fp16 ", std::lround(of("fp16_tflops")), " TFLOP/s");
  return words;
}

}  // namespace convladder::command
