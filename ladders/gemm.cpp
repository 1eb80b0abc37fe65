#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(GemmProblem, cpu_reference, gemm, triple_loop)
CPU_RUNG(GemmProblem, cpu_reference, gemm, eigen)
CUDA_RUNG(GemmProblem, cuda_naive, gemm, direct)
CUDA_RUNG(GemmProblem, cuda_optimized, gemm, tiled)
CUDA_RUNG(GemmProblem, cuda_optimized, gemm, mma_tf32)
CUDA_RUNG(GemmProblem, cuda_optimized, gemm, mma_3xtf32)

convladder::Ladder convladder::gemm_ladder() {
  return {"gemm",
          "matrix product: c = a b",
          [](const Problem& problem) { return gemm_signature(std::get<GemmProblem>(problem)); },
          {
              CPU_ROW(cpu_reference, gemm, triple_loop, "",
                      "the definition: one loop for each letter of the formula"),
              CPU_ROW(cpu_reference, gemm, eigen, "cpu_reference/gemm/triple_loop",
                      "a library's product: register blocks, packed panels, vectors"),
              CUDA_ROW(cuda_naive, gemm, direct, "cpu_reference/gemm/triple_loop",
                       "one thread an element of c"),
              CUDA_ROW(cuda_optimized, gemm, tiled, "cuda_naive/gemm/direct",
                       "a block stages tiles of a and b in shared memory; runs under any tile map"),
              CUDA_ROW(cuda_optimized, gemm, mma_tf32, "cuda_optimized/gemm/tiled",
                       "tensor cores multiply factors rounded to TF32, a fragment a lane"),
              CUDA_ROW(cuda_optimized, gemm, mma_3xtf32, "cuda_optimized/gemm/mma_tf32",
                       "float's accuracy from tensor cores: each factor as the sum of two in TF32"),
          }};
}
