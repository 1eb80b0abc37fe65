#include "command/fuzz_failures.hpp"

#include <chrono>

#include "command/terminal.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostTrials = 1500;  // seconds to simplify a failing problem
constexpr int kRunsToShrink = 10;  // simplifying takes at most this many runs

}  // namespace

Log::Log() : file_(std::tmpfile()) {
  if (file_ == nullptr) throw BadInput("fuzz: no temporary file can be opened");
}

void Log::add(const Json& entry) {
  const std::string line = entry.dump() + "\n";
  std::fseek(file_, 0, SEEK_END);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);
}

void Log::for_each(const std::function<void(const Json&)>& visit) {
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

Json json_of(const DrawnProblem& problem) {
  return {{"ladder", problem.ladder}, {"options", problem.options}};
}

DrawnProblem problem_in(const Json& json) { return {json.at("ladder"), json.at("options")}; }

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

}  // namespace convladder::command
