#include "ladders/col2im.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::col2im_ladder() {
  return {
      "col2im",
      "the adjoint of im2col: columns summed back into the input's shape",
      [](const Problem& problem) { return col2im_signature(std::get<Im2colProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, col2im, col2im, "",
                  "the definition: each column element is added to its pixel"),
          CUDA_ROW(cuda_naive, col2im, col2im, "cpu_reference/col2im/col2im",
                   "one thread a pixel gathers its terms, without atomics"),
          CUDA_ROW(cuda_optimized, col2im, col2im_batched, "cuda_naive/col2im/col2im",
                   "all images in one launch"),
          branch("cuda_optimized/col2im/col2im_batched",
                 CUDA_ROW(cuda_optimized, col2im, col2im_strided_steps,
                          "cuda_optimized/col2im/col2im_batched",
                          "only windows that read the pixel are visited: no iteration in vain")),
          branch("cuda_optimized/col2im/col2im_strided_steps",
                 CUDA_ROW(cuda_optimized, col2im, col2im_vectorized,
                          "cuda_optimized/col2im/col2im_strided_steps",
                          "col is read in vectors of four, and sums are shifted between lanes")),
      }};
}
