#include "ladders/gemm.hpp"

#include <utility>

#include "ladders/gemm_batch.hpp"
#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::gemm_ladder() {
  Ladder ladder = {
      "gemm", "matrix product: c = a b",
      [](const Problem& problem) {
        const auto* batch = std::get_if<GemmBatchProblem>(&problem);
        return batch != nullptr ? gemm_signature(*batch)
                                : gemm_signature(std::get<GemmProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, gemm, triple_loop, "", "definition: three nested loops"),
                  CUDA_ROW(cuda_naive, gemm, direct, "cpu_reference/gemm/triple_loop",
                           "naive CUDA: one thread per element of c"),
                  CUDA_ROW(cuda_optimized, gemm, tiled, "cuda_naive/gemm/direct",
                           "shared-memory tiles: a block stages tiles of a and b; any tile order"),
                  CUDA_ROW(cuda_optimized, gemm, register_tile, "cuda_optimized/gemm/tiled",
                           "register tile: a thread holds 8 x 8 accumulators"),
                  CUDA_ROW(cuda_optimized, gemm, vectorized, "cuda_optimized/gemm/register_tile",
                           "float4: vector loads and stores; a is transposed on its way to shared "
                           "memory"),
                  CUDA_ROW(cuda_optimized, gemm, warp_tiles, "cuda_optimized/gemm/vectorized",
                           "warp tiles: a warp computes a compact part of the tile, which needs "
                           "fewer distinct shared-memory words per load"),
                  CUDA_ROW(cuda_optimized, gemm, double_buffered, "cuda_optimized/gemm/warp_tiles",
                           "double buffering: the next tiles are prefetched during the arithmetic"),
                  CUDA_ROW(cuda_optimized, gemm, cp_async, "cuda_optimized/gemm/double_buffered",
                           "cp.async pipeline: several stages are copied asynchronously, past the "
                           "registers"),
                  needs("sm_80",
                        CUDA_ROW(cuda_optimized, gemm, mma, "cuda_optimized/gemm/cp_async",
                                 "tensor cores: mma.sync in half precision (fp16, bf16), FP32 "
                                 "accumulators, fragments from plain loads")),
                  needs("sm_80",
                        CUDA_ROW(cuda_optimized, gemm, ldmatrix, "cuda_optimized/gemm/mma",
                                 "ldmatrix and XOR swizzle: fragments without bank conflicts, "
                                 "loaded ahead of their use")),
                  needs("sm_90a",
                        CUDA_ROW(
                            cuda_optimized, gemm, tma, "cuda_optimized/gemm/ldmatrix",
                            "TMA: boxes replace copies by threads, the same swizzled tiles, a full "
                            "barrier for each stage")),
                  needs("sm_90a",
                        CUDA_ROW(cuda_optimized, gemm, wgmma, "cuda_optimized/gemm/tma",
                                 "wgmma: warpgroups multiply asynchronously, with operands in "
                                 "shared memory")),
                  needs(
                      "sm_90a",
                      CUDA_ROW(cuda_optimized, gemm, warp_specialized, "cuda_optimized/gemm/wgmma",
                               "warp specialization: a producer warp loads, consumer warpgroups "
                               "multiply, full and empty barriers between them")),
                  needs("sm_90a", CUDA_ROW(cuda_optimized, gemm, persistent,
                                           "cuda_optimized/gemm/warp_specialized",
                                           "persistent kernel: a block computes tile after tile, "
                                           "the producer runs ahead into the next one")),
                  needs("sm_90a",
                        CUDA_ROW(cuda_optimized, gemm, tma_store, "cuda_optimized/gemm/persistent",
                                 "TMA store: c is stored from a staging buffer while the "
                                 "next tile is computed")),
                  needs("sm_90a",
                        CUDA_ROW(cuda_optimized, gemm, setmaxnreg, "cuda_optimized/gemm/tma_store",
                                 "register reallocation: setmaxnreg moves registers from "
                                 "the producer to the consumer warpgroups")),
                  needs("sm_90a",
                        CUDA_ROW(cuda_optimized, gemm, fused_epilogue,
                                 "cuda_optimized/gemm/setmaxnreg",
                                 "fused epilogue: bias and ReLU on the accumulators in registers")),
                  needs("sm_90a", CUDA_ROW_IN(cuda_optimized, gemm, hopper, small_tiles,
                                              "cuda_optimized/gemm/fused_epilogue",
                                              "small problems: tiles of 64 rows for one consumer "
                                              "warpgroup, and a short prologue")),
                  needs("sm_90a",
                        CUDA_ROW(cuda_optimized, gemm, overlapped_epilogue,
                                 "cuda_optimized/gemm/hopper/small_tiles",
                                 "overlapped epilogue: a finished tile waits in registers and is "
                                 "stored during the next tile's first steps")),
                  needs(
                      "sm_90a",
                      CUDA_ROW(cuda_optimized, gemm, clusters, "cuda_optimized/gemm/fused_epilogue",
                               "clusters: two blocks share a tile of b by TMA multicast")),
              }),
          alternatives({
              CPU_ROW(
                  cpu_reference, gemm, eigen, "cpu_reference/gemm/triple_loop",
                  "library GEMM: Eigen's register blocks, packed panels and vector instructions"),
              CPU_ROW(cpu_reference, gemm, blocked, "cpu_reference/gemm/eigen",
                      "cache blocking: blocks in the caches, up to 6 x 32 accumulators in vector "
                      "registers, all cores"),
              CUDA_ROW(
                  cuda_optimized, gemm, split_k, "cuda_optimized/gemm/cp_async",
                  "split-K: several blocks share a tile; a second kernel adds the partial results"),
              CUDA_ROW(cuda_optimized, gemm, stream_k, "cuda_optimized/gemm/split_k",
                       "stream-K: each block gets the same number of k-steps, wherever tiles begin "
                       "and end"),
              needs(
                  "sm_80",
                  tf32(Tf32::operands,
                       CUDA_ROW_IN(cuda_optimized, gemm, tf32, mma, "cuda_optimized/gemm/cp_async",
                                   "mma.sync in TF32: FP32 operands are rounded to TF32"))),
              needs(
                  "sm_80",
                  tf32(Tf32::parts,
                       CUDA_ROW_IN(cuda_optimized, gemm, tf32, mma_3xtf32,
                                   "cuda_optimized/gemm/tf32/mma",
                                   "3xTF32: FP32 accuracy from tensor cores, each operand is split "
                                   "into two TF32 parts"))),
              needs(
                  "sm_90a",
                  tf32(Tf32::operands,
                       CUDA_ROW_IN(
                           cuda_optimized, gemm,
                           tf32, wgmma, "cuda_optimized/gemm/persistent",
                           "persistent wgmma in TF32: b is transposed in the workspace first"))),
          }),
          advanced({
              needs("sm_90a",
                    CUDA_ROW_IN(cuda_optimized, gemm, hopper, pdl,
                                "cuda_optimized/gemm/overlapped_epilogue",
                                "programmatic dependent launch (PDL): a GEMM starts while "
                                "the kernel before it ends")),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(
                      cuda_optimized,
                      gemm, hopper,
                      split_k_tail,
                      "cuda_optimized/gemm/hopper/small_tiles",
                      "split-K tail: the tiles of a nearly empty last wave are split along k")),
              needs("sm_90a", CUDA_ROW_IN(cuda_optimized, gemm, hopper, ping_pong,
                                          "cuda_optimized/gemm/clusters",
                                          "ping-pong: one consumer warpgroup stores its tile while "
                                          "the other multiplies")),
              needs("sm_90a", tf32(Tf32::operands,
                                   CUDA_ROW_IN(cuda_optimized, gemm, tf32, swap_ab,
                                               "cuda_optimized/gemm/tf32/wgmma",
                                               "swap-AB in TF32: c^T = b^T a^T with operand A "
                                               "from registers, without repacking"))),
              needs(
                  "sm_90a",
                  tf32(Tf32::parts,
                       CUDA_ROW_IN(cuda_optimized, gemm, tf32, wgmma_3xtf32,
                                   "cuda_optimized/gemm/tf32/swap_ab",
                                   "3xTF32 with wgmma: FP32 accuracy; wgmma ignores the low bits, "
                                   "so the unsplit tile of a serves as its high part"))),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(
                      cuda_optimized, gemm, fp8, wgmma, "cuda_optimized/gemm/tf32/wgmma",
                      "FP8 wgmma: each stage's partial result is promoted into FP32 accumulators")),
              needs("sm_90a", CUDA_ROW_IN(cuda_optimized, gemm, fp8, taller_tiles,
                                          "cuda_optimized/gemm/fp8/wgmma",
                                          "FP8 with taller tiles: two groups of 64 rows use the "
                                          "same stage accumulators alternately")),
              needs(
                  "sm_90a",
                  CUDA_ROW_IN(
                      cuda_optimized, gemm, fp8, three_consumers,
                      "cuda_optimized/gemm/fp8/taller_tiles",
                      "FP8 with three consumer warpgroups: one promotes while two multiply")),
          }),
      })};
  for (Rung& rung : ladder.rungs) rung = in_batches(std::move(rung));
  return ladder;
}
