#include "command/bench.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "benchmarks/runs.hpp"
#include "command/bench_sites.hpp"
#include "command/bench_tables.hpp"
#include "command/files.hpp"
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

/// The problems and CUDA rungs that the options select. @throws BadInput
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
    throw BadInput(text("problem = ", id, ": is not a benchmark problem",
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
    throw BadInput("rung: none of the selected rungs runs on a GPU, and bench measures only there");
  return plans;
}

bool is_chosen(const TimedRow& row, const std::vector<Plan>& plans) {
  return std::any_of(plans.begin(), plans.end(), [&](const Plan& plan) {
    return plan.problem->ladder == row.ladder && plan.problem->id == row.problem &&
           std::any_of(plan.rungs.begin(), plan.rungs.end(),
                       [&](const Rung* rung) { return rung->name == row.rung; });
  });
}

/// The picture beside a file of rows: run.roofline.png and run.roofline.svg beside run.json. No
/// picture is written if the file is a device or a pipe.
class RooflineFile {
 public:
  /// @param ending the ending of the picture's name
  RooflineFile(const std::filesystem::path& json, Convolutions kind, const char* ending)
      : kind_(kind) {
    if (is_standard_output(json)) return;
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

  /// @returns a line with the name of the picture; empty if there is nothing to draw
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

/// Draws the pictures beside a file of rows.
class RooflineFiles {
 public:
  explicit RooflineFiles(const std::filesystem::path& json)
      : files_{RooflineFile(json, Convolutions::dense, ".roofline.png"),
               RooflineFile(json, Convolutions::sparse, ".sparse_roofline.png")} {}

  /// @returns one line for each picture
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

/// The output on a machine without a GPU.
int show_committed(const Options& options, const std::vector<Plan>& plans) {
  std::error_code error;
  if (options.json && !is_standard_output(*options.json) &&
      std::filesystem::is_regular_file(*options.json, error))
    throw BadInput(text("json = ", *options.json,
                        ": the file exists, and without a GPU no measurement can be added to it"));
  std::printf("No GPU (%s): nothing is measured on this machine.\n", why_no_gpu().c_str());
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
    if (run->rows.empty()) std::printf("It contains none of the selected rungs and problems.\n");
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

/// The run in the file, which is continued, or a new run.
Run resumed(const std::string& path) {
  Run now = benchmarks::new_run();
  std::error_code error;
  if (is_standard_output(path) || !std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path) == 0)
    return now;
  const std::vector<std::byte> bytes = read_file("json", path);
  Run earlier;
  try {
    earlier = benchmarks::from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const std::exception&) {
    throw BadInput(text("json = ", path,
                        ": the file exists, but it is not a run of bench that can be continued"));
  }
  const std::string why = benchmarks::why_not_resumed(earlier, now);
  require(why.empty(), "json", path, why);
  earlier.date = now.date;
  earlier.commit = now.commit;
  return earlier;
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
      if (file && !is_standard_output(*options.json)) file->write(benchmarks::to_json(now));
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
