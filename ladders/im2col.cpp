#include "ladders/im2col.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::im2col_ladder() {
  return {
      "im2col", "the windows of an input as the columns of a matrix, in 1, 2 or 3 dimensions",
      [](const Problem& problem) { return im2col_signature(std::get<Im2colProblem>(problem)); },
      in_order({
          spine("",
                {
                    CPU_ROW(cpu_reference, im2col, im2col, "",
                            "definition: each window becomes a column"),
                    CUDA_ROW(cuda_naive, im2col, im2col, "cpu_reference/im2col/im2col",
                             "naive CUDA: one thread per channel and window, one launch per image"),
                    CUDA_ROW(cuda_optimized, im2col, im2col_batched, "cuda_naive/im2col/im2col",
                             "batching: all images in one launch"),
                    CUDA_ROW(cuda_optimized, im2col, im2col_vectorized,
                             "cuda_optimized/im2col/im2col_batched",
                             "vector stores: a thread copies four windows and stores each tap as a "
                             "vector"),
                }),
          alternatives({
              CPU_ROW(cpu_reference, im2col, im2row, "cpu_reference/im2col/im2col",
                      "im2row: with channels innermost (NHWC) each window becomes a row"),
              CUDA_ROW(
                  cuda_optimized, im2col, im2row, "cuda_optimized/im2col/im2col_vectorized",
                  "im2row: each tap is a contiguous row of channels, copied as vectors (NHWC)"),
          }),
      })};
}
