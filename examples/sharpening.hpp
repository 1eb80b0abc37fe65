/// @file sharpening.hpp
/// @brief Sharpening a photograph by a convolution: one 3 x 3 filter per colour.
#pragma once

#include <convladder/conv2d.hpp>
#include <vector>

#include "photograph.hpp"

/// The picture keeps its size.
inline convladder::Conv2dProblem sharpening(const Photograph& of) {
  return convladder::validated(convladder::Conv2dProblem{.C = 3,
                                                         .H = of.height,
                                                         .W = of.width,
                                                         .K = 3,
                                                         .R = 3,
                                                         .S = 3,
                                                         .pad = {1, 1, 1, 1},
                                                         .groups = 3});
}

/// Five times a pixel, less its four neighbours: [3][1][3][3].
inline std::vector<float> sharpening_weights() {
  std::vector<float> weights;
  for (int colour = 0; colour < 3; ++colour)
    weights.insert(weights.end(), {0, -1, 0, -1, 5, -1, 0, -1, 0});
  return weights;
}
