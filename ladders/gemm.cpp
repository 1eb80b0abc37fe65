#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(GemmProblem, cpu_reference, gemm, triple_loop)
CPU_RUNG(GemmProblem, cpu_reference, gemm, eigen)
CUDA_RUNG(GemmProblem, cuda_naive, gemm, direct)
CUDA_RUNG(GemmProblem, cuda_optimized, gemm, tiled)
CUDA_RUNG(GemmProblem, cuda_optimized, gemm, wgmma_tf32)

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
              CUDA_ROW(cuda_optimized, gemm, wgmma_tf32, "cuda_optimized/gemm/tiled",
                       "Hopper's copy engine feeds wgmma through a ring of stages (TF32)"),
          }};
}
