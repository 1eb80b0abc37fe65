#include "ladders/removed_rungs.hpp"

const std::vector<convladder::RemovedRung>& convladder::removed_rungs() {
  static const std::vector<RemovedRung> removed = {
      {"cpu_reference/conv2d/winograd_points", "cpu_reference/conv2d/winograd_4x4"},
      {"cuda_naive/conv2d/direct_16bit", "cuda_optimized/conv2d/direct_mma_16bit"},
      {"cuda_optimized/conv2d/implicit_gemm_wgmma_two_blocks",
       "cuda_optimized/conv2d/implicit_gemm_wgmma_block_pairs"},
      {"cuda_optimized/conv2d/winograd_chunks", "cuda_optimized/conv2d/winograd_4x4"},
      {"cuda_optimized/conv2d/winograd_points", "cuda_optimized/conv2d/winograd_4x4"},
      {"cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_two_blocks",
       "cuda_optimized/conv2d_dgrad/implicit_gemm_wgmma_block_pairs"},
  };
  return removed;
}
