#include "command/fuzz.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "command/drawn_problem.hpp"
#include "command/files.hpp"
#include "command/program.hpp"
#include "command/progress.hpp"
#include "command/report.hpp"
#include "command/selection.hpp"
#include "command/terminal.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr double kWorkOnCpu = 4e5;  // of a problem, as work_of() counts
constexpr double kWorkOnGpu = 3e7;
constexpr int kVariations = 6;     // of each problem that is drawn
constexpr int kMostDraws = 60;     // until a rung takes one
constexpr int kMeetings = 8;       // of each boundary between two choices
constexpr int kMostFailures = 3;   // of a rung; then it has shown enough
constexpr int kMostTrials = 1500;  // to make a failing problem simpler
constexpr int kSecondsARun = 60;   // a rung that runs longer than that does not end
constexpr int kRunsToShrink = 10;  // to make a problem simpler takes as long as so many, at most

/// What the process that compares and the one that waits for it both see.
struct Shared {
  char
      running[8192];  ///< Which problem runs, as JSON: what a process leaves that did not end well.
};

/// What happened, line by line, so that nothing is lost with a process.
class Log {
 public:
  Log() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw BadInput("fuzz: no temporary file can be opened");
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { std::fclose(file_); }

  void add(const Json& entry) {
    const std::string line = entry.dump() + "\n";
    std::fseek(file_, 0, SEEK_END);
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

  void for_each(const std::function<void(const Json&)>& visit) {
    std::rewind(file_);
    std::string line;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      if (c != '\n') {
        line.push_back(static_cast<char>(c));
        continue;
      }
      visit(Json::parse(line));
      line.clear();
    }
  }

 private:
  std::FILE* file_;
};

Json json_of(const DrawnProblem& problem) {
  return {{"ladder", problem.ladder}, {"options", problem.options}};
}

DrawnProblem problem_in(const Json& json) { return {json.at("ladder"), json.at("options")}; }

/// The task of a drawn problem; empty if there is none, or it would take too long.
std::optional<Task> task_of(const DrawnProblem& drawn, double most_work) {
  try {
    std::vector<Task> tasks = read_tasks(options_of(drawn));
    if (tasks.size() != 1 || work_of(tasks.front().problem) > most_work) return {};
    return std::move(tasks.front());
  } catch (const BadInput&) {
    return {};
  }
}

/// A reason without its numbers, which are the problem's.
std::string without_numbers(std::string reason) {
  std::erase_if(reason, [](char c) { return c >= '0' && c <= '9'; });
  return reason;
}

bool takes(const Seat& seat, const Problem& problem) {
  return !seat.rung->code_at(seat.where)->supports(problem);
}

/// Tells what a rung would do with a problem.
class Choices {
 public:
  /// In words: what it says of itself, and its tile, if it is one of few.
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
    return words.empty() ? "does the same for all" : words;
  }

 private:
  static constexpr std::size_t kFewTiles = 8;  // more, or odd ones: they follow the problem

  std::map<std::string, std::set<std::string>> tiles_;  ///< That were seen, by rung.
};

/// A problem with the right answer, and how to run rungs on it.
class Trial {
 public:
  Trial(const DrawnProblem& drawn, Task task)
      : options_(options_of(drawn)),
        prepared_(prepare(std::move(task), options_.data, options_.seed)),
        comparison_(*prepared_.task.ladder, prepared_.task.problem, prepared_.data,
                    std::move(prepared_.inputs)) {}

  /// What is wrong with the rung; empty: nothing. @throws BadInput for impossible conditions
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

/// What is wrong with a rung on a problem; empty: nothing, or the problem is none.
using FaultFinder = std::function<std::string(const DrawnProblem&)>;

struct Failure {
  DrawnProblem problem;
  std::string message;
  bool shrunk = false;  ///< Nothing simpler fails, as far as there was time to try.
};

/// Makes the problem simpler for as long as the rung fails on it, whatever the fault is then.
/// @param limit seconds that a run may take
Failure shrunk(Failure failure, const FaultFinder& fault_on, int limit) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(kRunsToShrink * limit);
  int trials = 0;
  for (bool simpler_fails = true; simpler_fails;) {
    simpler_fails = false;
    for (const DrawnProblem& candidate : simpler(failure.problem)) {
      if (++trials > kMostTrials || Clock::now() > end) return failure;
      std::string message = fault_on(candidate);
      if (message.empty()) continue;
      failure.problem = candidate;
      failure.message = std::move(message);
      simpler_fails = true;
      break;
    }
  }
  failure.shrunk = true;
  return failure;
}

Json entry_of(const Failure& failure, const std::string& rung, Where where) {
  return {
      {"ladder", failure.problem.ladder}, {"rung", rung},
      {"where", name_of(where)},          {"command", command_line(failure.problem, rung, where)},
      {"shrunk", failure.shrunk},         {"message", failure.message}};
}

std::string lines_of(const Json& failure) {
  return text(styled(Style::bad, "FAILS "), failure.at("rung").get<std::string>(), " (",
              failure.at("where").get<std::string>(),
              "): ", printable(failure.at("message").get<std::string>()), "\n  ",
              failure.at("command").get<std::string>());
}

/// How many failures each rung had, by its name.
using FailureCounts = std::map<std::string, int>;

/// The search itself, in a process of its own.
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
    if (chosen_.empty()) throw BadInput("fuzz: none of the chosen rungs runs here");
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

  /// A problem, and those on both sides of what the rungs choose near it.
  void explore(Chosen& chosen) {
    std::erase_if(chosen.seats,
                  [&](const Seat& seat) { return failures_[seat.rung->name] >= kMostFailures; });
    if (chosen.seats.empty()) return;
    const double most_work = on_gpu(chosen.seats) ? kWorkOnGpu : kWorkOnCpu;
    // One that the rung takes which has run least: some take few problems.
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

  /// Where a rung chooses differently for two problems: runs it on both sides of the boundary.
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

  /// Runs the rungs on a problem that they take.
  void compare(const DrawnProblem& drawn, Task task, const std::vector<Seat>& seats) {
    std::vector<Seat> willing;
    for (const Seat& seat : seats)
      if (takes(seat, task.problem)) willing.push_back(seat);
    if (willing.empty()) return;
    std::unique_ptr<Trial> trial;
    try {
      trial = std::make_unique<Trial>(drawn, std::move(task));
    } catch (const BadInput&) {
      return;  // too large for this machine
    }
    ++problems_;
    log_.add({{"problem", drawn.ladder}});
    progress_->begin(text(drawn.ladder, ", problem ", problems_));
    for (const Seat& seat : willing) {
      if (failures_[seat.rung->name] >= kMostFailures) continue;
      leave_behind(drawn, seat);
      alarm(static_cast<unsigned>(limit_));
      std::string message = trial->fault_of(seat);
      alarm(0);
      ++runs_[seat.rung->name];
      log_.add({{"run", {seat.rung->name, choices_.of(seat, trial->problem())}}});
      if (message.empty()) continue;
      // After an error of a GPU its process can do nothing more: the one that waits looks further.
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

  /// For the process that waits, if this one ends now.
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
  std::map<std::string, int> boundaries_;     // how often each was met
  std::map<std::string, std::int64_t> runs_;  // of each rung
  Progress* progress_ = nullptr;
  const int limit_ = options_.limit.value_or(kSecondsARun);
  std::int64_t problems_ = 0, steps_ = 0;
};

/// How a process ended, if it did not end well.
std::string end_of(int status, int limit) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM) return text("does not end within ", limit, " s");
    return text("ends the process: ", strsignal(WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == kAllAgree ? "" : text("exit status ", WEXITSTATUS(status));
}

/// Compares a rung on a problem in a new process. What is wrong; empty: nothing, or bad input.
std::string fault_in_new_process(const DrawnProblem& problem, const std::string& rung,
                                 const std::string& where, int limit) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / text("convladder-fuzz-", getpid(), ".json");
  const Unfinished report(file);
  std::vector<std::string> words = {"convladder", "compare", problem.ladder, "--rung",     rung,
                                    "--backend",  where,     "--json",       file.string()};
  for (const auto& [name, value] : problem.options) {
    words.push_back("--" + name);
    if (!value.empty()) words.push_back(value);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw BadInput(text("fuzz: no process can be started: ", std::strerror(error)));
  int status = 0;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(limit);
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (Clock::now() > end) kill(process, SIGALRM);
    usleep(2000);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kBadInput) return "";
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSomeDiffer) {
    const Json json = Json::parse(std::ifstream(file), nullptr, false);
    if (!json.is_discarded()) return json["ladders"][0]["rungs"][0]["reason"];
  }
  return end_of(status, limit);
}

struct Totals {
  std::int64_t problems = 0, runs = 0;
  std::map<std::string, std::int64_t> problems_of;                 ///< By ladder.
  std::map<std::string, std::map<std::string, std::int64_t>> met;  ///< By rung and choice.
  Json failures = Json::array();
};

Totals totals_of(Log& log) {
  Totals totals;
  log.for_each([&](const Json& entry) {
    if (entry.contains("problem")) {
      ++totals.problems;
      ++totals.problems_of[entry["problem"]];
    } else if (entry.contains("run")) {
      ++totals.runs;
      ++totals.met[entry["run"][0]][entry["run"][1]];
    } else {
      totals.failures.push_back(entry.at("failure"));
    }
  });
  return totals;
}

void print(const Totals& totals) {
  for (const auto& [ladder, problems] : totals.problems_of) {
    std::size_t rungs = 0, choices = 0;
    for (const auto& [rung, met] : totals.met) {
      if (rung.find("/" + ladder + "/") == std::string::npos) continue;
      ++rungs;
      choices += met.size();
    }
    std::printf("%s %s problems, %zu rungs, which made %zu choices\n", left(ladder, 22).c_str(),
                right(text(problems), 7).c_str(), rungs, choices);
  }
}

std::string json_of(const Totals& totals, double seconds, std::uint64_t seed) {
  Json json = {{"seed", seed},        {"seconds", seconds},          {"problems", totals.problems},
               {"runs", totals.runs}, {"failures", totals.failures}, {"choices", Json::array()}};
  for (const auto& [rung, choices] : totals.met) {
    for (const auto& [choice, met] : choices)
      json["choices"].push_back({{"rung", rung}, {"choice", choice}, {"met", met}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int convladder_fuzz(const Options& options) {
  std::optional<OutputFile> file;
  if (options.json) file.emplace("json", *options.json);
  const std::uint64_t seed = options.seed_given ? options.seed : std::random_device{}() % 1'000'000;
  const int limit = options.limit.value_or(kSecondsARun);
  const int seconds = options.seconds.value_or(options.most_problems ? 24 * 3600 : 60);
  const Clock::time_point start = Clock::now(), end = start + std::chrono::seconds(seconds);
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw BadInput("fuzz: no memory can be shared with another process");
  auto& shared = *static_cast<Shared*>(memory);
  Log log;
  FailureCounts failures;
  std::uint64_t processes = 0;
  for (bool searching = true; searching && Clock::now() < end; ++processes) {
    shared.running[0] = '\0';
    std::fflush(stdout);
    const pid_t process = fork();
    if (process < 0) throw BadInput("fuzz: no process can be started");
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(reported([&] {
        Search search(options, seed + 1'000'003 * processes, end, failures, log, shared);
        Progress progress(static_cast<std::size_t>(seconds));
        search.run(progress);
        return kAllAgree;
      }));
    }
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
    }
    searching = !(WIFEXITED(status) && WEXITSTATUS(status) == kAllAgree);
    if (!searching) break;
    if (shared.running[0] == '\0')  // it did not begin: bad input, of which it told
      return WIFEXITED(status) ? WEXITSTATUS(status) : kProgramError;
    const Json running = Json::parse(std::string(shared.running));
    const std::string rung = running.at("rung"), where = running.at("where");
    ++failures[rung];
    const FaultFinder fault_on = [&](const DrawnProblem& problem) {
      return fault_in_new_process(problem, rung, where, limit);
    };
    Failure failure{problem_in(running), fault_on(problem_in(running))};
    if (failure.message.empty()) {
      failure.message = end_of(status, limit) + ", but not when it is run again alone";
    } else {
      failure = shrunk(std::move(failure), fault_on, limit);
    }
    const Json entry = entry_of(failure, rung,
                                where == "gpu"   ? Where::gpu
                                : where == "cpu" ? Where::cpu
                                                 : Where::emulated);
    log.add({{"failure", entry}});
    std::printf("%s\n", lines_of(entry).c_str());
  }
  const Totals totals = totals_of(log);
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  if (file) file->write(json_of(totals, took, seed));
  print(totals);
  std::printf("%lld problems, %lld runs, %zu failures, seed %llu\n",
              static_cast<long long>(totals.problems), static_cast<long long>(totals.runs),
              totals.failures.size(), static_cast<unsigned long long>(seed));
  return totals.failures.empty() ? kAllAgree : kSomeDiffer;
}

}  // namespace convladder::command
