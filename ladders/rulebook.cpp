#include "ladders/rulebook.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::rulebook_ladder() {
  return {
      "rulebook",
      "which input site of a sparse convolution meets which output site, at which tap",
      [](const Problem& problem) { return rulebook_signature(std::get<RulebookProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, rulebook, hash_map, "",
                  "a hash map from sites to rows, asked once for each tap of each site"),
          branch("cpu_reference/rulebook/hash_map",
                 CPU_ROW(
                     cpu_reference, rulebook, sorted_search, "cpu_reference/rulebook/hash_map",
                     "sorted keys and binary search, asked by outputs: the pairs come out sorted")),
          CPU_ROW(cpu_reference, rulebook, neighbour_table, "cpu_reference/rulebook/sorted_search",
                  "a table of neighbours, from which every form of a rulebook is read"),
          CUDA_ROW(cuda_naive, rulebook, dense_grid, "cpu_reference/rulebook/hash_map",
                   "submanifold: a dense grid from cells to rows, an atomic counter for each tap",
                   false),
          branch("cpu_reference/rulebook/hash_map",
                 CUDA_ROW(cuda_naive, rulebook, two_phases, "cpu_reference/rulebook/hash_map",
                          "new sites: all candidates are sorted, then numbered through a grid",
                          false)),
          CUDA_ROW(cuda_optimized, rulebook, symmetric, "cuda_naive/rulebook/dense_grid",
                   "submanifold: half of the look-ups by symmetry, the centre for free", false),
          CUDA_ROW(
              cuda_optimized, rulebook, aggregated_counters, "cuda_optimized/rulebook/symmetric",
              "submanifold: a block counts its hits itself, one atomic a block and tap", false),
          branch(
              "cuda_optimized/rulebook/aggregated_counters",
              CUDA_ROW(cuda_optimized, rulebook, hash_table,
                       "cuda_optimized/rulebook/aggregated_counters",
                       "submanifold: a hash table of 64-bit slots, and a thread for each output")),
          CUDA_ROW(cuda_optimized, rulebook, filtered_hash, "cuda_optimized/rulebook/hash_table",
                   "submanifold: a bit for each cell is asked first, and the hash table second"),
          branch("cuda_optimized/rulebook/filtered_hash",
                 CUDA_ROW(
                     cuda_optimized, rulebook, count_scan_fill,
                     "cuda_optimized/rulebook/filtered_hash",
                     "submanifold: lists counted, summed up and filled: in order without atomics")),
          CUDA_ROW(cuda_optimized, rulebook, compact_before_sort, "cuda_naive/rulebook/two_phases",
                   "new sites: candidates are counted first, and only real ones sorted", false),
          branch(
              "cuda_optimized/rulebook/compact_before_sort",
              CUDA_ROW(
                  cuda_optimized, rulebook, neighbour_table,
                  "cuda_optimized/rulebook/compact_before_sort",
                  "every mode: each output fills its column of a table, which orders the pairs")),
          branch(
              "cuda_optimized/rulebook/compact_before_sort",
              CUDA_ROW(cuda_optimized, rulebook, hash_set_of_outputs,
                       "cuda_optimized/rulebook/compact_before_sort",
                       "new sites: a hash set keeps each output once, and only those are sorted")),
          branch(
              "cuda_optimized/rulebook/hash_set_of_outputs",
              CUDA_ROW(
                  cuda_optimized, rulebook, bit_grid_of_outputs,
                  "cuda_optimized/rulebook/hash_set_of_outputs",
                  "new sites: a bit for each cell; set bits are distinct and in order, unsorted")),
          branch(
              "cuda_optimized/rulebook/bit_grid_of_outputs",
              CUDA_ROW(
                  cuda_optimized, rulebook, gather, "cuda_optimized/rulebook/bit_grid_of_outputs",
                  "new sites: each output looks its inputs up in bits and ranks, and stores once")),
          branch("cuda_optimized/rulebook/bit_grid_of_outputs",
                 CUDA_ROW(cuda_optimized, rulebook, lists_of_inputs,
                          "cuda_optimized/rulebook/bit_grid_of_outputs",
                          "new sites: lists of pairs from the inputs' side, without a table")),
          branch("cuda_optimized/rulebook/hash_table",
                 CUDA_ROW(cuda_optimized, rulebook, bit_grid, "cuda_optimized/rulebook/symmetric",
                          "submanifold: one bit a cell, and rows by counting the bits before")),
          branch(
              "cuda_optimized/rulebook/bit_grid",
              CUDA_ROW(cuda_optimized, rulebook, hash_of_runs, "cuda_optimized/rulebook/symmetric",
                       "submanifold: a hash table of runs of 32 cells, rows by counting bits")),
          CUDA_ROW(cuda_optimized, rulebook, fused, "cuda_optimized/rulebook/hash_of_runs",
                   "submanifold: clear, enter and look up in one cooperative launch"),
          CUDA_ROW(cuda_optimized, rulebook, paged_bit_grid, "cuda_optimized/rulebook/fused",
                   "submanifold: sites in any order, in the grid of sorted ones, by pages of rows"),
          branch(
              "cuda_optimized/rulebook/paged_bit_grid",
              CUDA_ROW(cuda_optimized, rulebook, paged_bricks,
                       "cuda_optimized/rulebook/paged_bit_grid",
                       "submanifold: a page for each brick of cells, which its first site takes")),
          branch(
              "cuda_optimized/rulebook/count_scan_fill",
              CUDA_ROW(
                  cuda_optimized, rulebook, mirrored_lists, "cuda_optimized/rulebook/fused",
                  "submanifold: lists of sorted sites serve two taps each, and are counted first")),
          branch("cuda_optimized/rulebook/mirrored_lists",
                 CUDA_ROW(cuda_optimized, rulebook, lists_of_bricks,
                          "cuda_optimized/rulebook/paged_bricks",
                          "submanifold: mirrored lists in the order of rows, whatever that is")),
      }};
}
