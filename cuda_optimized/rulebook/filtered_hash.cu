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
/// searches: the home is the answer.
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
#include "core/cuda/site_check.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/site_hash.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using Hash = SiteHash<true>;

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: threads stride.

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <int kAxes>
__global__ void fill_table(RulebookProblem book, const std::int32_t* coords, Hash hash,
                           std::int32_t* nbr, std::int32_t* mask) {
  const std::int64_t N = book.sites;
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < N; row += grid_threads) {
    unsigned word = 0;
    site_hash::look_up_taps<kAxes>(
        book, hash, coords, row, 0, book.KV, [&](int k, std::int32_t in_row) {
          nbr[k * N + row] = in_row;
          if (in_row >= 0) word |= 1u << k % 32;
          if (k % 32 == 31 || k == book.KV - 1) {
            mask[row * mask_words(book.KV) + k / 32] = static_cast<std::int32_t>(word);
            word = 0;
          }
        });
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm)
    return "mode subm only: the others must find their sites before they can look them up";
  return site_hash_declines(book);
}

/// The slots, and the errors behind them.
std::size_t workspace_bytes(const RulebookProblem& book) {
  return kBucketBytes + site_hash_bytes<true>(book) + sizeof(SiteErrors);
}

SiteErrors* errors_in(const RulebookProblem& book, const Arguments& arrays) {
  return reinterpret_cast<SiteErrors*>(aligned_workspace(arrays) + site_hash_bytes<true>(book));
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and what the
/// form asks for.
void run(const RulebookProblem& book, const Arguments& arrays) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  const std::int64_t N = book.sites;
  const Hash hash = site_hash_in<true>(book, aligned_workspace(arrays));

  auto* out_coords = arrays.create<std::int32_t>("out_coords", {N, 1 + book.ndim});
  build_site_hash(book, coords, hash, errors_in(book, arrays), out_coords);

  auto* nbr = arrays.create<std::int32_t>("nbr", {book.KV, N});
  auto* mask = arrays.create<std::int32_t>("mask", {N, mask_words(book.KV)});
  constexpr decltype(&fill_table<1>) kOfAxes[kMaxAxes] = {fill_table<1>, fill_table<2>,
                                                          fill_table<3>, fill_table<4>};
  launch(kOfAxes[book.ndim - 1], {blocks_for(N, kThreads, kMaxBlocks), kThreads}, book, coords,
         hash, nbr, mask);
  create_form(book, N, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const Arguments& arrays) {
  require_no_errors_on_device(book, arrays.in<std::int32_t>("coords"), errors_in(book, arrays));
}

}  // namespace

Implementation<RulebookProblem> filtered_hash() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run, .finish = finish};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
