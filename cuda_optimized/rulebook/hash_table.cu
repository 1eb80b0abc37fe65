/// @file hash_table.cu
/// @brief rulebook, submanifold: a hash table of 64-bit slots, and a thread for each output.
///
/// - Before: aggregated_counters.cu
/// - After: filtered_hash.cu
/// - The kernels: site_hash.cuh, which filtered_hash.cu shares
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** A grid of 205 million cells for 125,562 sites is memory for what is not there. A
/// hash table has a few slots a site and no more, so it stays in the L2 cache. The mixed bits of a
/// site's key name its home, the bucket where its search begins; a full bucket sends the search on.
///
///     home of e, g         v
///     buckets   | a . . . | b c d h | f . . . | . . . . |
///     insert e              full      taken, by atomicCAS: | f e . . |
///     find g                full      an empty slot, and no g: there is no g
///
/// - *64 bits.* A slot holds key and row, read and exchanged as one: no key without its row.
/// - *Buckets of 32 bytes*, the least that memory moves: four slots are read at once.
/// - *At most a quarter full.* A warp waits for the longest of its 32 searches; empty slots end it.
///
/// Each output then asks at all its taps, and fills its own column of nbr and its mask: no atomics.
/// **Expect.** Three launches. A LiDAR sweep of 125,562 sites (sweep-subm3-table) has 2^19 slots,
/// 4 MB. A site reads 27 sectors, 109 MB in all, from the L2 cache, and nbr takes 13.6 MB of
/// stores. At 5 TB/s these are 25 us on an H200, and with the other kernels 40 us; 913,903 sites
/// (large-subm3-table) take 230 us.
/// **Costs.** Probes jump through memory. Declined: other modes than subm, whose sites must be
/// found first; keys and rows of more than 63 bits together.
/// **Try.** Let the home be the key's last bits, unmixed, and count the buckets of each search for
/// a plane of sites across the first axis.
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/site_hash.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

Implementation<RulebookProblem> hash_table() { return site_hash::rung<false>(); }

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
