#include "ladders/col2im.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::col2im_ladder() {
  return {
      "col2im", "the adjoint of im2col: columns are summed back into the shape of the input",
      [](const Problem& problem) { return col2im_signature(std::get<Im2colProblem>(problem)); },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, col2im, col2im, "",
                          "definition: each column element is added to its pixel"),
                  CUDA_ROW(cuda_naive, col2im, col2im, "cpu_reference/col2im/col2im",
                           "gather: one thread per pixel sums its terms, without atomics"),
                  CUDA_ROW(cuda_optimized, col2im, col2im_batched, "cuda_naive/col2im/col2im",
                           "batching: all images in one launch"),
                  CUDA_ROW(cuda_optimized, col2im, col2im_strided_steps,
                           "cuda_optimized/col2im/col2im_batched",
                           "exact window sets: of the windows that cover a pixel, only those that "
                           "read it are visited"),
                  CUDA_ROW(cuda_optimized, col2im, col2im_vectorized,
                           "cuda_optimized/col2im/col2im_strided_steps",
                           "vector loads: columns are read four floats at a time, sums are shifted "
                           "between lanes"),
              }),
      })};
}
