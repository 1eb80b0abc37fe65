#include "command/drawer.hpp"

#include <algorithm>
#include <cmath>

#include "command/ladders/drawn_ladder.hpp"
#include "core/text.hpp"

namespace convladder::command {
namespace {

/// The largest value that varied() generates; larger problems only take longer.
int most_of(const std::string& option) {
  constexpr int kMany = 1 << 16;
  if (option == "sites") return 4000;
  for (const char* small : {"kernel", "r", "s", "batch", "n", "tiles", "pad", "stride", "dilation"})
    if (option == small) return 300;
  return kMany;
}

}  // namespace

int Drawer::between(int low, int high) {
  const auto range = static_cast<std::uint64_t>(std::int64_t{high} - low + 1);
  return low + static_cast<int>((random_() >> 32) * range >> 32);
}

int Drawer::edge(int low, int high) {
  if (high <= low) return low;
  const auto around = [&](int unit) {
    const int multiple = between(1, std::clamp(high / unit, 1, 3)) * unit;
    return multiple + between(-1, 1);
  };
  int drawn = low;
  switch (between(0, 7)) {
    case 0: drawn = low + between(0, 2); break;
    case 1: drawn = between(low, std::min(high, low + 8)); break;
    case 2: drawn = around(one_of({4, 8, 16})); break;
    case 3: drawn = around(one_of({32, 64, 128})); break;
    case 4: drawn = one_of({3, 5, 7, 11, 13, 17, 31, 37, 61, 67, 127, 131, 257}); break;
    case 5:
      if (!tiles_.empty()) {
        drawn = around(any_of(tiles_));
        break;
      }
      [[fallthrough]];
    default:
      drawn = static_cast<int>(std::exp(
          std::log(std::max(low, 1)) +
          between(0, 1000) / 1000.0 * std::log(static_cast<double>(high) / std::max(low, 1))));
  }
  return std::clamp(drawn, low, high);
}

DrawnProblem Drawer::draw(const std::string& ladder, double work) {
  const DrawnLadder& drawn = drawn_ladder(ladder);
  DrawnProblem problem = drawn.draw(*this, work);
  problem.ladder = ladder;
  for (const auto& [name, words] : drawn.words) {
    const auto last = static_cast<int>(words.size()) - 1;
    const int chosen = between(0, last);
    if (chosen != 0) problem.options[name] = words[static_cast<std::size_t>(chosen)];
  }
  problem.options["seed"] = text(between(1, 1000));
  if (drawn.takes_reals && one_in(4)) problem.options["data"] = "real";
  if (!one_in(3)) problem.options["thread-order"] = one_of({"reverse", "shuffled"});
  if (one_in(4)) problem.options["most-blocks"] = text(between(1, 4));
  if (one_in(6)) problem.options["offset"] = text(4 * between(1, 7));
  if (drawn.refuses_bad_sites && one_in(8))
    problem.options["bad-sites"] = text(one_of({"repeated:", "outside:"}), edge(1, 200));
  return problem;
}

Drawer::Axis Drawer::axis(int most, int kernel) {
  Axis axis;
  axis.kernel = kernel;
  if (one_in(5)) axis.dilation = one_in(4) ? edge(2, 24) : between(2, 4);
  const int window = (kernel - 1) * axis.dilation + 1;
  if (one_in(2)) {
    axis.stride = one_in(3) ? window + edge(0, 6) : between(1, 4);
    if (one_in(12)) axis.stride = edge(5, 120);
  }
  switch (between(0, 5)) {
    case 0: axis.before = axis.after = (window - 1) / 2; break;
    case 1: axis.before = axis.after = window - 1; break;
    case 2: axis.before = edge(0, 2 * window), axis.after = edge(0, 2 * window); break;
    case 3: axis.before = between(0, 3), axis.after = between(0, 3); break;
    default: break;
  }
  axis.out = edge(1, most);
  const std::int64_t rest = one_in(2) ? 0 : between(0, axis.stride - 1);
  const std::int64_t size = (axis.out - 1) * axis.stride + window + rest - axis.before - axis.after;
  axis.size = static_cast<int>(std::clamp<std::int64_t>(size, 1, 1 << 16));
  return axis;
}

DrawnProblem Drawer::varied(const DrawnProblem& problem) {
  DrawnProblem other = problem;
  for (int changes = between(1, 2); changes > 0; --changes) {
    std::vector<std::string> names;
    for (const auto& [name, value] : other.options) {
      const bool condition = std::ranges::find(kConditions, name) != kConditions.end();
      if (!condition && name != "seed" && !numbers_in(value).empty()) names.push_back(name);
    }
    for (const char* name : {"pad", "stride", "dilation"}) {
      if (other.options.contains("kernel") || other.options.contains("r")) names.emplace_back(name);
    }
    const std::string name = any_of(names);
    std::string& value = other.options[name];
    if (numbers_in(value).empty()) value = text(simplest(name));  // not given, or not a number
    std::vector<int> numbers = numbers_in(value);
    const bool list = name == "pad" || name == "stride" || name == "dilation";
    if (list && problem.options.contains("r") && one_in(2))
      numbers.resize(name == "pad" ? 4 : 2, numbers.front());
    int& number = any_of(numbers);
    switch (between(0, 4)) {
      case 0: number = edge(simplest(name), 600); break;
      case 1: number *= 2; break;
      case 2: number /= 2; break;
      case 3: ++number; break;
      default: --number;
    }
    number = std::clamp(number, simplest(name), most_of(name));
    value = value_of(name, numbers);
  }
  return other;
}

void Drawer::offset_one(DrawnProblem& problem, const Signature& signature) {
  std::vector<std::string> names;
  for (const auto* specs : {&signature.inputs, &signature.outputs})
    for (const ArraySpec& spec : *specs) names.push_back(spec.name);
  problem.options["offset"] = text(any_of(names), ":", 4 * between(1, 7));
}

}  // namespace convladder::command
