/// @file photograph_on_cpu.cpp
/// @brief Sharpens a photograph: a depthwise convolution by a rung in C++.
#include <convladder/conv2d.hpp>
#include <cstdio>
#include <exception>

#include "photograph.hpp"

int main(int count, char** words) try {
  if (count != 3) return std::puts("photograph_on_cpu FROM.png TO.png"), 2;
  const Photograph from = read_png(words[1]);
  // One filter a colour, 3 x 3; the picture keeps its size.
  const auto problem = convladder::validated(convladder::Conv2dProblem{.C = 3,
                                                                       .H = from.height,
                                                                       .W = from.width,
                                                                       .K = 3,
                                                                       .R = 3,
                                                                       .S = 3,
                                                                       .pad = {1, 1, 1, 1},
                                                                       .groups = 3});
  std::vector<float> weights;
  for (int colour = 0; colour < 3; ++colour)
    weights.insert(weights.end(), {0, -1, 0, -1, 5, -1, 0, -1, 0});

  Photograph to = from;
  convladder::cpu_reference::conv2d::reordered(
      problem, {.x = from.planes.data(), .weights = weights.data(), .y = to.planes.data()});
  write_png(words[2], to);
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
