#include "ladders/rulebook.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::rulebook_ladder() {
  return {
      "rulebook",
      "the rulebook of a sparse convolution: the input site of each output site and tap",
      [](const Problem& problem) { return rulebook_signature(std::get<RulebookProblem>(problem)); },
      in_order({
          spine(
              "submanifold",
              {
                  CPU_ROW(cpu_reference, rulebook, hash_map, "",
                          "hash map from sites to rows, with a look-up for each tap of each site"),
                  CUDA_ROW(cuda_naive, rulebook, dense_grid, "cpu_reference/rulebook/hash_map",
                           "submanifold: dense grid from cells to rows, one atomic counter per tap "
                           "(spconv 1.x)",
                           /*deterministic=*/false),
                  CUDA_ROW_IN(
                      cuda_optimized, rulebook, submanifold, symmetric,
                      "cuda_naive/rulebook/dense_grid",
                      "submanifold, symmetry: half of the look-ups, and none for the centre tap",
                      /*deterministic=*/false),
                  CUDA_ROW_IN(
                      cuda_optimized, rulebook, submanifold, aggregated_counters,
                      "cuda_optimized/rulebook/submanifold/symmetric",
                      "submanifold, aggregated atomics: one atomic addition per block and tap",
                      /*deterministic=*/false),
                  CUDA_ROW_IN(
                      cuda_optimized, rulebook, submanifold, output_stationary,
                      "cuda_naive/rulebook/dense_grid",
                      "submanifold, output-stationary table: one thread per output looks up "
                      "all taps, without atomic counters"),
                  CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, linear_probing,
                              "cuda_optimized/rulebook/submanifold/output_stationary",
                              "submanifold: hash table of keys with linear probing replaces the "
                              "dense grid"),
                  CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, hash_table,
                              "cuda_optimized/rulebook/submanifold/linear_probing",
                              "submanifold: hash table whose 64-bit slots hold key and row; "
                              "duplicates are found on insertion"),
                  CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, filtered_hash,
                              "cuda_optimized/rulebook/submanifold/hash_table",
                              "submanifold: a bitmap filters the look-ups of the hash table"),
                  CUDA_ROW_IN(
                      cuda_optimized, rulebook, submanifold, count_scan_fill,
                      "cuda_optimized/rulebook/submanifold/filtered_hash",
                      "submanifold: count, prefix sum, fill; ordered lists without atomics"),
                  CUDA_ROW_IN(
                      cuda_optimized, rulebook, submanifold, occupancy_bits,
                      "cuda_optimized/rulebook/submanifold/output_stationary",
                      "submanifold: an occupancy bitmap filters the look-ups in a dense grid "
                      "of rows"),
                  CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, bit_grid,
                              "cuda_optimized/rulebook/submanifold/occupancy_bits",
                              "submanifold: bitmap of cells; a row is the prefix count of its bit "
                              "(its rank)"),
                  CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, paged_bricks,
                              "cuda_optimized/rulebook/submanifold/bit_grid",
                              "submanifold, unsorted sites: one page per brick of cells, allocated "
                              "by the first site in it"),
              }),
          spine(
              "strided",
              {
                  CUDA_ROW(cuda_naive, rulebook, two_phases, "cpu_reference/rulebook/hash_map",
                           "strided: all candidate outputs are sorted, then numbered through a "
                           "dense grid",
                           /*deterministic=*/false),
                  CUDA_ROW_IN(cuda_optimized, rulebook, strided, compact_before_sort,
                              "cuda_naive/rulebook/two_phases",
                              "strided, stream compaction: only candidates that exist are sorted",
                              /*deterministic=*/false),
                  CUDA_ROW_IN(cuda_optimized, rulebook, strided, bit_grid,
                              "cuda_optimized/rulebook/strided/compact_before_sort",
                              "strided: a bitmap of outputs; set bits are distinct and ordered, "
                              "without a sort"),
                  CUDA_ROW_IN(cuda_optimized, rulebook, strided, gather,
                              "cuda_optimized/rulebook/strided/bit_grid",
                              "strided, gather: each output looks up its inputs by bits and ranks, "
                              "and stores once"),
              }),
          alternatives({
              CPU_ROW(cpu_reference, rulebook, sorted_search, "cpu_reference/rulebook/hash_map",
                      "sorted keys and binary search from the outputs: pairs are produced in "
                      "sorted order"),
              CPU_ROW(cpu_reference, rulebook, neighbour_table,
                      "cpu_reference/rulebook/sorted_search",
                      "neighbour table [tap][output], from which every form of a rulebook is read"),
              CUDA_ROW(cuda_optimized, rulebook, neighbour_table,
                       "cuda_optimized/rulebook/strided/compact_before_sort",
                       "every mode: each output fills its column of a neighbour table"),
              CUDA_ROW_IN(cuda_optimized, rulebook, strided, hash_set,
                          "cuda_optimized/rulebook/strided/compact_before_sort",
                          "strided: a hash set removes duplicate outputs before the sort"),
              CUDA_ROW_IN(cuda_optimized, rulebook, strided, input_lists,
                          "cuda_optimized/rulebook/strided/bit_grid",
                          "strided: lists of pairs from the inputs, without a table"),
              CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, cooperative_launch,
                          "cuda_optimized/rulebook/submanifold/bit_grid",
                          "submanifold: clear, insert and look up in one cooperative launch"),
              CUDA_ROW_IN(cuda_optimized, rulebook, submanifold, brick_lists,
                          "cuda_optimized/rulebook/submanifold/count_scan_fill",
                          "submanifold, unsorted sites: mirrored lists in row order, from bricks"),
          }),
      })};
}
