#include "ladders/removed_rungs.hpp"

const std::vector<convladder::RemovedRung>& convladder::removed_rungs() {
  static const std::vector<RemovedRung> removed = {
      {"cpu_reference/conv2d/winograd_points", "cpu_reference/conv2d/winograd_4x4"},
      {"cuda_optimized/conv2d/implicit_gemm_wgmma_two_blocks",
       "cuda_optimized/conv2d/implicit_gemm_wgmma_block_pairs"},
      {"cuda_optimized/conv2d/winograd_chunks", "cuda_optimized/conv2d/winograd_4x4"},
      {"cuda_optimized/conv2d/winograd_points", "cuda_optimized/conv2d/winograd_4x4"},
      {"cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_two_blocks",
       "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_block_pairs"},
      {"cuda_optimized/rulebook/lists_of_ranks", "cuda_optimized/rulebook/lists_of_bricks"},
      {"cuda_optimized/rulebook/one_output_each", "cuda_optimized/rulebook/gather"},
      {"cuda_optimized/rulebook/ranked_bit_grid", "cuda_optimized/rulebook/paged_bricks"},
      {"cuda_optimized/rulebook/two_level_grid", "cuda_optimized/rulebook/paged_bricks"},
      {"cuda_optimized/sparse_conv/implicit_gemm_longest_first",
       "cuda_optimized/sparse_conv/implicit_gemm_cp_async"},
  };
  return removed;
}
