/// @file drawer.hpp
/// @brief Draws random problems for `fuzz`, and varies a problem slightly.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "command/drawn_problem.hpp"

namespace convladder::command {

/// Draws problems, with boundary cases more often than others.
class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 11) {}

  /// A problem of the ladder. It may be invalid; read_tasks() checks that.
  /// @param work approximate upper bound of the problem's work
  DrawnProblem draw(const std::string& ladder, double work);

  /// The same problem with one or two options changed.
  DrawnProblem varied(const DrawnProblem& problem);

  /// Gives one of the problem's arrays a different offset from the others.
  void offset_one(DrawnProblem& problem, const Signature& signature);

  /// Adds extents of tiles; extents near them and near their multiples are drawn more often from
  /// then on.
  void set_tiles(std::vector<int> extents) { tiles_ = std::move(extents); }

  /// A value from [low, high].
  int between(int low, int high);
  /// True once in `times`.
  bool one_in(int times) { return between(1, times) == 1; }

  /// A value from [low, high]. Likely boundaries are drawn more often: the smallest values,
  /// multiples of powers of two and of tile extents and their neighbours, primes, and numbers of
  /// all magnitudes.
  int edge(int low, int high);
  /// A random element.
  template <class List>
  auto& any_of(List& list) {
    return *(std::begin(list) + between(0, static_cast<int>(std::size(list)) - 1));
  }
  /// A random element.
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return any_of(list);
  }

  /// An axis along which a window moves.
  struct Axis {
    int size = 1, kernel = 1, before = 0, after = 0, stride = 1, dilation = 1;
    std::int64_t out = 1;  ///< Number of windows.
  };
  /// Draws an axis; the number of windows is drawn first. @param most largest number of windows
  Axis axis(int most, int kernel);

 private:
  std::mt19937_64 random_;
  std::vector<int> tiles_;
};

}  // namespace convladder::command
