#include "ladders/sparse_conv.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::sparse_conv_ladder() {
  return {
      "sparse_conv", "sparse convolution over a rulebook: y[out] += features[in] * weights[k]",
      [](const Problem& problem) {
        return sparse_conv_signature(std::get<SparseConvProblem>(problem));
      },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, sparse_conv, direct, "",
                          "definition: the pairs of the rulebook are processed one by one"),
                  CUDA_ROW(cuda_naive, sparse_conv, scatter, "cpu_reference/sparse_conv/direct",
                           "scatter: one thread per pair and output channel, with atomic additions",
                           /*deterministic=*/false),
                  CUDA_ROW(cuda_optimized, sparse_conv, output_stationary,
                           "cuda_naive/sparse_conv/scatter",
                           "output-stationary: each output accumulates its taps in a register, "
                           "without atomics"),
                  CUDA_ROW(cuda_optimized, sparse_conv, grouped_gemm,
                           "cuda_optimized/sparse_conv/output_stationary",
                           "grouped GEMM: the tiles of all taps in one launch, results are reduced "
                           "per output"),
                  CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm,
                           "cuda_optimized/sparse_conv/output_stationary",
                           "implicit GEMM: a tile of output rows visits the taps that any of its "
                           "rows has"),
                  CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_sorted,
                           "cuda_optimized/sparse_conv/implicit_gemm",
                           "sorted by mask: the rows of a tile share their taps"),
                  CUDA_ROW(
                      cuda_optimized, sparse_conv, implicit_gemm_cp_async,
                      "cuda_optimized/sparse_conv/implicit_gemm_sorted",
                      "cp.async: rows are gathered asynchronously; warps skip taps on their own"),
                  needs("sm_80",
                        tf32(Tf32::operands,
                             CUDA_ROW(
                                 cuda_optimized, sparse_conv, implicit_gemm_mma,
                                 "cuda_optimized/sparse_conv/implicit_gemm_cp_async",
                                 "tensor cores: mma.sync on gathered tiles of mask-sorted rows"))),
                  needs("sm_90a",
                        tf32(Tf32::operands,
                             CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_warp_specialized,
                                      "cuda_optimized/sparse_conv/implicit_gemm_mma",
                                      "warp specialization: producer warps gather, consumer "
                                      "warpgroups multiply"))),
              }),
          alternatives({
              CPU_ROW(cpu_reference, sparse_conv, gather_gemm_scatter,
                      "cpu_reference/sparse_conv/direct",
                      "gather, GEMM, scatter: one GEMM for the gathered rows of each tap"),
              CUDA_ROW(cuda_optimized, sparse_conv, gather_gemm_scatter,
                       "cuda_optimized/sparse_conv/output_stationary",
                       "gather, GEMM, scatter: a tiled GEMM per tap"),
              CUDA_ROW(cuda_optimized, sparse_conv, fetch_on_demand,
                       "cuda_optimized/sparse_conv/grouped_gemm",
                       "fetch-on-demand: gather, GEMM and scatter in one kernel, with atomics",
                       /*deterministic=*/false),
              CUDA_ROW(
                  cuda_optimized, sparse_conv, implicit_gemm_split_masks,
                  "cuda_optimized/sparse_conv/implicit_gemm_sorted",
                  "split masks: two passes over half of the taps, each with its own row order"),
              needs("sm_80", CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_direct_fragments,
                                      "cuda_optimized/sparse_conv/implicit_gemm_mma",
                                      "few channels: rows are loaded from global memory directly "
                                      "into mma fragments")),
          }),
          advanced({
              needs("sm_90a",
                    tf32(Tf32::operands, CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_wgmma,
                                                  "cuda_optimized/sparse_conv/implicit_gemm_mma",
                                                  "wgmma on gathered tiles in shared memory"))),
              needs("sm_90a",
                    tf32(Tf32::operands,
                         CUDA_ROW(cuda_optimized, sparse_conv, implicit_gemm_fused_sort,
                                  "cuda_optimized/sparse_conv/implicit_gemm_warp_specialized",
                                  "fused sort: unsorted tables are sorted in segments by the "
                                  "launch that packs the weights"))),
          }),
      })};
}
