#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(RulebookProblem, cpu_reference, rulebook, hash_map)
CPU_RUNG(RulebookProblem, cpu_reference, rulebook, sorted_search)
CUDA_RUNG(RulebookProblem, cuda_naive, rulebook, dense_grid)
CUDA_RUNG(RulebookProblem, cuda_naive, rulebook, two_phases)
CUDA_RUNG(RulebookProblem, cuda_optimized, rulebook, symmetric)
CUDA_RUNG(RulebookProblem, cuda_optimized, rulebook, compact_before_sort)
CUDA_RUNG(RulebookProblem, cuda_optimized, rulebook, neighbour_table)

convladder::Ladder convladder::rulebook_ladder() {
  return {
      "rulebook",
      "which input site of a sparse convolution meets which output site, at which tap",
      [](const Problem& problem) { return rulebook_signature(std::get<RulebookProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, rulebook, hash_map, "",
                  "a hash map from sites to rows, asked once for each tap of each site"),
          CPU_ROW(cpu_reference, rulebook, sorted_search, "cpu_reference/rulebook/hash_map",
                  "sorted keys and binary search, asked by outputs: the pairs come out sorted"),
          CUDA_ROW(cuda_naive, rulebook, dense_grid, "cpu_reference/rulebook/hash_map",
                   "submanifold: a dense grid from cells to rows, an atomic counter for each tap",
                   false),
          CUDA_ROW(cuda_naive, rulebook, two_phases, "cpu_reference/rulebook/hash_map",
                   "new sites: all candidates are sorted, then numbered through a grid", false),
          CUDA_ROW(cuda_optimized, rulebook, symmetric, "cuda_naive/rulebook/dense_grid",
                   "submanifold: half of the look-ups by symmetry, the centre for free", false),
          CUDA_ROW(cuda_optimized, rulebook, compact_before_sort, "cuda_naive/rulebook/two_phases",
                   "new sites: candidates are counted first, and only real ones sorted", false),
          CUDA_ROW(cuda_optimized, rulebook, neighbour_table,
                   "cuda_optimized/rulebook/compact_before_sort",
                   "every mode: each output fills its column of a table, which orders the pairs"),
      }};
}
