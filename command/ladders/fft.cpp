#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"

namespace convladder::command {
namespace {

constexpr FftProblem kFftExample = {.N = 64, .L = 256};

/// From --n and --length, or the array x.
std::vector<Task> read_fft(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which takes notes
  parameters.require_only(ladder.name, {"n", "length", "direction", "ring", "x"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Extents extents;
  for (const char* name : {"n", "length"}) extents.tell_option(parameters, name);
  if (parameters.given("x")) {
    const Array& x =
        task.given.emplace("x", *parameters.array("x", {"[n][length][2]"})).first->second;
    const std::string source = parameters.source("x", x.shape());
    extents.tell("n", x.shape()[0], source);
    extents.tell("length", x.shape()[1], source);
  }
  FftProblem problem{.N = extents.value("n", kFftExample.N),
                     .L = extents.value("length", kFftExample.L)};
  if (parameters.word("direction", {"forward", "inverse"}) == "inverse")
    problem.direction = FftDirection::inverse;
  if (parameters.word("ring", {"complex", "mersenne"}) == "mersenne")
    problem.ring = FftRing::mersenne;
  task.problem = problem = validated(problem);
  task.title = describe(problem);
  task.notes = parameters.notes();
  return {std::move(task)};
}

std::string fft_in_code(const FftProblem& p) {
  return text("FftProblem{.N = ", p.N, ", .L = ", p.L,
              ", .direction = FftDirection::", name_of(p.direction),
              ", .ring = FftRing::", name_of(p.ring), "}");
}

}  // namespace

LadderCommand fft_command() {
  return {.read = read_fft, .in_code = code_of<FftProblem>(fft_in_code)};
}

}  // namespace convladder::command
