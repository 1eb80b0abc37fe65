/// @file filtered_hash.cu
/// @brief rulebook, submanifold: a bit for each cell is asked first, and the hash table second.
///
/// - Before: hash_table.cu (each tap asks the table)
/// - After: count_scan_fill.cu (the same look-ups; pairs in order instead of rows)
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Of five taps of a site in a LiDAR sweep, four find nothing. To say "nothing" needs
/// neither key nor row, only a bit. So 32 cells along the last axis share a word, and a small
/// table, hashed by lines of 32 cells, holds the words.
///
///     cells along x    | . . x . x x . . | . . . . . . x . |      (8 for 32)
///     words              00101100          00000010
///     taps of one line         ^ ^ ^                              one word, three answers: x x .
///
/// There are no keys in it: two lines whose homes agree share their word, and a bit may be set for
/// a cell of the other line. That costs a look-up in vain, and no result: a bit that is *not* set
/// is certain, since each site has set its own (a Bloom filter with one hash function). And nobody
/// searches: the home is the answer. (In site_hash.cuh it is what stands under `kFiltered`.)
///
/// **Expect.** Nine words a site instead of 27 sectors; in sorted order, neighbours ask for the
/// same ones, which are in the L1 cache then. The table is asked for the sites that are there, 6.3
/// a site, and for a few more. So it may be half full. One more atomic operation a site when it is
/// filled. On an H200 25 microseconds for 125,562 sites, and 120 for 913,903.
/// Measured: 35 and 194 (spconv, with the same table and masks: 60 and 348), no more than 2 and 30
/// better than without the filter; with rows in no order 37 and 260. In a warp nearly every tap has
/// some lane that finds a site, and 31 that wait for it: memory is spared, waiting is not.
/// **Costs.** 4 to 8 bytes more for each site; otherwise those of hash_table. In a scene without
/// empty cells the words are read in vain.
/// **Try.** Give each word a brick of 4 x 8 cells of the last two axes: how many words does a site
/// ask for then?
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/site_hash.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

Implementation<RulebookProblem> filtered_hash() { return site_hash::rung<true>(); }

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
