/// @file hash_table.cu
/// @brief rulebook, submanifold: a hash table of 64-bit slots, and a thread for each output.
///
/// - Before: aggregated_counters.cu (a dense grid, and places from atomic counters)
/// - After: filtered_hash.cu (a bit says first whether there is anything to be found)
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** A grid of 205 million cells for 125,562 sites is memory for what is not there. A
/// hash table has a few slots a site and no more, so it stays in the L2 cache. A site's key is
/// mixed until its bits look random, and some of them are its home, the bucket where its search
/// begins; a full bucket sends the search on to the next one. (All code is in site_hash.cuh, as the
/// next rung has the same.)
///
///     home of e, g         v
///     buckets   | a . . . | b c d h | f . . . | . . . . |
///     insert e              full      taken, by atomicCAS: | f e . . |
///     find g                full      an empty slot, and no g: there is no g
///
/// - *64 bits.* A slot holds key and row together: read, compared and exchanged at once. No thread
///   ever sees a key whose row has not been written.
/// - *A quarter full*, at most. There is always an empty slot, so that each search ends. At half,
///   the searches of one thread are still short: 2.5 slots for a key that is not there, which four
///   of five are (Knuth). But a warp waits for the longest of its 32 searches.
/// - *Buckets of 32 bytes*, which is what memory moves at least: four slots are read at once, where
///   a search from slot to slot would wait for each.
/// - *Twice the same site* meets itself in the table: each loser of the two is counted.
///
/// With a look-up at hand each output fills its own column of nbr and its mask, as in
/// neighbour_table.cu: no atomics, and a result that does not depend on the order in the table. The
/// walk over the taps knows the number of axes when it is compiled, and divides by nothing.
///
/// **Expect.** Three launches. A LiDAR sweep of 125,562 sites has 2^19 slots, 4 MB; a site asks for
/// 26 sectors and itself, 109 MB from the L2 cache, and nbr takes 13.6 MB of stores. At 5 TB/s
/// these are 25 microseconds on an H200, and 40 with the other kernels; 913,903 sites take 230.
/// Measured: 37 and 224 (spconv, with the same table and masks: 60 and 348); with rows in no order
/// 39 and 288.
/// **Costs.** Probes jump through memory. Mode subm only: the other modes' sites must be found
/// first. Declined: keys and rows of more than 63 bits together. Errors are counted on the device
/// and reported when it is done, so nothing waits in between, and a CUDA graph can record it all.
///
/// What lost: single slots instead of buckets, half full (88 microseconds for the sweep); and homes
/// that four neighbours along the last axis share, to read one sector for three taps (163, in
/// buckets 57 instead of 43). Arithmetic in 64 bits where 32 do took 5 more. Sites come in clumps,
/// their groups make long runs of full slots, and a warp has always somebody who walks along one.
/// **Try.** Let the home be the key's last bits, unmixed, and count the buckets of each search for
/// a plane of sites across the first axis.
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/site_hash.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

Implementation<RulebookProblem> hash_table() { return site_hash::rung<false>(); }

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
