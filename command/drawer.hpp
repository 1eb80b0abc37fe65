/// @file drawer.hpp
/// @brief Draws problems for `fuzz` at random, and varies them a little.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "command/drawn_problem.hpp"

namespace convladder::command {

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

  /// From [low, high], more often where something may end: the least ones, multiples of powers of
  /// two and of tiles and their neighbours, primes; numbers of all magnitudes.
  int edge(int low, int high);
  /// An element.
  template <class List>
  auto& any_of(List& list) {
    return *(std::begin(list) + between(0, static_cast<int>(std::size(list)) - 1));
  }
  /// The same.
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return any_of(list);
  }

  /// An axis on which a window moves.
  struct Axis {
    int size = 1, kernel = 1, before = 0, after = 0, stride = 1, dilation = 1;
    std::int64_t out = 1;  ///< Windows.
  };
  /// An axis, drawn from the number of its windows backwards. @param most windows
  Axis axis(int most, int kernel);

 private:
  std::mt19937_64 random_;
  std::vector<int> tiles_;
};

}  // namespace convladder::command
