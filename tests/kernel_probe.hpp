/// @file kernel_probe.hpp
/// @brief Kernels around what rungs are made of, to try it at sizes at which no rung could be
/// tested on the CPU; and one that tells in which order threads run. For cuda_on_cpu.
#pragma once

#include <vector>

/// What row_exclusive_sums() (cuda_optimized/rulebook/shared/bit_ranks.cuh) makes of a table.
struct RowSums {
  std::vector<int> sums;    ///< [rows][columns]
  std::vector<int> totals;  ///< [rows]
};

/// What the parts of pairs (cuda_optimized/sparse_wgrad/shared/pair_parts.cuh) add up to.
struct PairSums {
  int slabs = 0;               ///< Into so many the pairs were cut.
  std::vector<int> seen;       ///< By pair: how many parts have it,
  std::vector<int> tap;        ///< and of which tap they say that it is.
  std::vector<float> of_taps;  ///< [taps][columns]: the sums of pair + column over the tap's pairs.
};

namespace convladder::emulated::kernel_probe {

/// The number of the thread of a block that runs first.
int first_thread(int threads);

/// The sums of the rows of values [rows][columns], by so many blocks of 64 threads: more columns
/// than those take several rounds, as more than 1024 do in the rungs.
RowSums row_sums(int rows, int columns, int blocks, const std::vector<int>& values);

/// Cuts the pairs of taps, pairs_of_taps[k] for tap k, and adds up parts of 4 to 8 of them: where
/// rungs take at least a few million pairs to have two slabs, these take a few dozen.
/// @param wanted parts, as cut_pairs() has it
PairSums pair_sums(const std::vector<int>& pairs_of_taps, int wanted, int columns);

}  // namespace convladder::emulated::kernel_probe
