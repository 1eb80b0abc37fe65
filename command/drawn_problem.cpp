#include "command/drawn_problem.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "command/emulated_device.hpp"
#include "core/text.hpp"

namespace convladder::command {

std::string command_line(const DrawnProblem& problem, const std::string& rung, Where where) {
  std::string line = "./ladder compare " + problem.ladder;
  for (const auto& [name, value] : problem.options)
    line += " --" + name + (value.empty() ? "" : " " + value);
  line += " --rung " + rung + " --backend " + name_of(where);
  if (where == Where::emulated && !chosen_device().empty()) line += " --device " + chosen_device();
  return line;
}

Options options_of(const DrawnProblem& problem) {
  Options options;
  options.command = Command::compare;
  options.ladder = problem.ladder;
  for (const auto& [name, value] : problem.options) {
    if (name == "seed") {
      options.seed = static_cast<std::uint64_t>(parse_whole("seed", value));
    } else if (name == "data") {
      options.data = value == "real" ? Data::real : Data::integer;
    } else if (std::ranges::find(kConditions, name) != kConditions.end()) {
      set_condition(options.conditions, name, value);
    } else {
      options.problem.set(name, value);
    }
  }
  return options;
}

int simplest(const std::string& option) {
  return option == "pad" || option == "out-padding" || option == "sites" ? 0 : 1;
}

std::vector<int> numbers_in(const std::string& value) {
  std::vector<int> numbers;
  const char* at = value.data();
  const char* const end = at + value.size();
  while (at != end) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (rest != end && *rest != ',')) return {};
    numbers.push_back(number);
    at = rest == end ? end : rest + 1;
  }
  return numbers;
}

std::string value_of(const std::string& option, const std::vector<int>& numbers) {
  const bool lists_alone =
      option == "size" || option == "shape" || option == "tiles" || option == "length";
  const bool same = std::ranges::count(numbers, numbers.front()) == std::ssize(numbers);
  return same && !lists_alone ? text(numbers.front()) : joined(numbers, ",");
}

void set(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers) {
  problem.options[option] = value_of(option, numbers);
}

void set_unless(DrawnProblem& problem, const std::string& option, const std::vector<int>& numbers) {
  const int usual = simplest(option);
  if (std::ranges::count(numbers, usual) != std::ssize(numbers)) set(problem, option, numbers);
}

std::optional<OneDifference> one_difference(const DrawnProblem& a, const DrawnProblem& b) {
  std::optional<OneDifference> difference;
  std::set<std::string> names;
  for (const DrawnProblem* problem : {&a, &b})
    for (const auto& [name, value] : problem->options) names.insert(name);
  for (const std::string& name : names) {
    const auto numbers = [&](const DrawnProblem& problem) {
      const auto given = problem.options.find(name);
      return given == problem.options.end() ? std::vector{simplest(name)}
                                            : numbers_in(given->second);
    };
    std::vector<int> x = numbers(a), y = numbers(b);
    if (x == y && a.options.contains(name) == b.options.contains(name) &&
        (!x.empty() || a.options.at(name) == b.options.at(name)))
      continue;
    if (x.empty() || y.empty() || difference) return {};  // words
    const std::size_t count = std::max(x.size(), y.size());
    x.resize(count, x.front()), y.resize(count, y.front());
    for (std::size_t i = 0; i < count; ++i) {
      if (x[i] == y[i]) continue;
      if (difference) return {};
      difference = OneDifference{name, i, count, x[i], y[i]};
    }
  }
  return difference;
}

DrawnProblem with_value(DrawnProblem problem, const OneDifference& place, int value) {
  std::string& option = problem.options[place.option];
  std::vector<int> numbers = numbers_in(option);
  if (numbers.empty()) numbers = {simplest(place.option)};
  numbers.resize(place.count, numbers.front());
  numbers.at(place.index) = value;
  option = value_of(place.option, numbers);
  return problem;
}

}  // namespace convladder::command
