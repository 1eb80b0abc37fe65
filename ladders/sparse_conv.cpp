#include "ladders/sparse_conv.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_conv_ladder() {
  return {
      "sparse_conv",
      "a sparse convolution over a rulebook: y[out] += features[in] * weights[k]",
      [](const Problem& problem) {
        return sparse_conv_signature(std::get<SparseConvProblem>(problem));
      },
      {
          CPU_ROW(cpu_reference, sparse_conv, direct, "",
                  "pair after pair, as the rulebook lists them"),
          branch("cpu_reference/sparse_conv/direct",
                 CPU_ROW(
                     cpu_reference, sparse_conv, gather_gemm_scatter,
                     "cpu_reference/sparse_conv/direct",
                     "rows of a tap's pairs copied together, one matrix product, rows added back")),
          CUDA_ROW(cuda_naive, sparse_conv, scatter, "cpu_reference/sparse_conv/direct",
                   "one thread a pair and output channel, which adds to y atomically",
                   /*deterministic=*/false),
          branch("cuda_naive/sparse_conv/scatter",
                 CUDA_ROW(cuda_optimized, sparse_conv, output_stationary,
                          "cuda_naive/sparse_conv/scatter",
                          "every output collects its sum tap by tap in a register: no atomics")),
          branch("cuda_optimized/sparse_conv/output_stationary",
                 CUDA_ROW(
                     cuda_optimized, sparse_conv, gather_gemm_scatter,
                     "cuda_optimized/sparse_conv/output_stationary",
                     "tap by tap: rows copied together, one fast matrix product, rows added back")),
          CUDA_ROW(cuda_optimized, sparse_conv, grouped_gemm,
                   "cuda_optimized/sparse_conv/gather_gemm_scatter",
                   "all taps at once: a gather, a list of tiles, and outputs that collect"),
          branch("cuda_optimized/sparse_conv/grouped_gemm",
                 CUDA_ROW(cuda_optimized, sparse_conv, fetch_on_demand,
                          "cuda_optimized/sparse_conv/grouped_gemm",
                          "gather, product and scatter in one kernel: no buffers, but atomics",
                          /*deterministic=*/false)),
          branch("cuda_optimized/sparse_conv/output_stationary",
                 CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm,
                          "cuda_optimized/sparse_conv/output_stationary",
                          "tiles of rows and channels do the taps that any of their rows has")),
          CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_sorted,
                   "cuda_optimized/sparse_conv/implicit_gemm",
                   "rows sorted by their masks: a tile's rows have the same taps"),
          CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_split,
                   "cuda_optimized/sparse_conv/implicit_gemm_sorted",
                   "two passes over half of the taps each, every one in an order of its own"),
          branch("cuda_optimized/sparse_conv/implicit_gemm_split",
                 CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_cp_async,
                          "cuda_optimized/sparse_conv/implicit_gemm_split",
                          "rows gathered by asynchronous copies; warps skip taps on their own")),
          branch(
              "cuda_optimized/sparse_conv/implicit_gemm_cp_async",
              tf32(
                  Tf32::operands,
                  CUDA_ROW(
                      cuda_optimized, sparse_conv, implicit_gemm_mma,
                      "cuda_optimized/sparse_conv/implicit_gemm_cp_async",
                      "tiles of rows with like masks, gathered by cp.async, on the tensor cores"))),
          branch("cuda_optimized/sparse_conv/implicit_gemm_mma",
                 tf32(Tf32::operands,
                      CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_wgmma,
                               "cuda_optimized/sparse_conv/implicit_gemm_mma",
                               "the same tiles, multiplied by wgmma where they were gathered"))),
          branch("cuda_optimized/sparse_conv/implicit_gemm_wgmma",
                 tf32(Tf32::operands,
                      CUDA_ROW(
                          cuda_optimized, sparse_conv, implicit_gemm_producers,
                          "cuda_optimized/sparse_conv/implicit_gemm_wgmma",
                          "warps that only gather feed warpgroups that only multiply, several taps "
                          "a stage"))),
          tf32(Tf32::operands, CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_producers_sorted,
                                        "cuda_optimized/sparse_conv/implicit_gemm_producers",
                                        "any table: segments of rows are sorted in the launch that "
                                        "puts weights in place")),
          branch("cuda_optimized/sparse_conv/implicit_gemm_mma",
                 CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_fragments,
                          "cuda_optimized/sparse_conv/implicit_gemm_mma",
                          "few channels: rows go from memory straight into fragments, and the L1 "
                          "cache finds what neighbours have read")),
      }};
}
