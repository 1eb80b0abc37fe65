#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(Conv2dProblem, cpu_reference, conv2d, direct)
CUDA_RUNG(Conv2dProblem, cuda_naive, conv2d, direct)

convladder::Ladder convladder::conv2d_ladder() {
  return {"conv2d",
          "2-D convolution, forward: y = x * w + bias",
          [](const Problem& problem) {
            return conv2d_signature(std::get<Conv2dProblem>(problem));
          },
          {
              CPU_ROW(cpu_reference, conv2d, direct, "",
                      "the definition: one loop for each letter of the formula"),
              CUDA_ROW(cuda_naive, conv2d, direct, "cpu_reference/conv2d/direct",
                       "one thread an output"),
          }};
}
