/// @file drawn_simpler.cpp
/// @brief The problems that are one step simpler than a given problem.
#include <algorithm>
#include <array>

#include "command/drawn_problem.hpp"

namespace convladder::command {
namespace {

/// Options that may be omitted: their default is the simplest value. For the other options the
/// default is the ladder's example.
bool may_be_left_out(const std::string& option) {
  constexpr std::array kSizes = {"n",   "c",    "h",      "w",     "k",     "r",     "s",   "m",
                                 "cin", "cout", "kernel", "tiles", "sites", "shape", "size"};
  return std::ranges::find(kSizes, option) == kSizes.end();
}

/// Numbers from `least` to `number` - 1 that are tried in its place, the smallest first.
std::vector<int> steps_down(int number, int least) {
  std::vector<int> steps;
  for (const int smaller : {least, least + (number - least) / 2, number - 1}) {
    if (smaller >= least && smaller < number && (steps.empty() || smaller > steps.back()))
      steps.push_back(smaller);
  }
  return steps;
}

}  // namespace

std::vector<DrawnProblem> simpler(const DrawnProblem& problem) {
  std::vector<DrawnProblem> list;
  const auto add = [&](DrawnProblem candidate) {
    if (candidate != problem) list.push_back(std::move(candidate));
  };
  for (const auto& [name, value] : problem.options) {
    if (!may_be_left_out(name)) continue;
    DrawnProblem without = problem;
    without.options.erase(name);
    add(std::move(without));
  }
  // Groups and channels per group are varied together.
  if (const auto given = problem.options.find("groups"); given != problem.options.end()) {
    const int groups = numbers_in(given->second).front();
    const std::array now = {groups, numbers_in(problem.options.at("c")).front() / groups,
                            numbers_in(problem.options.at("k")).front() / groups};
    for (std::size_t part = 0; part < now.size(); ++part) {
      for (const int fewer : steps_down(now[part], 1)) {
        std::array next = now;
        next[part] = fewer;
        DrawnProblem smaller = problem;
        set(smaller, "c", {next[0] * next[1]}), set(smaller, "k", {next[0] * next[2]});
        set(smaller, "groups", {next[0]});
        add(std::move(smaller));
      }
    }
  }
  // One axis fewer, if every list has one number per axis.
  for (const char* extents : {"shape", "size", "length"}) {
    const auto found = problem.options.find(extents);
    if (found == problem.options.end()) continue;
    const std::size_t rank = numbers_in(found->second).size();
    for (std::size_t axis = 0; rank > 1 && axis < rank; ++axis) {
      DrawnProblem flat = problem;
      for (auto& [name, value] : flat.options) {
        std::vector<int> numbers = numbers_in(value);
        const std::size_t each = numbers.size() / rank;
        if (numbers.size() < 2 || numbers.size() % rank != 0 || name == "tiles") continue;
        const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(axis * each);
        numbers.erase(first, first + static_cast<std::ptrdiff_t>(each));
        value = value_of(name, numbers);
      }
      add(std::move(flat));
    }
  }
  for (const auto& [name, value] : problem.options) {
    const std::vector<int> numbers = numbers_in(value);
    if (name == "seed") continue;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (const int smaller : steps_down(numbers[i], simplest(name)))
        add(with_value(problem, {name, i, numbers.size()}, smaller));
    }
  }
  // Reduces two dependent values by the same amount.
  for (auto one = problem.options.begin(); one != problem.options.end(); ++one) {
    for (auto two = std::next(one); two != problem.options.end(); ++two) {
      const std::vector<int> a = numbers_in(one->second), b = numbers_in(two->second);
      if (a.size() != 1 || b.size() != 1 || one->first == "seed" || two->first == "seed") continue;
      const int room = std::min(a[0] - simplest(one->first), b[0] - simplest(two->first));
      for (const int less : {room / 2, 1}) {
        if (less < 1 || less > room) continue;
        DrawnProblem smaller = problem;
        set(smaller, one->first, {a[0] - less}), set(smaller, two->first, {b[0] - less});
        add(std::move(smaller));
      }
    }
  }
  return list;
}

}  // namespace convladder::command
