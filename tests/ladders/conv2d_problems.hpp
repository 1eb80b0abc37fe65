/// @file conv2d_problems.hpp
/// @brief Convolutions that the suite asks about: one list for the forward pass and both gradients.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/conv2d_problem.hpp"
#include "tests/dice.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {

/// A problem of the list.
struct ConvTestProblem {
  int number;
  std::string name;
  Conv2dProblem problem;
  Size size = Size::small;
  std::size_t misalignment = 0;
  bool only_conv2d = false;  ///< Nothing for im2col and col2im.
  bool once = false;
  std::string_view only = "";  ///< The ladder, or the rung, that it is for; empty: all.
  /// As TestProblem::rungs, of any of the ladders.
  std::vector<std::string> rungs = {};
  /// As TestProblem::offsets.
  std::map<std::string, std::size_t, std::less<>> offsets = {};
};

/// The same padding on both sides.
constexpr Padding pad_all(int h, int w) { return {h, h, w, w}; }
constexpr Padding pad_all(int pad) { return pad_all(pad, pad); }

/// The edge shapes, see conv2d_problems.cpp.
std::vector<ConvTestProblem> conv_problems();
/// Problems that a rung's choices turn on.
std::vector<ConvTestProblem> choice_problems();
/// The forward pass with ReLU.
std::vector<ConvTestProblem> relu_problems();
/// The forward pass under each tile map.
std::vector<ConvTestProblem> mapped_conv_problems();
/// Any, with at most 400,000 products.
Conv2dProblem random_conv(Dice& dice);

/// Those that are for the ladder: conv2d or one of its gradients.
std::vector<TestProblem> conv_problems_for(const std::string& ladder,
                                           const std::vector<ConvTestProblem>& problems);
/// See rounding_problems(). Filters of one tap: at the border of dx, larger ones have fewer
/// products.
std::vector<TestProblem> conv_rounding_problems();
/// Of each kind one; see LadderTests::non_finite.
std::vector<Conv2dProblem> small_convolutions();
/// The same without bias: the gradients'.
std::vector<TestProblem> small_gradients();
/// See LadderTests::limits.
std::vector<Problem> conv_limits();

}  // namespace convladder::testing
