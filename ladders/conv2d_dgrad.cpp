#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::conv2d_dgrad_ladder() {
  return {"conv2d_dgrad",
          "gradient of a 2-D convolution with respect to its input",
          [](const Problem& problem) {
            return conv2d_dgrad_signature(std::get<Conv2dProblem>(problem));
          },
          {}};
}
