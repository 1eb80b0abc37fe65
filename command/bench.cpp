#include "command/bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "benchmarks/runs.hpp"
#include "command/files.hpp"
#include "command/npy.hpp"
#include "command/png_file.hpp"
#include "command/program.hpp"
#include "command/progress.hpp"
#include "command/report.hpp"
#include "command/roofline.hpp"
#include "command/selection.hpp"
#include "command/table.hpp"
#include "command/terminal.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

using benchmarks::BenchmarkProblem;
using benchmarks::Plan;
using TimedRow = benchmarks::Row;
using benchmarks::Run;

bool asked_for(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

/// The problems and CUDA rungs that the options choose. @throws BadInput
std::vector<Plan> chosen(const Options& options) {
  std::vector<const Ladder*> ladders;
  std::vector<std::string> with_problems, ids;
  for (const BenchmarkProblem& problem : benchmarks::benchmark_problems()) {
    if (with_problems.empty() || with_problems.back() != problem.ladder) {
      with_problems.push_back(problem.ladder);
      if (!options.ladder || *options.ladder == problem.ladder)
        ladders.push_back(&ladder(problem.ladder));
    }
    if (!options.ladder || *options.ladder == problem.ladder) ids.push_back(problem.id);
  }
  if (ladders.empty()) {
    throw BadInput(text("ladder = ", *options.ladder, ": has no benchmark problems; ",
                        joined(with_problems, ", "),
                        " have\nnearest: ", nearest(*options.ladder, with_problems)));
  }
  for (const std::string& id : options.benchmarks) {
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) continue;
    throw BadInput(text("problem = ", id, ": is no benchmark problem",
                        options.ladder ? " of the ladder " + *options.ladder : "",
                        "\nnearest: ", nearest(id, ids)));
  }
  const Selection selection(options, ladders);
  std::vector<Plan> plans;
  for (const BenchmarkProblem& problem : benchmarks::benchmark_problems()) {
    if (options.ladder && *options.ladder != problem.ladder) continue;
    if (!asked_for(options.benchmarks, problem.id)) continue;
    Plan plan{&problem, {}};
    for (const Seat& seat : selection.seats(ladder(problem.ladder))) {
      if (seat.where == Where::gpu) plan.rungs.push_back(seat.rung);
    }
    if (!plan.rungs.empty()) plans.push_back(std::move(plan));
  }
  if (plans.empty())
    throw BadInput("rung: none of the chosen rungs runs on a GPU, where bench measures");
  return plans;
}

bool is_chosen(const TimedRow& row, const std::vector<Plan>& plans) {
  return std::any_of(plans.begin(), plans.end(), [&](const Plan& plan) {
    return plan.problem->ladder == row.ladder && plan.problem->id == row.problem &&
           std::any_of(plan.rungs.begin(), plan.rungs.end(),
                       [&](const Rung* rung) { return rung->name == row.rung; });
  });
}

std::string microseconds(double us) { return time_text(us / 1000); }

std::string percent(double share) { return text(static_cast<int>(std::lround(100 * share)), " %"); }

/// "1.23 x winograd_nonfused": how many times faster than the best baseline of its kind.
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
    const TimedRow* row = nullptr;  // of a rung, preferably warm
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

/// The tables of a problem: one for each dtype and layout.
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
  if (of("fp16_tflops") > 0)  // earlier runs have not
    words += text(", fp16 ", std::lround(of("fp16_tflops")), " TFLOP/s");
  return words;
}

/// A picture beside a file of rows: run.roofline.png and run.roofline.svg beside run.json. None
/// beside a device or a pipe.
class RooflineFile {
 public:
  /// @param ending of its name
  RooflineFile(const std::filesystem::path& json, Convolutions kind, const char* ending)
      : kind_(kind) {
    std::error_code error;
    const auto type = std::filesystem::status(json, error).type();
    if (type != std::filesystem::file_type::not_found &&
        type != std::filesystem::file_type::regular) {
      return;
    }
    path_ = json;
    path_.replace_extension(ending);
    file_.emplace("json", path_);
    std::filesystem::path svg = path_;
    svg_.emplace("json", svg.replace_extension(".svg"));
  }

  /// @returns a line that says where it is; nothing if there is nothing to draw
  std::optional<std::string> write(const Run& run) const {
    const std::optional<Drawing> drawing = roofline_picture(run, kind_);
    if (!file_ || !drawing) return std::nullopt;
    const std::vector<std::byte> png = drawing->png();
    file_->write({reinterpret_cast<const char*>(png.data()), png.size()});
    svg_->write(drawing->svg());
    return "Roofline: " + printable(path_.string());
  }

 private:
  Convolutions kind_;
  std::filesystem::path path_;
  std::optional<OutputFile> file_, svg_;
};

/// The pictures beside a file of rows.
class RooflineFiles {
 public:
  explicit RooflineFiles(const std::filesystem::path& json)
      : files_{RooflineFile(json, Convolutions::dense, ".roofline.png"),
               RooflineFile(json, Convolutions::sparse, ".sparse_roofline.png")} {}

  /// @returns a line for each that was drawn
  std::vector<std::string> write(const Run& run) const {
    std::vector<std::string> lines;
    for (const RooflineFile& file : files_) {
      if (const auto line = file.write(run)) lines.push_back(*line);
    }
    return lines;
  }

 private:
  std::array<RooflineFile, 2> files_;
};

/// What a machine without a GPU has to show.
int show_committed(const Options& options, const std::vector<Plan>& plans) {
  std::error_code error;
  if (options.json && std::filesystem::is_regular_file(*options.json, error))
    throw BadInput(text("json = ", *options.json,
                        ": is there already, and without a GPU nothing can be added to it"));
  std::printf("No GPU (%s): nothing is measured here.\n", why_no_gpu().c_str());
  std::optional<Run> run;
  const std::filesystem::path folder =
      std::filesystem::path(CONVLADDER_SOURCE_DIR) / "benchmarks" / "results";
  try {
    run = benchmarks::newest_run(folder);
  } catch (const std::exception& broken) {
    throw BadInput(text("benchmarks/results: ", broken.what()));
  }
  if (!run) {
    std::printf("No run has been committed yet: benchmarks/results holds none.\n");
  } else {
    std::erase_if(run->rows, [&](const TimedRow& row) { return !is_chosen(row, plans); });
    std::printf("The newest committed run: %s\n%s\n", machine_line(*run).c_str(),
                ceilings_line(*run).c_str());
    for (const Plan& plan : plans) {
      for (const std::string& table : tables_of(*plan.problem, run->rows))
        std::printf("\n%s", table.c_str());
    }
    if (run->rows.empty()) std::printf("It has none of the rungs and problems asked for.\n");
    if (options.json) {
      const OutputFile file("json", *options.json);
      const RooflineFiles rooflines(*options.json);
      file.write(benchmarks::to_json(*run));
      for (const std::string& line : rooflines.write(*run)) std::printf("\n%s\n", line.c_str());
    }
  }
  if (!gpu_required()) return kAllAgree;
  std::fprintf(stderr, "convladder: CONVLADDER_REQUIRE_GPU=1, but there is no GPU: %s\n",
               why_no_gpu().c_str());
  return kSomeDiffer;
}

/// The run in the file, to go on with, or a new one.
Run resumed(const std::string& path) {
  Run now = benchmarks::new_run();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path) == 0)
    return now;
  const std::vector<std::byte> bytes = read_file("json", path);
  Run earlier;
  try {
    earlier = benchmarks::from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const std::exception&) {
    throw BadInput(text("json = ", path, ": is there, but no run of bench to go on with"));
  }
  const std::string why = benchmarks::why_not_resumed(earlier, now);
  require(why.empty(), "json", path, why);
  earlier.date = now.date;
  earlier.commit = now.commit;
  return earlier;
}

/// A sparse problem for other programs.
nlohmann::ordered_json as_json(const BenchmarkProblem& problem, const RulebookProblem& book) {
  const auto axes = [&](const PerAxis& values) {
    return std::vector<int>(values.value, values.value + book.ndim);
  };
  nlohmann::ordered_json json = {{"ladder", problem.ladder},    {"id", problem.id},
                                 {"sites", problem.sites},      {"batch", book.batch},
                                 {"shape", axes(book.shape)},   {"mode", name_of(book.mode)},
                                 {"kernel", axes(book.kernel)}, {"stride", axes(book.stride)},
                                 {"pad", axes(book.pad)},       {"dilation", axes(book.dilation)}};
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem.problem)) {
    json["cin"] = conv->Cin;
    json["cout"] = conv->Cout;
    json["bias"] = conv->bias;
    json["activation"] = name_of(conv->activation);
  } else if (const auto* pool = std::get_if<SparsePoolProblem>(&problem.problem)) {
    json["cin"] = pool->C;
  } else if (const auto* dense = std::get_if<SparseToDenseProblem>(&problem.problem)) {
    json["cin"] = dense->C;
  } else {
    json["form"] = name_of(book.form);
  }
  // More would take long to make.
  constexpr int kMostCounted = 1'000'000;
  if (book.sites <= kMostCounted) {
    const Rulebook& rulebook = benchmarks::rulebook_of(problem);
    json["outputs"] = rulebook.M;
    json["pairs"] = rulebook.pairs.shape()[0];
  }
  return json;
}

/// problems.json, and a file of coords for each kind of sites.
int write_sites(const std::string& path, const std::vector<Plan>& plans) {
  OutputFolder folder("export-sites", path);
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  std::set<std::string> written;
  for (const Plan& plan : plans) {
    const BenchmarkProblem& problem = *plan.problem;
    if (problem.sites.empty()) continue;
    problems.push_back(as_json(problem, *benchmarks::book_of(problem.problem)));
    if (written.insert(problem.sites).second) {
      write_bytes(folder.parameter(), folder.stage(problem.sites + ".npy"),
                  npy_bytes(benchmarks::sites_of(problem)));
    }
  }
  if (written.empty()) throw BadInput("export-sites: none of the chosen problems is sparse");
  const std::string text = problems.dump(1) + "\n";
  write_bytes(folder.parameter(), folder.stage("problems.json"),
              {reinterpret_cast<const std::byte*>(text.data()), text.size()});
  folder.commit();
  std::printf("%zu problems over %zu sets of sites: %s\n", problems.size(), written.size(),
              printable(path).c_str());
  return kAllAgree;
}

}  // namespace

int convladder_bench(const Options& options) {
  const std::vector<Plan> plans = chosen(options);
  if (options.export_sites) return write_sites(*options.export_sites, plans);
  if (device_at(Where::gpu) == nullptr) return show_committed(options, plans);

  std::optional<OutputFile> file;
  std::optional<RooflineFiles> rooflines;
  if (options.json) {
    file.emplace("json", *options.json);
    rooflines.emplace(*options.json);
  }
  Run run = options.json ? resumed(*options.json) : benchmarks::new_run();
  bool right = true;
  {
    Progress progress(plans.size());
    progress.line(machine_line(run));
    benchmarks::Watcher watcher;
    const Plan* current = nullptr;
    watcher.begin = [&](const Plan& plan) {
      if (current != nullptr) progress.step();
      current = &plan;
      progress.begin(plan.problem->ladder + " " + plan.problem->id);
    };
    watcher.timed = [&](const std::vector<TimedRow>& rows) {
      for (const std::string& table : tables_of(*current->problem, rows))
        progress.line("\n" + table.substr(0, table.size() - 1));
    };
    watcher.note = [&](const std::string& what) {
      progress.line(styled(Style::dim, "note: " + printable(what)));
    };
    watcher.differs = [&](const std::string& what) {
      progress.line(styled(Style::bad, "differs: " + printable(what)));
    };
    watcher.save = [&](const Run& now) {
      if (file) file->write(benchmarks::to_json(now));
    };
    right = benchmarks::measure(run, plans, watcher);
    if (file) file->write(benchmarks::to_json(run));
    progress.line("\n" + ceilings_line(run));
    if (rooflines) {
      for (const std::string& line : rooflines->write(run)) progress.line(line);
    }
  }
  return right ? kAllAgree : kSomeDiffer;
}

}  // namespace convladder::command
