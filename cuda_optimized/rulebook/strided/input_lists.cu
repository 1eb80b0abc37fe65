/// @file input_lists.cu
/// @brief rulebook, strided: input-stationary pair lists, ordered by site, without a table.
///
/// - Before: bit_grid.cu
/// - The bits: shared/bit_ranks.cuh; the lists: shared/site_tiles.cuh, shared/pair_lists.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** With stride 1, nearly nine of ten look-ups of an output find no input. An input
/// needs no such test: the output at its tap exists by definition. One division per axis tells
/// which taps lead to outputs, and only the output's row is looked up. A tap shifts all inputs
/// equally, so lists in the order of the input *sites* are in the order of the outputs.
///
///     inputs, by site        2  3  6  7  9      kernel 3, stride 2, padding 1
///     tap 0, (x + 1) / 2        2     4  5      where x + 1 is even
///     tap 1, x / 2           1     3            where x is
///     tap 2, (x - 1) / 2        1     3  4      where x - 1 is: every list ascends
///
/// One pass numbers both inputs and outputs. An input has as many pairs as the product, over the
/// axes, of its valid taps; so the host allocates the outputs while the lists are counted by tap
/// and tile, and summed.
///
/// **Expect.** On an H200 95 us for a sweep, stride 1 (sweep-k3s1-pairs): 1.09 million outputs, 3.4
/// million pairs, 51 MB of bits cleared and read. 54 us with stride 2 (sweep-k3s2-pairs).
/// @expect on --shape 12,12,12 --sites 512 --mode strided --stride 2 --pad 1 --form pairs
/// @expect lanes.nbr.store 0, there is no table
/// @expect lanes.pairs.store 3 * 1470 = 4410, tap and two rows of 1470 pairs
/// @expect lanes.coords.load 2 * 4 * 512 = 4096, each site once in two kernels
/// **Costs.** A bit for each cell of both grids, 4 bytes for each word. Form pairs only.
/// **Try.** atomicOr returns which bits are new: sum those per tile. What remains of count_bits?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"
#include "cuda_optimized/rulebook/shared/output_taps.cuh"
#include "cuda_optimized/rulebook/shared/pair_lists.cuh"
#include "cuda_optimized/rulebook/shared/site_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_ranks::Count;
using bit_ranks::kMaxBlocks;
using bit_ranks::kThreads;
using bit_ranks::kTileWords;
using bit_ranks::Progress;
using pair_lists::InOut;

constexpr int kListThreads = 256;  ///< Of rulebook_strided_input_lists_count_lists() and
                                   ///< rulebook_strided_input_lists_write_lists().
constexpr int kSumThreads = 1024;  ///< Of rulebook_strided_input_lists_sum_and_place().

/// Sets the bits of all given sites, and of all that they lead to, and adds up the pairs. A row
/// outside, or whose bit is already set, is counted. Any one-dimensional grid.
/// @param given, found bits, all zero
__global__ void rulebook_strided_input_lists_mark_sites(Lattice lattice, const std::int32_t* coords,
                                                        std::uint32_t* given, std::uint32_t* found,
                                                        Progress* progress) {
  unsigned long long pairs = 0;
  for (const std::int64_t row : grid_stride(lattice.sites)) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    mark_site(lattice, site, given, found, &progress->unusable);
    if (is_inside(lattice, site)) pairs += static_cast<unsigned>(taps_that_lead(lattice, site));
  }
  pair_lists::add_up(pairs, &progress->pairs);
}

/// sums [tiles + 1]: the number of bits in all previous tiles; the total is also written to host
/// memory. A block of kThreads, any one-dimensional grid.
__global__ void rulebook_strided_input_lists_count_bits(std::int64_t tiles,
                                                        const std::uint32_t* bits,
                                                        std::uint32_t* sums, Progress* progress,
                                                        Letter<Count>* count) {
  __shared__ int warp_sums[bit_ranks::kWarps];
  bit_ranks::count_tiles(tiles, gridDim.x, bits, sums, warp_sums);
  bit_ranks::scan_tiles(tiles, gridDim.x, sums, progress, count, warp_sums);
}

/// Numbers the bits of both grids: first [words], and the cells by number, each in its own grid. A
/// block of kThreads, any one-dimensional grid.
/// @param bits [tiles]: those of the given sites' grid come first
/// @param cells null: not requested
__global__ void rulebook_strided_input_lists_number_sites(
    std::int64_t tiles, std::int64_t given_tiles, const std::uint32_t* bits,
    const std::uint32_t* sums, std::uint32_t* first, std::uint32_t* cells) {
  __shared__ bit_ranks::TileInShared shared;
  const std::uint32_t given = sums[given_tiles];
  const auto given_cells = static_cast<std::uint32_t>(given_tiles * kTileWords * 32);
  bit_ranks::number_bits(
      tiles, gridDim.x, bits, sums, &shared,
      [&](std::uint32_t word, std::uint32_t number) { first[word] = number; },
      [&](std::uint32_t cell, std::uint32_t number) {
        // Both grids together may have 2^32 cells and more: modulo that, the difference is right.
        if (cells != nullptr) cells[number] = number < given ? cell : cell - given_cells;
      });
}

/// out_coords [M][1 + ndim] of cells [M]. Any one-dimensional grid.
__global__ void rulebook_strided_input_lists_write_sites(Lattice lattice, std::int64_t M,
                                                         const std::uint32_t* cells,
                                                         std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(M))
    write_lattice_site(lattice, found_site(lattice, cells[row]), out_coords, row);
}

/// counts [KV][tiles]: a warp each tile of given sites and line of taps. Any one-dimensional grid
/// of kListThreads.
__global__ void __launch_bounds__(kListThreads)
    rulebook_strided_input_lists_count_lists(GivenSites given, std::int64_t tiles,
                                             std::int32_t* counts) {
  const int of_line = given.lattice.axes[kLast].kernel, lines = given.lattice.KV / of_line;
  const std::int64_t thread = thread_of_grid<kListThreads>();
  const std::int64_t threads = threads_of_grid<kListThreads>();
  for (std::int64_t task = thread / 32; task < tiles * lines; task += threads / 32) {
    const std::int64_t tile = task / lines;
    const int line = static_cast<int>(task % lines);
    const TileLine to(given, tile * kTileSites, line);
    for (int tap = 0; tap < of_line; ++tap) {
      const int hits = to.count(tap);
      if (threadIdx.x % 32 == 0) counts[(line * of_line + tap) * tiles + tile] = hits;
    }
  }
}

/// The first sum_blocks blocks replace the counts [KV][tiles] by the sums of those before in the
/// list of the tap, and write totals [KV]. The others write each given row to its index: rows [N].
/// Blocks of kSumThreads.
/// @param given bits of the given sites, and their numbers
__global__ void __launch_bounds__(kSumThreads)
    rulebook_strided_input_lists_sum_and_place(Lattice lattice, std::int64_t tiles,
                                               unsigned sum_blocks, const std::int32_t* coords,
                                               BitIndex given, std::int32_t* counts,
                                               std::int32_t* totals, std::int32_t* rows) {
  if (blockIdx.x < sum_blocks) {
    row_exclusive_sums<kSumThreads>(lattice.KV, tiles, sum_blocks, counts, totals);
  } else {
    word_places::place_rows<kSumThreads>(lattice, sum_blocks, coords, given, rows);
  }
}

/// pairs [P][3]: each warp writes those of a tile and of a line of taps. Any one-dimensional grid
/// of kListThreads.
/// @param found bits of the found sites, and their numbers, which follow those of the given ones
/// @param places [KV][tiles]: their begins in the list of the tap
__global__ void __launch_bounds__(kListThreads)
    rulebook_strided_input_lists_write_lists(GivenSites given, BitIndex found, bool inverse,
                                             std::int64_t tiles,
                                             const std::int32_t* __restrict__ places,
                                             const std::int32_t* __restrict__ totals,
                                             std::int32_t* __restrict__ pairs) {
  __shared__ InOut staged_by_warp[kListThreads / 32][kTileSites];
  InOut* const staged = staged_by_warp[threadIdx.x / 32];
  const int of_line = given.lattice.axes[kLast].kernel, lines = given.lattice.KV / of_line;
  const std::uint32_t first_found = *given.numbered;
  const std::int64_t thread = thread_of_grid<kListThreads>();
  const std::int64_t threads = threads_of_grid<kListThreads>();
  for (std::int64_t task = thread / 32; task < tiles * lines; task += threads / 32) {
    const std::int64_t tile = task / lines;
    const int first = static_cast<int>(task % lines) * of_line;
    const TileLine to(given, tile * kTileSites, first / of_line);
    std::int32_t rows[kSitesEach];
#pragma unroll
    for (int i = 0; i < kSitesEach; ++i)
      rows[i] = given.row(tile * kTileSites + 32 * i + threadIdx.x % 32);
    std::int64_t list = pair_lists::begin_of_list(totals, first);
    for (int k = first; k < first + of_line; ++k) {
      const std::int32_t place = places[k * tiles + tile], total = totals[k];
      std::int32_t found_rows[kSitesEach];
      to.look_up(k - first, found, first_found, found_rows);
      int count = 0;
#pragma unroll
      for (int i = 0; i < kSitesEach; ++i)
        count = pair_lists::stage(
            found_rows[i] >= 0,
            inverse ? InOut{found_rows[i], rows[i]} : InOut{rows[i], found_rows[i]}, staged, count);
      __syncwarp();  // all pairs are stored before other lanes write them out
      std::int32_t* const own = pairs + (list + place) * kPairColumns;
      pair_lists::visit_words(staged, count, [&](int word, int column, const InOut& pair) {
        own[word] = column == 0 ? k : column == 1 ? pair.in : pair.out;
      });
      list += total;
      __syncwarp();  // all have been written before those of the next tap overwrite them
    }
  }
}

/// The workspace, front to back. Under `inverse` only found sites get numbers.
struct Workspace {
  Progress* progress;
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid, in whole tiles.
  std::uint32_t* found;      ///< The same for the found sites, directly after.
  std::uint32_t* sums;       ///< By numbered tile.
  std::uint32_t* first;      ///< By word of numbered tiles.
  std::uint32_t* cells;      ///< By number; null under `inverse`.
  std::int32_t* rows;        ///< By index; null under `inverse`.
  std::int32_t* counts;      ///< By tap and tile of given sites.
  std::int32_t* totals;      ///< Indexed by tap.
  std::int64_t given_tiles;  ///< Numbered tiles of the given sites' bits.
  std::int64_t tiles;        ///< Numbered tiles of both.
  std::size_t zeroed_bytes;  ///< Leading bytes of the workspace that must be zero before the first
                             ///< launch.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t given_tiles = bit_ranks::tiles_for(key_count(book, book.shape));
  const std::int64_t found_tiles = bit_ranks::tiles_for(key_count(book, book.out_shape));
  Workspace work{};
  work.given_tiles = inverse ? 0 : given_tiles;
  work.tiles = work.given_tiles + found_tiles;
  WorkspaceCutter cutter(begin);
  work.progress = cutter.take<Progress>(1);
  work.given = cutter.take<std::uint32_t>(given_tiles * kTileWords);
  work.found = cutter.take<std::uint32_t>(found_tiles * kTileWords);
  work.zeroed_bytes = cutter.bytes();
  work.sums = cutter.take<std::uint32_t>(work.tiles + 1);
  work.first = cutter.take<std::uint32_t>(work.tiles * kTileWords);
  if (!inverse) {
    work.cells = cutter.take<std::uint32_t>(book.sites + most_found(book));
    work.rows = cutter.take<std::int32_t>(book.sites);
  }
  work.counts = cutter.take<std::int32_t>(book.KV * site_tiles(book));
  work.totals = cutter.take<std::int32_t>(book.KV);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  return small_lattice_supports(book);
}

/// coords [N][1 + ndim] to out_coords [M][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const Lattice lattice(book);
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const bool inverse = book.mode == SparseMode::inverse;
  const std::uint32_t* const bits = inverse ? work.found : work.given;  // of the numbered tiles
  const GivenSites given{lattice, coords, work.sums + work.given_tiles, work.cells, work.rows};
  const std::int64_t tiles = site_tiles(book);
  const std::int64_t tasks = tiles * (book.KV / book.kernel[book.ndim - 1]);
  const LaunchConfig of_tiles{blocks_for(work.tiles, 1, kMaxBlocks), kThreads};
  const LaunchConfig of_lists{blocks_for(tasks, kListThreads / 32, kMaxBlocks), kListThreads};
  const unsigned sum_blocks = blocks_for(book.KV, 1, kMaxBlocks);
  // Under `inverse` given sites have no index.
  const unsigned row_blocks = inverse ? 0 : blocks_for(book.sites, kSumThreads, kMaxBlocks);
  HostMessage<Count> message;

  check(cudaMemsetAsync(work.progress, 0, work.zeroed_bytes, current_stream()));
  launch(rulebook_strided_input_lists_mark_sites,
         {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, lattice, coords, work.given,
         work.found, work.progress);
  launch(rulebook_strided_input_lists_count_bits, of_tiles, work.tiles, bits, work.sums,
         work.progress, message.letter());
  message.expect();
  launch(rulebook_strided_input_lists_number_sites, of_tiles, work.tiles, work.given_tiles, bits,
         work.sums, work.first, work.cells);
  launch(rulebook_strided_input_lists_count_lists, of_lists, given, tiles, work.counts);
  launch(rulebook_strided_input_lists_sum_and_place, {sum_blocks + row_blocks, kSumThreads},
         lattice, tiles, sum_blocks, coords, BitIndex{work.given, work.first}, work.counts,
         work.totals, work.rows);

  const Count count =
      message.received();  // the kernels after rulebook_strided_input_lists_count_bits() are still
                           // running
  if (count.unusable > 0) report_site_errors(book, coords);
  // The counted bits are those of the given sites, too: one for each row, as none repeats.
  const std::int64_t M = inverse ? book.sites : count.found - book.sites;
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  if (inverse) {
    check(cudaMemcpyAsync(
        out_coords, coords,
        static_cast<std::size_t>(M) * static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
        cudaMemcpyDeviceToDevice, current_stream()));
  } else {
    launch(rulebook_strided_input_lists_write_sites,
           {blocks_for(M, kThreads, kMaxBlocks), kThreads}, lattice, M, work.cells + book.sites,
           out_coords);
  }
  auto* pairs = arrays.create("pairs", {count.pairs, kPairColumns});
  const BitIndex found{work.found, work.first + work.given_tiles * kTileWords};
  launch(rulebook_strided_input_lists_write_lists, of_lists, given, found, inverse, tiles,
         work.counts, work.totals, pairs);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(bit_ranks::found_in_words(book), ", numbered in ",
              bit_ranks::tiles_in_words(workspace_at(book, nullptr).tiles), ", ",
              how_many(site_tiles(book), "tile"), " of sites",
              site_tiles(book) > kSumThreads ? " summed in several rounds" : "");
}

}  // namespace

extern const Implementation<RulebookArrays> strided_input_lists = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
