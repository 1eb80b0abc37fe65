/// @file test.cpp
/// @brief `./ladder test`: the public cases, and the first thing that is wrong.
#include <cstdio>
#include <fstream>
#include <map>

#include "check/assignment.hpp"
#include "check/blanks.hpp"
#include "check/run.hpp"
#include "core/error.hpp"

namespace convladder::check {
namespace {

/// Exit status.
enum Status : int { kRight = 0, kWrong = 1, kBadInput = 2 };

void print(const std::string& line) { std::printf("%s\n", line.c_str()); }

/// The rung that an exercise's function stands in.
std::string rung_of_exercise(const std::string& number) {
  std::string known;
  for (const Exercise& exercise : exercises()) {
    if (exercise.number == number) return exercise.rung;
    known += (known.empty() ? "" : ", ") + exercise.number;
  }
  throw BadInput(text("exercise = ", number, ": must be one of ", known));
}

/// "F4 (1 of 3), F6": families of which not all cases agree, and how many do.
std::string incomplete(const std::map<int, std::pair<int, int>>& families) {
  std::string line;
  for (const auto& [family, count] : families) {
    if (count.first == count.second) continue;
    line += text(line.empty() ? "" : ", ", "F", family);
    if (count.first > 0) line += text(" (", count.first, " of ", count.second, ")");
  }
  return line;
}

/// Which case runs is kept in a file: if the program is ended, ./ladder reports it.
void keep_name(const std::string& name) { std::ofstream("last_case") << name << "\n"; }

/// @param exercise its number; empty: all
/// @param each prints a line for every case, "NAME: agrees"
int test(const std::string& exercise, bool each) {
  const std::string rung = exercise.empty() ? "" : rung_of_exercise(exercise);
  int run = 0, agree = 0, unwritten = 0;
  std::string first_wrong;
  std::map<int, std::pair<int, int>> families;  // of each: how many agree, of how many
  for (const Case& one : read_cases()) {
    if (one.is_counted() || (!rung.empty() && one.rung != rung)) continue;
    keep_name(one.name);
    const Judged judged = rung_named(one.rung);
    const Result result = try_out(judged, read_trial(judged.ladder->name, split(one.words)));
    ++run;
    ++families[one.family()].second;
    if (result.ending == Ending::agrees) ++agree, ++families[one.family()].first;
    if (result.ending == Ending::not_written) ++unwritten;
    if (first_wrong.empty() &&
        (result.ending == Ending::differs || result.ending == Ending::declined)) {
      first_wrong = text(one.name, " ", name_of(result.ending), ": ", result.says,
                         "\n  the same case under the microscope: ./ladder inspect ", one.rung, " ",
                         one.words);
    }
    if (each) print(text(one.name, ": ", name_of(result.ending)));
  }
  for (const std::string& blank : not_written()) print(blank + " is not written yet");
  if (!first_wrong.empty()) print(first_wrong);
  print(text(
      agree, " of ", run, " public cases agree",
      unwritten > 0 ? text(", ", unwritten, " reached a function that is not written yet") : "",
      first_wrong.empty() ? "" : "; still differing: " + incomplete(families)));
  return agree == run ? kRight : kWrong;
}

/// The properties, which are checked once all cases agree.
int test_properties() {
  int status = kRight;
  for (const Property& property : properties()) {
    keep_name(property.name);
    const std::string difference = property.difference();
    print(property.name + (difference.empty() ? ": holds" : " does not hold " + difference));
    if (!difference.empty()) status = kWrong;
  }
  return status;
}

/// The hunt: the problem in hunt/problem.txt must show the bug, and the mended rung must be right.
int test_hunt() {
  require(!hunt().rungs.empty(), "exercise", "hunt", "this assignment has no hunt");
  std::ifstream in(CONVLADDER_SOURCE_DIR "/hunt/problem.txt");
  std::string words;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#')) words += line + " ";
  if (split(words).empty()) {
    print("hunt/problem.txt: no problem is written there yet");
    return kWrong;
  }
  const Trial trial = read_trial(hunt().name, split(words));
  bool right = true;
  for (const Rung& rung : hunt().rungs) {
    const bool mended = rung.name == "mended";
    const Result result = try_out({&hunt(), &rung}, trial);
    const bool good = (result.ending == Ending::agrees) == mended;
    print(text(mended ? "your corrected file " : "the original file ", name_of(result.ending),
               result.says.empty() ? "" : ": " + result.says,
               good     ? ""
               : mended ? "  <- it must agree"
                        : "  <- it must differ"));
    right = right && good;
  }
  return right ? kRight : kWrong;
}

int main_with(const std::vector<std::string>& words) {
  std::string exercise;
  bool each = false;
  for (const std::string& word : words) {
    if (word == "--each") {
      each = true;
    } else {
      require(exercise.empty(), "exercise", word, "one at a time");
      exercise = word;
    }
  }
  if (exercise == "hunt") return test_hunt();
  const int status = test(exercise, each);
  return status == kRight && exercise.empty() ? test_properties() : status;
}

}  // namespace
}  // namespace convladder::check

int main(int count, char** words) {
  try {
    return convladder::check::main_with({words + 1, words + count});
  } catch (const convladder::BadInput& error) {
    std::fprintf(stderr, "ladder: %s\n", error.what());
    return 2;
  }
}
