#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_wgrad_ladder() {
  return {"conv2d_wgrad",
          "gradients of a 2-D convolution with respect to its weights and bias",
          [](const Problem& problem) {
            return conv2d_wgrad_signature(std::get<Conv2dProblem>(problem));
          },
          {}};
}
