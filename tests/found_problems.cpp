#include "tests/found_problems.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "command/options.hpp"
#include "command/task.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"

namespace convladder::testing {
namespace {

bool is_ladder(const std::string& word) {
  return std::ranges::any_of(ladders(), [&](const Ladder& ladder) { return ladder.name == word; });
}

std::vector<TestProblem> read_found_problems(const std::string& ladder) {
  const std::string path = CONVLADDER_FOUND_PROBLEMS;
  std::ifstream file(path);
  if (!file) throw BadInput(text("cannot read ", path));
  std::vector<TestProblem> list;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words = {"compare"};
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() == 1 || words[1].starts_with('#')) continue;
    if (words[1] != ladder && is_ladder(words[1])) continue;  // to read one takes milliseconds
    const command::Options options = command::parse_options(words);
    if (options.ladder != ladder) continue;
    for (command::Task& task : command::read_tasks(options)) {
      // Of its conditions, where arrays lie; the suite runs threads in all orders by itself.
      const command::InForce conditions(options.conditions, task.ladder->signature(task.problem),
                                        options.seed);
      list.push_back({.name = "found: " + line,
                      .problem = task.problem,
                      .misalignment = conditions.run_options().misalignment,
                      .given = std::move(task.given),
                      .offsets = conditions.run_options().offsets});
    }
  }
  return list;
}

}  // namespace

std::vector<TestProblem> found_problems(const std::string& ladder) {
  static std::map<std::string, std::vector<TestProblem>> known;
  const auto found = known.find(ladder);
  return found != known.end() ? found->second : known[ladder] = read_found_problems(ladder);
}

}  // namespace convladder::testing
