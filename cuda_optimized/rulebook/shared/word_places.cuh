/// @file word_places.cuh
/// @brief A place for each given row, by its bit: ranges of places for words, in any order.
#pragma once

#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook::word_places {

using bit_ranks::kThreads;
using bit_ranks::kWarps;

/// Gives each word of the given sites' bits a range of places, as long as it has bits: first
/// [words]. The thread of a word's lowest bit asks, and one thread for all of its block: which
/// range it gets does not matter. The blocks from first_block on, of kThreads, share the work.
/// @param placed how many places have been given; 0 at first
/// @param warp_sums [kWarps], shared memory
__device__ inline void place_words(const Lattice& lattice, unsigned first_block,
                                   const std::int32_t* coords, const std::uint32_t* given,
                                   std::uint32_t* placed, std::uint32_t* first, int* warp_sums) {
  __shared__ std::uint32_t start;
  const std::int64_t grid_threads = std::int64_t{gridDim.x - first_block} * kThreads;
  std::int64_t begin = std::int64_t{blockIdx.x - first_block} * kThreads;
  for (; begin < lattice.sites; begin += grid_threads) {
    const std::int64_t row = begin + threadIdx.x;
    std::uint32_t word = 0;
    int places = 0;
    if (row < lattice.sites) {
      const LatticeSite site = lattice_site(lattice, coords, row);
      if (is_inside(lattice, site)) {
        const std::uint32_t cell = given_cell(lattice, site);
        word = cell / 32;
        const std::uint32_t bits = given[word];
        if ((bits & (bit_of(cell) - 1)) == 0) places = __popc(bits);
      }
    }
    int total;
    const int before = block_exclusive_sum<kWarps>(places, warp_sums, &total);
    if (threadIdx.x == 0) start = atomicAdd(placed, static_cast<std::uint32_t>(total));
    __syncthreads();  // the range is known; it is overwritten behind the next sum's barriers
    if (places > 0) first[word] = start + static_cast<std::uint32_t>(before);
  }
}

/// Writes each given row to its place: rows [N]. The blocks from first_block on, of
/// kBlockThreads, share the work.
/// @param given the given sites' bits, and the places of their words
template <int kBlockThreads>
__device__ void place_rows(const Lattice& lattice, unsigned first_block, const std::int32_t* coords,
                           const BitIndex& given, std::int32_t* rows) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x - first_block} * kBlockThreads;
  std::int64_t row = std::int64_t{blockIdx.x - first_block} * kBlockThreads + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    if (!is_inside(lattice, site)) continue;  // bad input, of which the host may not know yet
    const std::uint32_t cell = given_cell(lattice, site);
    const std::uint32_t place = given.rank(cell, given.bits[cell / 32]);
    // Where a site is repeated, which the host may not know yet either, places may lie beyond.
    if (place < static_cast<std::uint32_t>(lattice.sites))
      rows[place] = static_cast<std::int32_t>(row);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook::word_places
