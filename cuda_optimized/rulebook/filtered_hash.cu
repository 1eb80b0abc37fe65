/// @file filtered_hash.cu
/// @brief rulebook, submanifold: a bit for each cell is asked first, and the hash table second.
///
/// - Before: hash_table.cu
/// - After: count_scan_fill.cu
/// - The kernels: site_hash.cuh, with kFiltered true
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Of five taps of a site in a LiDAR sweep, four find nothing. To say "nothing" takes
/// neither key nor row, only a bit. So 32 cells along the last axis, a line, share a word. A small
/// table of words is asked first; the hash of the line's number is the place of its word.
///
///     cells along x    | . . x . x x . . | . . . . . . x . |      (8 for 32)
///     words              00101100          00000010
///     taps of one line           ^ ^ ^                            one word, three answers: x x .
///
/// There are no keys in it: two lines of cells with the same home share their word, and a bit may
/// be set for a cell of the other line. That costs a look-up in vain, but no wrong result: a bit
/// that is *not* set is certain, since each site has set its own (a Bloom filter with one hash
/// function). And there is no search: the home is the answer.
///
/// **Expect.** Some nine words a site instead of 27 sectors; in sorted order, neighbours ask for
/// the same words, which are then in the L1 cache. The hash table is asked for the sites that are
/// there, 6.3 a site, and for a few more. One more atomic operation a site when the table is
/// filled. On an H200 25 us for 125,562 sites (sweep-subm3-table), and 120 us for 913,903
/// (large-subm3-table).
/// **Costs.** 4 to 8 bytes more for each site; otherwise those of hash_table.cu. In a scene without
/// empty cells the words are read in vain.
/// **Try.** Give each word a brick of 4 x 8 cells of the last two axes: how many words does a site
/// ask for then?
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/site_hash.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

Implementation<RulebookProblem> filtered_hash() { return site_hash::rung<true>(); }

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
