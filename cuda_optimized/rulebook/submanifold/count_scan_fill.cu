/// @file count_scan_fill.cu
/// @brief rulebook, submanifold: count, prefix sum, fill; ordered lists without atomics.
///
/// - Before: filtered_hash.cu
/// - After: brick_lists.cu
/// - The look-ups: shared/site_hash.cuh; how a warp stores pairs: shared/pair_lists.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** The place of a pair in its list is the number of pairs before it. An atomic
/// counter returns how many requests came earlier, which differs from run to run. A prefix sum over
/// counts is the same in every run. Hence three steps:
///
///     count   block b looks up its chunk of rows at all taps,         tap 0:  2  0  3  1
///             and keeps the pairs of each tap in a list of its own    tap 1:  4  4  4  3
///     scan    exclusive sums over the chunks, tap by tap              tap 0:  0  2  2  5 |  6
///             (and the total of each tap; all totals sum to P)        tap 1:  0  4  8 12 | 15
///     fill    each list moves to its place: 6 + 8 for block 2's at tap 1
///
/// **Expect.** The 25 us of filtered_hash.cu for sweep-subm3-pairs without the stores of nbr, 2 us
/// for the sums and 5 us to move 0.79 million pairs: 30 us in five launches on an H200, and 170 us
/// for large-subm3-pairs. The host waits 15 us more for P.
/// @expect lanes.nbr.store 0, there is no table
/// @expect lanes.pairs.store 3 * 3838 = 11514, tap and two rows of 3838 pairs
/// @expect launches 5
/// **Costs.** 8 * KV * N bytes of workspace, most of it never touched. Not supported: other forms
/// than pairs, other modes than subm, keys and rows of more than 63 bits together.
/// **Try.** Replace the second kernel by exclusive_sum() of core/cuda/algorithms.hpp. What does the
/// last kernel no longer need to add, and what does the library cost for 13,000 counts?
#include <numeric>
#include <vector>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/pair_lists.cuh"
#include "cuda_optimized/rulebook/shared/site_hash.cuh"
#include "cuda_optimized/rulebook/shared/site_taps.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using pair_lists::InOut;

constexpr int kThreads = 256;                 ///< Also the rows of a tile. A multiple of 32.
constexpr int kWarps = kThreads / 32;         ///< Per block.
constexpr int kMaxChunks = 640;               ///< Parts of the rows: what an H200 works on at once.
constexpr int kTapsAtOnce = 32;               ///< Their rows of a tile fill 32 KB of shared memory.
constexpr unsigned kWholeWarp = 0xffffffff;   ///< Mask of all lanes.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.

/// The rows, divided among blocks.
struct Chunks {
  int count;          ///< at most kMaxChunks
  int tiles;          ///< of kThreads rows each; the last chunk may have fewer
  std::int64_t rows;  ///< of a chunk
};

/// Clears the table and the filter, forgets errors, and copies coords [N][1 + ndim]: all that has
/// no order. Any one-dimensional grid.
__global__ void rulebook_submanifold_count_scan_fill_prepare(RulebookProblem book,
                                                             const std::int32_t* coords,
                                                             SiteHash hash, SiteFilter filter,
                                                             SiteErrors* errors,
                                                             std::int32_t* out_coords) {
  if (thread_of_grid() == 0) *errors = SiteErrors{};
  for (const std::int64_t i : grid_stride(hash.capacity() / 2)) hash.empty(i);
  for (const std::int64_t i : grid_stride(filter.size())) filter.words[i] = 0;
  const std::int64_t numbers = std::int64_t{book.sites} * (1 + book.ndim);
  for (const std::int64_t i : grid_stride(numbers)) out_coords[i] = coords[i];
}

/// Inserts all sites; those outside of the grid are counted instead. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_count_scan_fill_insert_sites(RulebookProblem book,
                                                                  const std::int32_t* coords,
                                                                  SiteHash hash, SiteFilter filter,
                                                                  SiteErrors* errors) {
  for (const std::int64_t i : grid_stride(book.sites)) {
    const auto row = static_cast<std::int32_t>(i);
    const GivenSite<kAxes> site(book, coords, row);
    if (site.inside) {
      const std::uint64_t key = site.key(book);
      filter.set(key);
      hash.insert(key, row, errors);
    } else {
      atomicAdd(&errors->outside, 1);
      atomicMin(&errors->first_outside, row);
    }
  }
}

/// Looks up all taps of all rows. found [KV][N]: the pairs of tap k in a chunk begin at [k][first
/// row of the chunk], in order of their outputs; counts [KV][chunks]: how many. Any one-dimensional
/// grid of kThreads.
template <int kAxes>
__global__ void rulebook_submanifold_count_scan_fill_find_pairs(RulebookProblem book, Chunks chunks,
                                                                const std::int32_t* coords,
                                                                SiteHash hash, SiteFilter filter,
                                                                InOut* found,
                                                                std::int32_t* counts) {
  // [taps at once][kThreads]: the input row, or -1, of each tap and row of a tile
  auto* in_rows = dynamic_shared<std::int32_t>();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  for (int chunk = static_cast<int>(blockIdx.x); chunk < chunks.count;
       chunk += static_cast<int>(gridDim.x)) {
    const std::int64_t begin = chunk * chunks.rows;
    for (int first = 0; first < book.KV; first += kTapsAtOnce) {
      const int last = first + kTapsAtOnce < book.KV ? first + kTapsAtOnce : book.KV;
      int count[kTapsAtOnce / kWarps] = {};  // so far, of the taps that this warp writes
      for (std::int64_t tile = begin; tile < begin + chunks.rows && tile < book.sites;
           tile += kThreads) {
        const std::int64_t row = tile + thread;
        if (row < book.sites) {
          const GivenSite<kAxes> site(book, coords, row);
          std::uint64_t line = ~std::uint64_t{0};  // whose word is held: none
          std::uint32_t word = 0;
          // For each tap k of these: the lambda, with the key of the cell that k leads to. A word
          // of the filter is loaded once for a line of taps; only what it does not rule out is
          // looked up in the hash table.
          visit_taps(book, site, first, last, [&](int k, bool inside, std::uint64_t key) {
            if (inside && key / 32 != line) {
              line = key / 32;
              word = *filter.word_of(line);
            }
            const bool asks = inside && (word >> key % 32 & 1) != 0;
            in_rows[(k - first) * kThreads + thread] = asks ? hash.row_of(key) : -1;
          });
        } else {
          for (int k = first; k < last; ++k) in_rows[(k - first) * kThreads + thread] = -1;
        }
        __syncthreads();  // all taps of the tile are stored before a warp reads those of all rows
        for (int j = 0; j < kTapsAtOnce / kWarps; ++j) {
          const int k = first + warp + j * kWarps;
          if (k >= last) break;
          for (int base = 0; base < kThreads; base += 32) {
            const std::int32_t in = in_rows[(k - first) * kThreads + base + lane];
            const unsigned hits = __ballot_sync(kWholeWarp, in >= 0);
            const int rank = count[j] + __popc(hits & ((1u << lane) - 1));
            if (in >= 0)
              found[k * std::int64_t{book.sites} + begin + rank] = {
                  in, static_cast<std::int32_t>(tile) + base + lane};
            count[j] += __popc(hits);
          }
        }
        __syncthreads();  // all warps have read before the next tile's rows overwrite these
      }
      for (int j = 0; j < kTapsAtOnce / kWarps; ++j) {
        const int k = first + warp + j * kWarps;
        if (k < last && lane == 0) counts[std::int64_t{k} * chunks.count + chunk] = count[j];
      }
    }
  }
}

/// Replaces the counts [KV][chunks] of each tap by the sums of those before, and writes totals
/// [KV]. Any one-dimensional grid; a block, with a thread for each chunk, sums up a tap.
__global__ void rulebook_submanifold_count_scan_fill_sum_counts(int KV, int chunks,
                                                                std::int32_t* counts,
                                                                std::int32_t* totals) {
  __shared__ std::int32_t warp_sums[kMaxChunks / 32];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  for (int k = static_cast<int>(blockIdx.x); k < KV; k += static_cast<int>(gridDim.x)) {
    std::int32_t* of_tap = counts + std::int64_t{k} * chunks;
    const std::int32_t own = thread < chunks ? of_tap[thread] : 0;
    std::int32_t sum = own;  // of the lanes up to this one
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t before = __shfl_up_sync(kWholeWarp, sum, distance);
      if (lane >= distance) sum += before;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();  // all warps have summed before any thread adds up
    for (int before = 0; before < warp; ++before) sum += warp_sums[before];
    if (thread < chunks) of_tap[thread] = sum - own;
    if (threadIdx.x == blockDim.x - 1) totals[k] = sum;
    __syncthreads();  // all have added up before the next tap's sums overwrite these
  }
}

/// pairs [P][3]: each warp moves up to kThreads pairs of a tap and chunk to their final index.
/// offsets [KV][chunks]: where they begin among the tap's. Any grid of kThreads, taps along y.
__global__ void rulebook_submanifold_count_scan_fill_fill_pairs(RulebookProblem book, Chunks chunks,
                                                                const InOut* found,
                                                                const std::int32_t* offsets,
                                                                const std::int32_t* totals,
                                                                std::int32_t* pairs) {
  const int part = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const int chunk = part / chunks.tiles, skip = part % chunks.tiles * kThreads;
  if (chunk >= chunks.count) return;
  for (int k = static_cast<int>(blockIdx.y); k < book.KV; k += static_cast<int>(gridDim.y)) {
    const std::int32_t* of_tap = offsets + std::int64_t{k} * chunks.count;
    const std::int32_t begin = of_tap[chunk];
    const std::int32_t end = chunk + 1 < chunks.count ? of_tap[chunk + 1] : totals[k];
    const int left = end - begin - skip, count = left < kThreads ? left : kThreads;
    if (count <= 0) continue;
    const std::int64_t place = pair_lists::begin_of_list(totals, k) + begin + skip;
    const InOut* from = found + k * std::int64_t{book.sites} + chunk * chunks.rows + skip;
    move_pairs(k, from, count, pairs + place * kPairColumns);
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  if (book.mode != SparseMode::subm)
    return "mode subm only: the others must find their sites before they can look them up";
  return site_hash_declines(book);
}

constexpr std::int64_t kErrorNumbers = sizeof(SiteErrors) / sizeof(std::int32_t);

/// Layout of the workspace, in order of addresses.
struct Workspace {
  SiteHash hash;
  SiteFilter filter;
  InOut* found;           ///< [KV][N]
  std::int32_t* numbers;  ///< The errors, followed by the totals [KV]: one copy for both.
  std::int32_t* counts;   ///< [KV][chunks]
  std::size_t bytes;      ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t tiles = ceil_div<std::int64_t>(book.sites, kThreads);
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.hash = cut_site_hash(book, &cutter);
  work.filter = cut_site_filter(work.hash, &cutter);
  work.found = cutter.take<InOut>(std::int64_t{book.KV} * book.sites);
  work.numbers = cutter.take<std::int32_t>(kErrorNumbers + book.KV);
  work.counts = cutter.take<std::int32_t>(book.KV * std::min<std::int64_t>(kMaxChunks, tiles));
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

Chunks chunks_of(const RulebookProblem& book) {
  const std::int64_t tiles = ceil_div<std::int64_t>(book.sites, kThreads);
  const std::int64_t most = blocks_for(tiles, 1, kMaxChunks);
  if (most == 0) return {};
  const std::int64_t each = ceil_div(tiles, most);
  return {static_cast<int>(ceil_div(tiles, each)), static_cast<int>(each), each * kThreads};
}

/// The number of pairs. The host waits for it, and for the errors.
/// @throws BadInput if there are errors
std::int64_t counted_pairs(const RulebookProblem& book, const std::int32_t* coords,
                           const Workspace& work) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(kErrorNumbers + book.KV));
  download(work.numbers, numbers.size(), numbers.data());
  const SiteErrors found{numbers[0], numbers[1], numbers[2], numbers[3]};
  if (found.outside != 0 || found.duplicates != 0)
    require_no_errors_on_device(book, coords, reinterpret_cast<SiteErrors*>(work.numbers));
  return std::accumulate(numbers.begin() + kErrorNumbers, numbers.end(), std::int64_t{0});
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const auto& [hash, filter, found, numbers, counts, bytes] = work;
  auto* errors = reinterpret_cast<SiteErrors*>(numbers);
  std::int32_t* totals = numbers + kErrorNumbers;
  const Chunks chunks = chunks_of(book);

  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  const unsigned slot_blocks = blocks_for(hash.capacity() / 2, kThreads, kMaxBlocks);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  constexpr decltype(&rulebook_submanifold_count_scan_fill_insert_sites<1>) kInsert[kMaxAxes] = {
      rulebook_submanifold_count_scan_fill_insert_sites<1>,
      rulebook_submanifold_count_scan_fill_insert_sites<2>,
      rulebook_submanifold_count_scan_fill_insert_sites<3>,
      rulebook_submanifold_count_scan_fill_insert_sites<4>};
  launch(rulebook_submanifold_count_scan_fill_prepare, {slot_blocks, kThreads}, book, coords, hash,
         filter, errors, out_coords);
  launch(kInsert[book.ndim - 1], {row_blocks, kThreads}, book, coords, hash, filter, errors);
  constexpr decltype(&rulebook_submanifold_count_scan_fill_find_pairs<1>) kFind[kMaxAxes] = {
      rulebook_submanifold_count_scan_fill_find_pairs<1>,
      rulebook_submanifold_count_scan_fill_find_pairs<2>,
      rulebook_submanifold_count_scan_fill_find_pairs<3>,
      rulebook_submanifold_count_scan_fill_find_pairs<4>};
  const std::size_t shared =
      static_cast<std::size_t>(std::min(book.KV, kTapsAtOnce)) * kThreads * sizeof *counts;
  launch(kFind[book.ndim - 1], {blocks_for(chunks.count, 1, kMaxBlocks), kThreads, shared}, book,
         chunks, coords, hash, filter, found, counts);
  const int sum_threads = 32 * std::max(ceil_div(chunks.count, 32), 1);  // whole warps
  launch(rulebook_submanifold_count_scan_fill_sum_counts,
         {blocks_for(book.KV, 1, kMaxBlocks), sum_threads}, book.KV, chunks.count, counts, totals);

  const std::int64_t P = counted_pairs(book, coords, work);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  const dim3 grid(blocks_for(std::int64_t{chunks.count} * chunks.tiles, kWarps),
                  blocks_for(book.KV, 1, kMaxGridYZ));
  launch(rulebook_submanifold_count_scan_fill_fill_pairs, {grid, kThreads}, book, chunks, found,
         counts, totals, pairs);
}

std::string choice_in_words(const RulebookProblem& book) {
  const Chunks chunks = chunks_of(book);
  return text(book.ndim, book.ndim == 1 ? " axis, " : " axes, ", how_many(chunks.count, "chunk"),
              chunks.tiles > 1 ? " of several tiles" : "",
              book.KV > kTapsAtOnce ? ", taps in several rounds" : "");
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_count_scan_fill = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
