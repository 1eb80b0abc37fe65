#include <algorithm>

#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "core/error.hpp"
#include "core/fft_to_real.hpp"

namespace convladder::command {
namespace {

constexpr FftProblem kFftExample = {.N = 64, .L = 256};

/// --length: L, or H and L of planes; empty if absent.
std::vector<int> read_length(const Parameters& parameters) {
  std::vector<int> length = parameters.numbers("length");
  require(length.size() <= 2, "length", joined(length, ","), "has more than two axes: L, or H,L");
  for (const int points : length) {
    require(points >= 1, "length", joined(length, ","), "must be at least 1");
  }
  return length;
}

/// The forms of x. @param input the value of --input; with two axes, x can only be real
std::vector<std::string> forms_of_x(const std::optional<std::string>& input, bool inverse) {
  if (input == "real" && inverse)
    return {"[n][length / 2 + 1][2]", "[n][height][length / 2 + 1][2]"};
  if (input == "real") return {"[n][length]", "[n][height][length]"};
  std::vector<std::string> forms = {"[n][length][2]", "[n][height][length][2]"};
  if (!input) forms.push_back("[n][length] if it is real");
  return forms;
}

/// The length L of lines of which x holds half of the spectrum: of the two possible lengths, the
/// one given by --length, otherwise the even one.
void tell_length_of_half(Extents& extents, std::int64_t half, const std::string& source) {
  const std::int64_t even = std::max<std::int64_t>(1, 2 * (half - 1));
  const std::int64_t length = extents.told("length") ? extents.value("length", 1) : even;
  require(length / 2 + 1 == half, "length", length,
          text("has ", length / 2 + 1, " frequencies up to the middle, but ", source, " holds ",
               half, ", those of ", even, half > 1 ? text(" or ", even + 1) : ""));
  extents.tell("length", length, source);
}

/// The problem from --n and --length, or from the array x.
std::vector<Task> read_fft(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which collects notes
  parameters.require_only(ladder.name, {"n", "length", "input", "direction", "ring", "x"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  const auto input = parameters.word("input", {"complex", "real"});
  FftProblem problem;
  if (input == "real") problem.input = FftInput::real;
  if (parameters.word("direction", {"forward", "inverse"}) == "inverse")
    problem.direction = FftDirection::inverse;

  Extents extents;
  extents.tell_option(parameters, "n");
  const std::vector<int> length = read_length(parameters);
  if (length.size() == 2) extents.tell("height", length[0], "--length");
  if (!length.empty()) extents.tell("length", length.back(), "--length");
  if (parameters.given("x")) {
    const Array& x =
        task.given.emplace("x", *parameters.array("x", forms_of_x(input, problem.exchanges())))
            .first->second;
    const Shape& shape = x.shape();
    const std::string source = parameters.source("x", shape);
    if (shape.size() == 2) {
      require(!problem.exchanges(), "direction", "inverse",
              text(source,
                   " holds real points, but the inverse transform of real points takes half of "
                   "their spectrum: pass --input real and x [n][length / 2 + 1][2]"));
      problem.input = FftInput::real;
    }
    const bool has_parts = !problem.is_real() || is_to_real(problem);
    if (has_parts && shape.back() != 2) {
      throw BadInput(text(
          source, ": the last axis must have 2 numbers, a real and an imaginary part",
          shape.size() == 3 && !problem.is_real() ? "; --input real accepts planes of real points"
                                                  : ""));
    }
    const std::size_t axes = shape.size() - (has_parts ? 2 : 1);  // of a line or plane
    require(length.empty() || length.size() == axes, "length", joined(length, ","),
            text(source, axes == 1 ? " holds lines: L" : " holds planes: H,L"));
    extents.tell("n", shape[0], source);
    if (axes == 2) extents.tell("height", shape[1], source);
    if (is_to_real(problem)) {
      tell_length_of_half(extents, shape[axes], source);
    } else {
      extents.tell("length", shape[axes], source);
    }
  }
  problem.N = extents.value("n", kFftExample.N);
  problem.L = extents.value("length", kFftExample.L);
  if (extents.told("height")) {
    problem.H = extents.value("height", 1);
    require(problem.H >= 1, "length", text(problem.H, ",", problem.L), "must be at least 1");
  }
  if (parameters.word("ring", {"complex", "mersenne"}) == "mersenne")
    problem.ring = FftRing::mersenne;
  task.problem = problem = validated(problem);
  task.title = describe(problem);
  task.notes = parameters.notes();
  return {std::move(task)};
}

std::string fft_in_code(const FftProblem& p) {
  return text("FftProblem{.N = ", p.N, ", .H = ", p.H, ", .L = ", p.L,
              ", .direction = FftDirection::", name_of(p.direction),
              ", .ring = FftRing::", name_of(p.ring), ", .input = FftInput::", name_of(p.input),
              "}");
}

}  // namespace

LadderCommand fft_command() {
  return {.read = read_fft, .in_code = code_of<FftProblem>(fft_in_code)};
}

}  // namespace convladder::command
