/// @file photograph_on_cpu.cpp
/// @brief Sharpens a photograph: a depthwise convolution by a rung in C++.
#include <cstdio>
#include <exception>

#include "sharpening.hpp"

int main(int count, char** words) try {
  if (count != 3) return std::puts("photograph_on_cpu FROM.png TO.png"), 2;
  const Photograph from = read_png(words[1]);
  const convladder::Conv2dProblem problem = sharpening(from);
  const std::vector<float> weights = sharpening_weights();

  Photograph to = from;
  convladder::cpu_reference::conv2d::reordered(
      problem, {.x = from.planes.data(), .weights = weights.data(), .y = to.planes.data()});
  write_png(words[2], to);
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
