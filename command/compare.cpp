#include "command/compare.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cuda_on_cpu/watchdog.hpp>
#include <utility>

#include "command/emulated_device.hpp"
#include "command/ladders/ladder_command.hpp"
#include "command/save.hpp"
#include "command/table.hpp"
#include "command/terminal.hpp"
#include "ladders/best_rung.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

constexpr int kLimit = 20;  // seconds per rung, without --limit

/// The part that the titles of several tile_map problems share, or the title of one problem.
std::string title_of(const std::vector<Prepared>& problems) {
  const std::string& title = problems.front().task.title;
  if (problems.size() == 1) return title;
  return text(title.substr(title.find(", ") + 2), ", ", problems.size(), " maps");
}

/// The name of a task in a table of several tasks.
std::string name_among(const Task& task) {
  const LadderCommand& command = command_of(task.ladder->name);
  return command.name_among ? command.name_among(task.problem) : task.title;
}

/// The progress of an emulated kernel.
std::string blocks_of_launch() {
  const cuda_on_cpu::control::LaunchProgress now = cuda_on_cpu::control::launch_progress();
  return now.blocks == 0 ? "" : text("block ", now.begun, " of ", now.blocks);
}

/// Shows progress where no count exists: the elapsed time and the expected time.
std::function<std::string()> time_against(double expected) {
  return [expected, start = std::chrono::steady_clock::now()] {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (time.count() < 1) return std::string();
    return text(std::floor(time.count()), " s of about ", std::ceil(expected), " s");
  };
}

}  // namespace

std::size_t steps_of(const std::vector<Seat>& seats, std::size_t problems) {
  return static_cast<std::size_t>(std::count_if(seats.begin(), seats.end(), can_run)) * problems;
}

Outputs open_outputs(const Options& options, const std::string& default_folder) {
  Outputs outputs;
  const std::string folder = options.save.value_or(default_folder);
  if (options.save || !folder.empty())
    outputs.folder = std::make_unique<OutputFolder>("save", folder);
  if (options.json) outputs.json.emplace("json", *options.json, options.save.value_or(""));
  return outputs;
}

std::vector<Report> run_and_print(std::vector<Prepared> problems, const std::vector<Seat>& seats,
                                  bool keep_outputs, Progress& progress,
                                  const RunOptions& run_options) {
  const Ladder& ladder = *problems.front().task.ladder;
  const bool one = problems.size() == 1;
  const Table table(seats);
  // Printed with the first rung: the reference may reject the numbers, and then the error must be
  // printed alone.
  std::string head = title_lines(ladder, title_of(problems), problems.front().data) + "\n";
  for (const Prepared& problem : problems) {
    for (const std::string& note : problem.task.notes)
      head += styled(Style::warning, "note: " + printable(note)) + "\n";
  }
  head += "\n" + table.header();

  std::vector<Report> reports;
  std::vector<std::string> names;
  for (Prepared& problem : problems) {
    names.push_back(name_among(problem.task));
    Observer observer;
    observer.start = [&](const Prepared& now, double seconds) {
      progress.begin(ladder.name + " reference: " + now.task.title, time_against(seconds));
    };
    const Problem of_rungs = problem.task.problem;
    observer.begin = [&](const Seat& seat) {
      if (!head.empty()) progress.line(std::exchange(head, ""));
      const double seconds =
          slowness_of_this_machine() * expected_seconds(ladder, *seat.rung, of_rungs).value_or(0);
      progress.begin(seat.rung->name + " " + name_of(seat.where),
                     seat.where == Where::emulated ? blocks_of_launch : time_against(seconds));
    };
    observer.end = [&](const Row& row, const std::vector<Row>& before) {
      if (row.outcome.status != Status::skipped) progress.step();
      const std::string line = one ? table.row(row, before) : "";
      if (!line.empty()) progress.line(line);
    };
    reports.push_back(run(std::move(problem), seats, keep_outputs, observer, run_options));
  }
  const Report& whole = one ? reports.front() : merged(reports, names);
  if (!one) {
    std::vector<Row> before;
    for (const Row& row : whole.rows) {
      const std::string line = table.row(row, before);
      if (!line.empty()) progress.line(line);
      before.push_back(row);
    }
  }
  for (const std::string& below : {table.skipped(whole.rows), table.footnote(whole.rows)})
    if (!below.empty()) progress.line(below);
  const LadderCommand& command = command_of(ladder.name);
  const bool compared =
      std::ranges::none_of(reports, &std::vector<std::int32_t>::empty, &Report::units);
  if (command.below_table && compared) progress.line("\n" + command.below_table(reports));
  return reports;
}

int compare(const Options& options) {
  const Ladder& ladder = convladder::ladder(*options.ladder);
  const Selection selection(options, {&ladder});
  const std::vector<Seat> seats = selection.seats(ladder);
  Outputs outputs = open_outputs(options);
  if (outputs.folder) check_folders(*outputs.folder, ladder, seats);
  std::vector<Prepared> problems;
  for (Task& task : read_tasks(options)) {
    problems.push_back(prepare(std::move(task), options.data, options.seed));
  }

  // All problems of a ladder have the same arrays.
  const InForce conditions(options.conditions, ladder.signature(problems.front().task.problem),
                           options.seed);
  std::vector<Report> reports;
  {
    Progress progress(steps_of(seats, problems.size()));
    RunOptions run_options = conditions.run_options();
    run_options.limit = options.limit.value_or(kLimit);
    reports =
        run_and_print(std::move(problems), seats, outputs.folder != nullptr, progress, run_options);
  }
  if (outputs.folder) {
    for (const Report& report : reports) stage_outputs(*outputs.folder, report);
    outputs.folder->commit();
  }
  if (outputs.json) outputs.json->write(compare_json(reports));
  std::printf("\n%s\n", tally(reports).c_str());
  if (const std::string line = device_line(reports); !line.empty())
    std::printf("%s\n", line.c_str());
  return status_of(reports);
}

}  // namespace convladder::command
