/// @file drawn_problem.hpp
/// @brief Problems for `fuzz`: drawn at random, varied a little, and made simpler.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "command/options.hpp"
#include "core/rung.hpp"

namespace convladder::command {

/// A problem as the options of `compare` that describe it, without "--": so that it can be pasted.
struct DrawnProblem {
  std::string ladder;
  std::map<std::string, std::string> options;  ///< "pad" is "1,0"; a bare option is "".

  bool operator==(const DrawnProblem&) const = default;
};

/// The command line that compares one rung on it. Of options that must make no difference, those
/// that are set stand in it, too.
std::string command_line(const DrawnProblem& problem, const std::string& rung, Where where);

/// The same as read_tasks() and prepare() want it.
Options options_of(const DrawnProblem& problem);

/// Multiply-adds, and elements: how long the definition takes, roughly.
double work_of(const Problem& problem);

/// Draws problems that favour edges.
class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 11) {}

  /// A problem of the ladder. It need not be valid: read_tasks() says so.
  /// @param work at most, roughly
  DrawnProblem draw(const std::string& ladder, double work);

  /// The same problem with one or two options changed.
  DrawnProblem varied(const DrawnProblem& problem);

  /// Lets one of the problem's arrays begin elsewhere than the others.
  void offset_one(DrawnProblem& problem, const Signature& signature);

  /// Extents of tiles, around which extents are drawn from now on, too.
  void set_tiles(std::vector<int> extents) { tiles_ = std::move(extents); }

  /// From [low, high].
  int between(int low, int high);
  /// True once in `times`.
  bool one_in(int times) { return between(1, times) == 1; }

 private:
  /// From [low, high], more often where something may end: the least ones, multiples of powers of
  /// two and of tiles and their neighbours, primes; numbers of all magnitudes.
  int edge(int low, int high);
  template <class List>
  auto& any_of(List& list);
  template <class T>
  T one_of(std::initializer_list<T> list);

  /// An axis on which a window moves.
  struct Axis {
    int size = 1, kernel = 1, before = 0, after = 0, stride = 1, dilation = 1;
    std::int64_t out = 1;  ///< Windows.
  };
  /// An axis, drawn from the number of its windows backwards. @param most windows
  Axis draw_axis(int most, int kernel);

  DrawnProblem draw_conv(double work);
  DrawnProblem draw_columns(double work);
  DrawnProblem draw_gemm(double work);
  DrawnProblem draw_tile_map();
  DrawnProblem draw_sparse(const std::string& ladder, double work);
  void draw_words(DrawnProblem& problem);
  void draw_conditions(DrawnProblem& problem);

  std::mt19937_64 random_;
  std::vector<int> tiles_;
};

/// Problems that are simpler than this one by one step, the simplest first.
std::vector<DrawnProblem> simpler(const DrawnProblem& problem);

/// A number of an option in which two problems differ, if that is all in which they differ.
struct OneDifference {
  std::string option;
  std::size_t index = 0;  ///< Which of the option's numbers,
  std::size_t count = 1;  ///< of so many.
  int a = 0, b = 0;       ///< Its values.
};
std::optional<OneDifference> one_difference(const DrawnProblem& a, const DrawnProblem& b);

/// The problem with another value there.
DrawnProblem with_value(DrawnProblem problem, const OneDifference& place, int value);

}  // namespace convladder::command
