#include "ladders/im2col.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::im2col_ladder() {
  return {
      "im2col",
      "windows of an input as the columns of a matrix, in 1, 2 or 3 dimensions",
      [](const Problem& problem) { return im2col_signature(std::get<Im2colProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, im2col, im2col, "",
                  "the definition: each window becomes a column"),
          branch("cpu_reference/im2col/im2col",
                 CPU_ROW(cpu_reference, im2col, im2row, "cpu_reference/im2col/im2col",
                         "channels innermost (NHWC): each window becomes a row")),
          CUDA_ROW(cuda_naive, im2col, im2col, "cpu_reference/im2col/im2col",
                   "one thread a channel and window, one launch an image"),
          CUDA_ROW(cuda_optimized, im2col, im2col_batched, "cuda_naive/im2col/im2col",
                   "all images in one launch"),
          branch("cuda_optimized/im2col/im2col_batched",
                 CUDA_ROW(cuda_optimized, im2col, im2col_vectorized,
                          "cuda_optimized/im2col/im2col_batched",
                          "four windows a thread, whose taps it stores as vectors")),
          branch("cuda_optimized/im2col/im2col_vectorized",
                 CUDA_ROW(cuda_optimized, im2col, im2row, "cuda_optimized/im2col/im2col_vectorized",
                          "windows as rows (NHWC): taps are runs of channels, copied in vectors")),
      }};
}
