#include <filesystem>
#include <fstream>
#include <sstream>

#include "check/assignment.hpp"
#include "core/error.hpp"

namespace convladder::check {
namespace {

/// The lines of a file of this folder that are no comments.
std::vector<std::string> lines_of(const char* file) {
  std::ifstream in(std::filesystem::path(CONVLADDER_SOURCE_DIR) / file);
  require(in.good(), "file", file, "cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && !line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

}  // namespace

Judged rung_named(const std::string& name) {
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      if (rung.name == name || rung.name.ends_with("/" + name)) return {&ladder, &rung};
    }
  }
  throw BadInput(text("rung = ", name, ": must be a rung of this assignment"));
}

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  for (const std::string& line : lines_of("check/cases.txt")) {
    std::istringstream words(line);
    Case one;
    words >> one.name >> one.rung >> std::ws;
    std::getline(words, one.words);
    if (one.name != "budget") cases.push_back(one);
  }
  return cases;
}

std::vector<Budget> read_budgets() {
  std::vector<Budget> budgets;
  for (const std::string& line : lines_of("check/cases.txt")) {
    std::istringstream words(line);
    std::string kind;
    Budget one;
    words >> kind >> one.id >> one.on_case >> one.counter >> one.most;
    if (kind == "budget") budgets.push_back(one);
  }
  return budgets;
}

}  // namespace convladder::check
