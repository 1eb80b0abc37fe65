#include "command/fuzz.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "command/emulated_device.hpp"
#include "command/files.hpp"
#include "command/fuzz_search.hpp"
#include "command/interrupt.hpp"
#include "command/program.hpp"
#include "command/terminal.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

using Clock = std::chrono::steady_clock;

/// A description of how a process ended, if it did not end normally.
std::string end_of(int status, int limit) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM) return text("does not finish within ", limit, " s");
    return text("terminates the process: ", strsignal(WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == kAllAgree ? "" : text("exit status ", WEXITSTATUS(status));
}

/// Whether another process terminated it, which no rung does.
bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

Where place_named(const std::string& name) {
  return *std::ranges::find(kEverywhere, name, [](Where where) { return name_of(where); });
}

/// Compares a rung on a problem in a new process. Returns what is wrong; empty if nothing is wrong,
/// or for bad input.
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
  if (!chosen_device().empty() && where == name_of(Where::emulated))
    words.insert(words.end(), {"--device", chosen_device()});
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
  std::map<std::string, std::int64_t> problems_of;                 ///< Counts by ladder.
  std::map<std::string, std::map<std::string, std::int64_t>> met;  ///< Counts by rung and choice.
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

void print(const Totals& totals, std::uint64_t seed) {
  for (const auto& [ladder, problems] : totals.problems_of) {
    std::size_t rungs = 0, choices = 0;
    for (const auto& [rung, met] : totals.met) {
      if (rung.find("/" + ladder + "/") == std::string::npos) continue;
      ++rungs;
      choices += met.size();
    }
    std::printf("%s %s problems, %zu rungs with %zu choices\n", left(ladder, 22).c_str(),
                right(text(problems), 7).c_str(), rungs, choices);
  }
  std::printf("%lld problems, %lld runs, %zu failures, seed %llu\n",
              static_cast<long long>(totals.problems), static_cast<long long>(totals.runs),
              totals.failures.size(), static_cast<unsigned long long>(seed));
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
  std::atomic<pid_t> searcher = 0;
  const LastWords interrupted([&] {
    if (searcher != 0) {
      kill(searcher, SIGKILL);
      siginfo_t ended;  // WNOWAIT: the waiting thread must receive the status, too
      waitid(P_PID, static_cast<id_t>(searcher), &ended, WEXITED | WNOWAIT);
    }
    print(totals_of(log), seed);
    std::fflush(stdout);
  });
  for (bool searching = true; searching && Clock::now() < end; ++processes) {
    shared.running[0] = '\0';
    shared.given_up = false;
    std::fflush(stdout);
    const pid_t process = fork();
    if (process < 0) throw BadInput("fuzz: no process can be started");
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(reported([&] {
        search(options, seed + 1'000'003 * processes, end, seconds, failures, log, shared);
        return kAllAgree;
      }));
    }
    searcher = process;
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
    }
    searcher = 0;
    searching = !(WIFEXITED(status) && WEXITSTATUS(status) == kAllAgree);
    if (!searching || (shared.given_up && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM))
      break;
    if (shared.running[0] == '\0')  // the process did not start: it reported bad input
      return WIFEXITED(status) ? WEXITSTATUS(status) : kProgramError;
    const Json running = Json::parse(std::string(shared.running));
    const std::string rung = running.at("rung"), where = running.at("where");
    ++failures[rung];
    const FaultFinder fault_on = [&](const DrawnProblem& problem) {
      return fault_in_new_process(problem, rung, where, limit);
    };
    Failure failure{problem_in(running), fault_on(problem_in(running))};
    if (failure.message.empty() && was_killed(status)) {
      --failures[rung];
      std::printf("killed, probably because memory ran out; it agrees when run alone: %s\n",
                  command_line(failure.problem, rung, place_named(where)).c_str());
      continue;
    }
    if (failure.message.empty()) {
      failure.message = end_of(status, limit) + ", but not when it is run again alone";
    } else {
      failure = shrunk(std::move(failure), fault_on, limit);
    }
    const Json entry = entry_of(failure, rung, place_named(where));
    log.add({{"failure", entry}});
    std::printf("%s\n", lines_of(entry).c_str());
  }
  const Totals totals = totals_of(log);
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  if (file) file->write(json_of(totals, took, seed));
  print(totals, seed);
  return totals.failures.empty() ? kAllAgree : kSomeDiffer;
}

}  // namespace convladder::command
