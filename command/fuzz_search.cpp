#include "command/fuzz_search.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "command/drawer.hpp"
#include "command/ladders/drawn_ladder.hpp"
#include "command/program.hpp"
#include "command/progress.hpp"
#include "command/report.hpp"
#include "command/selection.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWorkOnCpu = 4e5;  // work of a problem, in units of DrawnLadder::work
constexpr double kWorkOnGpu = 3e7;
constexpr int kVariations = 6;    // attempts for each drawn problem
constexpr int kMostDraws = 60;    // attempts until a rung supports one
constexpr int kMeetings = 8;      // attempts at each boundary between two choices
constexpr int kMostFailures = 3;  // failures of one rung, after which it is skipped

double work_of(const Task& task) { return drawn_ladder(task.ladder->name).work(task.problem); }

/// The task of a drawn problem; empty if it is invalid or would take too long.
std::optional<Task> task_of(const DrawnProblem& drawn, double most_work) {
  try {
    std::vector<Task> tasks = read_tasks(options_of(drawn));
    if (tasks.size() != 1 || work_of(tasks.front()) > most_work) return {};
    return std::move(tasks.front());
  } catch (const BadInput&) {
    return {};
  }
}

/// A reason without the numbers that depend on the problem.
std::string without_numbers(std::string reason) {
  std::erase_if(reason, [](char c) { return c >= '0' && c <= '9'; });
  return reason;
}

bool takes(const Seat& seat, const Problem& problem) {
  return !seat.rung->code_at(seat.where)->supports(problem);
}

/// Determines what a rung would do with a problem.
class Choices {
 public:
  /// The rung's own description of its choice, and its tile if it has few tiles.
  std::string of(const Seat& seat, const Problem& problem) {
    const AnyImplementation& code = *seat.rung->code_at(seat.where);
    if (const Declined declined = code.supports(problem))
      return "declines: " + without_numbers(*declined);
    std::string words = code.choice(problem);
    const OutputTile tile = code.tile(problem);
    std::set<std::string>& tiles = tiles_[seat.rung->name];
    if (tile.rows % 8 == 0 && tile.columns % 8 == 0 && tile.rows != 0 && tiles.size() < kFewTiles) {
      const std::string extents = text("tiles of ", tile.rows, " x ", tile.columns);
      tiles.insert(extents);
      words += (words.empty() ? "" : ", ") + extents;
    }
    return words.empty() ? "makes the same choice for all problems" : words;
  }

 private:
  static constexpr std::size_t kFewTiles = 8;  // more than a few, or irregular ones: they follow
                                               // the problem

  std::map<std::string, std::set<std::string>> tiles_;  ///< Choices that occurred, by rung.
};

/// A problem with its reference result, and the means to run rungs on it.
class Trial {
 public:
  Trial(const DrawnProblem& drawn, Task task)
      : options_(options_of(drawn)),
        prepared_(prepare(std::move(task), options_.data, options_.seed)),
        comparison_(*prepared_.task.ladder, prepared_.task.problem, prepared_.data,
                    std::move(prepared_.inputs)) {}

  /// What is wrong with the rung; empty if nothing is wrong. @throws BadInput for impossible
  /// conditions
  std::string fault_of(const Seat& seat) const {
    const InForce conditions(options_.conditions,
                             prepared_.task.ladder->signature(prepared_.task.problem),
                             options_.seed);
    try {
      const Outcome outcome = comparison_.run(*seat.rung, seat.where, conditions.run_options());
      return outcome.status == Status::differs ? outcome.reason : "";
    } catch (const std::exception& error) {
      return text("throws: ", error.what());
    }
  }

  const Problem& problem() const { return prepared_.task.problem; }

 private:
  Options options_;
  Prepared prepared_;
  Comparison comparison_;
};

class Search {
 public:
  Search(const Options& options, std::uint64_t seed, Clock::time_point end,
         const FailureCounts& failures, Log& log, Shared& shared)
      : options_(options), drawer_(seed), end_(end), failures_(failures), log_(log),
        shared_(shared) {
    std::vector<const Ladder*> ladders;
    for (const Ladder& ladder : convladder::ladders())
      if (!options.ladder || ladder.name == *options.ladder) ladders.push_back(&ladder);
    const Selection selection(options, ladders);
    for (const Ladder* ladder : ladders) {
      std::vector<Seat> seats = selection.seats(*ladder);
      std::erase_if(seats, [](const Seat& seat) { return !can_run(seat); });
      if (!seats.empty()) chosen_.push_back({ladder, std::move(seats)});
    }
    if (chosen_.empty()) throw BadInput("fuzz: none of the selected rungs can run on this machine");
  }

  void run(Progress& progress) {
    progress_ = &progress;
    const std::int64_t rounds = options_.most_problems.value_or(-1);
    for (std::int64_t round = 0; round != rounds; ++round) {
      for (Chosen& chosen : chosen_) {
        if (over()) return;
        explore(chosen);
      }
    }
  }

 private:
  struct Chosen {
    const Ladder* ladder;
    std::vector<Seat> seats;
  };

  bool over() {
    const Clock::time_point now = Clock::now();
    for (; now - start_ >= std::chrono::seconds(steps_ + 1); ++steps_) progress_->step();
    return now >= end_;
  }

  bool on_gpu(const std::vector<Seat>& seats) const {
    return std::ranges::all_of(seats, [](const Seat& seat) { return seat.where == Where::gpu; });
  }

  /// Runs a problem, and the problems on both sides of the rungs' choices near it.
  void explore(Chosen& chosen) {
    std::erase_if(chosen.seats,
                  [&](const Seat& seat) { return failures_[seat.rung->name] >= kMostFailures; });
    if (chosen.seats.empty()) return;
    const double most_work = on_gpu(chosen.seats) ? kWorkOnGpu : kWorkOnCpu;
    // A problem that the rung with the fewest runs supports: some rungs support few problems.
    const Seat& rarest = *std::ranges::min_element(
        chosen.seats, {}, [&](const Seat& seat) { return runs_[seat.rung->name]; });
    DrawnProblem drawn;
    std::optional<Task> task;
    for (int tries = 0; tries < kMostDraws; ++tries) {
      DrawnProblem candidate = drawer_.draw(chosen.ladder->name, most_work);
      std::optional<Task> valid = task_of(candidate, most_work);
      if (!valid) continue;
      drawn = std::move(candidate);
      task = std::move(valid);
      if (takes(rarest, task->problem)) break;
    }
    if (!task) return;
    std::vector<int> tiles;
    for (const Seat& seat : chosen.seats) {
      if (!takes(seat, task->problem)) continue;
      const OutputTile tile = seat.rung->code_at(seat.where)->tile(task->problem);
      for (const int extent : {tile.rows, tile.columns})
        if (extent > 1) tiles.push_back(extent);
    }
    drawer_.set_tiles(std::move(tiles));
    const Problem problem = task->problem;
    if (drawer_.one_in(6)) drawer_.offset_one(drawn, chosen.ladder->signature(problem));
    compare(drawn, std::move(*task), chosen.seats);
    for (int i = 0; i < kVariations && !over(); ++i) {
      const DrawnProblem varied = drawer_.varied(drawn);
      const std::optional<Task> other = task_of(varied, most_work);
      if (other) meet_boundaries(drawn, problem, varied, other->problem, chosen.seats, most_work);
    }
  }

  /// If a rung chooses differently for two problems, runs it on both sides of the boundary.
  void meet_boundaries(const DrawnProblem& a, const Problem& problem_a, const DrawnProblem& b,
                       const Problem& problem_b, const std::vector<Seat>& seats, double most_work) {
    for (const Seat& seat : seats) {
      std::string choice_a = choices_.of(seat, problem_a), choice_b = choices_.of(seat, problem_b);
      if (choice_a == choice_b) continue;
      const std::optional<OneDifference> difference = one_difference(a, b);
      const std::string what = difference ? difference->option : "several";
      int& met = boundaries_[text(seat.rung->name, '\n', choice_a, '\n', choice_b, '\n', what)];
      if (met++ >= kMeetings) continue;
      DrawnProblem left = a, right = b;
      if (difference) {
        int low = difference->a, high = difference->b;
        while (std::abs(high - low) > 1) {
          const int middle = low + (high - low) / 2;
          const DrawnProblem between = with_value(a, *difference, middle);
          const std::optional<Task> task = task_of(between, most_work);
          if (!task) break;
          const std::string choice = choices_.of(seat, task->problem);
          (choice == choice_a ? low : high) = middle;
        }
        left = with_value(a, *difference, low), right = with_value(a, *difference, high);
      }
      for (const DrawnProblem& side : {left, right}) {
        std::optional<Task> task = task_of(side, most_work);
        if (task) compare(side, std::move(*task), {seat});
      }
    }
  }

  /// Runs the rungs on a problem that they support.
  void compare(const DrawnProblem& drawn, Task task, const std::vector<Seat>& seats) {
    std::vector<Seat> willing;
    for (const Seat& seat : seats)
      if (takes(seat, task.problem)) willing.push_back(seat);
    if (willing.empty()) return;
    std::unique_ptr<Trial> trial;
    try {
      trial = std::make_unique<Trial>(drawn, std::move(task));
    } catch (const BadInput&) {
      return;  // too large for the memory of this machine
    }
    ++problems_;
    log_.add({{"problem", drawn.ladder}});
    progress_->begin(text(drawn.ladder, ", problem ", problems_));
    for (const Seat& seat : willing) {
      if (over()) return;
      if (failures_[seat.rung->name] >= kMostFailures) continue;
      leave_behind(drawn, seat);
      const auto left = std::chrono::ceil<std::chrono::seconds>(end_ - Clock::now()).count();
      shared_.given_up = left + kSecondsBeyond < limit_;
      alarm(static_cast<unsigned>(shared_.given_up ? left + kSecondsBeyond : limit_));
      std::string message = trial->fault_of(seat);
      alarm(0);
      shared_.given_up = false;
      ++runs_[seat.rung->name];
      log_.add({{"run", {seat.rung->name, choices_.of(seat, trial->problem())}}});
      if (message.empty()) continue;
      // After a GPU error the process cannot use the GPU any more; the waiting process continues
      // the search.
      if (seat.where == Where::gpu) _exit(kSomeDiffer);
      ++failures_[seat.rung->name];
      const FaultFinder fault_on = [&](const DrawnProblem& candidate) -> std::string {
        std::optional<Task> simpler = task_of(candidate, kWorkOnGpu);
        if (!simpler || !takes(seat, simpler->problem)) return "";
        leave_behind(candidate, seat);
        alarm(static_cast<unsigned>(limit_));
        std::string fault;
        try {
          fault = Trial(candidate, std::move(*simpler)).fault_of(seat);
        } catch (const BadInput&) {
        }
        alarm(0);
        return fault;
      };
      const Json entry = entry_of(shrunk({drawn, std::move(message)}, fault_on, limit_),
                                  seat.rung->name, seat.where);
      log_.add({{"failure", entry}});
      progress_->line(lines_of(entry));
    }
  }

  /// Tells the waiting process, in case this process ends now.
  void leave_behind(const DrawnProblem& drawn, const Seat& seat) {
    Json json = json_of(drawn);
    json["rung"] = seat.rung->name;
    json["where"] = name_of(seat.where);
    const std::string line = json.dump();
    if (line.size() < sizeof shared_.running)
      std::memcpy(shared_.running, line.c_str(), line.size() + 1);
  }

  const Options& options_;
  Drawer drawer_;
  const Clock::time_point start_ = Clock::now(), end_;
  FailureCounts failures_;
  Log& log_;
  Shared& shared_;
  std::vector<Chosen> chosen_;
  Choices choices_;
  std::map<std::string, int> boundaries_;     // how often each choice occurred
  std::map<std::string, std::int64_t> runs_;  // by rung
  Progress* progress_ = nullptr;
  const int limit_ = options_.limit.value_or(kSecondsARun);
  std::int64_t problems_ = 0, steps_ = 0;
};

}  // namespace

void search(const Options& options, std::uint64_t seed, Clock::time_point end, int seconds,
            const FailureCounts& failures, Log& log, Shared& shared) {
  Search search(options, seed, end, failures, log, shared);
  Progress progress(static_cast<std::size_t>(seconds));
  search.run(progress);
}

}  // namespace convladder::command
