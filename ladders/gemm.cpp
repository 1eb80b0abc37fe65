#include "ladders/gemm.hpp"

#include <utility>

#include "ladders/gemm_batch.hpp"
#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::gemm_ladder() {
  Ladder ladder = {
      "gemm",
      "matrix product: c = a b",
      [](const Problem& problem) {
        const auto* batch = std::get_if<GemmBatchProblem>(&problem);
        return batch != nullptr ? gemm_signature(*batch)
                                : gemm_signature(std::get<GemmProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, gemm, triple_loop, "",
                  "the definition: one loop for each letter of the formula"),
          branch("cpu_reference/gemm/triple_loop",
                 CPU_ROW(cpu_reference, gemm, eigen, "cpu_reference/gemm/triple_loop",
                         "a library's product: register blocks, packed panels, vectors")),
          branch("cpu_reference/gemm/eigen",
                 CPU_ROW(cpu_reference, gemm, blocked, "cpu_reference/gemm/triple_loop",
                         "packed blocks in the caches, 6 x 32 accumulators in vector registers")),
          CUDA_ROW(cuda_naive, gemm, direct, "cpu_reference/gemm/triple_loop",
                   "one thread an element of c"),
          CUDA_ROW(cuda_optimized, gemm, tiled, "cuda_naive/gemm/direct",
                   "a block stages tiles of a and b in shared memory; runs under any tile map"),
          CUDA_ROW(cuda_optimized, gemm, register_tile, "cuda_optimized/gemm/tiled",
                   "a thread computes 8 x 8 elements of c, held in registers"),
          CUDA_ROW(cuda_optimized, gemm, vectorized, "cuda_optimized/gemm/register_tile",
                   "four numbers a load and a store; a is transposed on its way"),
          CUDA_ROW(cuda_optimized, gemm, warp_tiles, "cuda_optimized/gemm/vectorized",
                   "a warp's part of the tile is compact: fewer different floats a load"),
          CUDA_ROW(cuda_optimized, gemm, double_buffered, "cuda_optimized/gemm/warp_tiles",
                   "the next tiles come during the arithmetic, into a second pair of tiles"),
          CUDA_ROW(cuda_optimized, gemm, cp_async, "cuda_optimized/gemm/double_buffered",
                   "tiles are copied asynchronously, several steps ahead, past the registers"),
          branch("cuda_optimized/gemm/cp_async",
                 CUDA_ROW(cuda_optimized, gemm, split_k, "cuda_optimized/gemm/cp_async",
                          "several blocks share a tile's sums; a second kernel adds up the parts")),
          branch(
              "cuda_optimized/gemm/split_k",
              CUDA_ROW(cuda_optimized, gemm, stream_k, "cuda_optimized/gemm/split_k",
                       "every block gets the same number of steps, wherever tiles begin and end")),
          branch(
              "cuda_optimized/gemm/cp_async",
              tf32(Tf32::operands,
                   CUDA_ROW(cuda_optimized, gemm, mma_tf32, "cuda_optimized/gemm/cp_async",
                            "tensor cores multiply factors rounded to TF32, a fragment a lane"))),
          tf32(Tf32::parts,
               CUDA_ROW(
                   cuda_optimized, gemm, mma_3xtf32, "cuda_optimized/gemm/mma_tf32",
                   "float's accuracy from tensor cores: each factor as the sum of two in TF32")),
          branch("cuda_optimized/gemm/mma_tf32",
                 CUDA_ROW(cuda_optimized, gemm, mma_16bit, "cuda_optimized/gemm/mma_tf32",
                          "factors of 16 bits: twice the products a load; b is transposed as it "
                          "is loaded")),
          branch(
              "cuda_optimized/gemm/mma_tf32",
              tf32(Tf32::operands,
                   CUDA_ROW(cuda_optimized, gemm, wgmma_tf32, "cuda_optimized/gemm/mma_tf32",
                            "Hopper's copy engine feeds wgmma through a ring of stages (TF32)"))),
          branch("cuda_optimized/gemm/wgmma_tf32",
                 CUDA_ROW(cuda_optimized, gemm, wgmma_16bit, "cuda_optimized/gemm/wgmma_tf32",
                          "wgmma in 16 bits reads a row-major b as it lies: nothing is repacked")),
          CUDA_ROW(cuda_optimized, gemm, wgmma_tma_store, "cuda_optimized/gemm/wgmma_16bit",
                   "the copy engine stores c, from boxes in shared memory, during the next work"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_registers, "cuda_optimized/gemm/wgmma_tma_store",
                   "setmaxnreg: registers move from the warps that load to those that multiply"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_epilogue, "cuda_optimized/gemm/wgmma_registers",
                   "bias and ReLU while sums are in registers: c goes over memory once"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_low_tiles, "cuda_optimized/gemm/wgmma_epilogue",
                   "small products: tiles of 64 rows for one consumer, and nothing slow before the "
                   "first load"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_late_store, "cuda_optimized/gemm/wgmma_low_tiles",
                   "a tile waits, rounded, in half of the registers: it is stored during the next "
                   "one's first steps"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_early_launch, "cuda_optimized/gemm/wgmma_late_store",
                   "a product begins while the kernel before it ends: its launch lies beside that "
                   "one's last round"),
          branch("cuda_optimized/gemm/wgmma_low_tiles",
                 CUDA_ROW(cuda_optimized, gemm, wgmma_last_round,
                          "cuda_optimized/gemm/wgmma_low_tiles",
                          "where the last round would be nearly empty, its tiles are cut along k")),
          CUDA_ROW(cuda_optimized, gemm, wgmma_clusters, "cuda_optimized/gemm/wgmma_epilogue",
                   "two blocks of a cluster share a tile of b: each loads half, for both"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_pingpong, "cuda_optimized/gemm/wgmma_clusters",
                   "one consumer stores its tile while the other multiplies: they take turns"),
          branch("cuda_optimized/gemm/wgmma_tf32",
                 tf32(Tf32::operands,
                      CUDA_ROW(cuda_optimized, gemm, wgmma_tf32_swapped,
                               "cuda_optimized/gemm/wgmma_registers",
                               "TF32 without a repack: c^T = b^T a^T, b^T from registers"))),
          tf32(Tf32::parts, CUDA_ROW(cuda_optimized, gemm, wgmma_3xtf32,
                                     "cuda_optimized/gemm/wgmma_tf32_swapped",
                                     "float's accuracy from wgmma: a's tile is its own big part")),
          branch("cuda_optimized/gemm/wgmma_tf32",
                 CUDA_ROW(cuda_optimized, gemm, wgmma_fp8, "cuda_optimized/gemm/wgmma_3xtf32",
                          "wgmma in 8 bits, which adds behind 13: sums in float beside those of a "
                          "stage")),
          CUDA_ROW(cuda_optimized, gemm, wgmma_fp8_registers, "cuda_optimized/gemm/wgmma_fp8",
                   "taller tiles: two blocks of rows share the sums of a stage, in turns"),
          CUDA_ROW(cuda_optimized, gemm, wgmma_fp8_three, "cuda_optimized/gemm/wgmma_fp8_registers",
                   "three consumers: while one adds, the products of two run"),
      }};
  for (Rung& rung : ladder.rungs) rung = in_batches(std::move(rung));
  return ladder;
}
