/// @file lists_of_inputs.cu
/// @brief rulebook, new sites: lists of pairs from the inputs' side, without a table.
///
/// - Before: gather.cu
/// - The lists: pair_lists.cuh; the bits: bit_grid.cuh, as in bit_grid_of_outputs.cu
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** Ask the outputs of a sweep which inputs they have, and with stride 1 nearly nine
/// of ten questions have no answer. An input need not ask *whether* an output is there: its tap
/// makes it be there. A division an axis tells which taps lead somewhere, and only the output's row
/// is looked up. A tap moves all inputs the same way: gone through in the order of their *sites*,
/// they give lists in the order of the outputs.
///
///     inputs, by site        2  3  6  7  9      kernel 3, stride 2, padding 1
///     tap 0, (x + 1) / 2        2     4  5      where x + 1 is even
///     tap 1, x / 2           1     3            where x is
///     tap 2, (x - 1) / 2        1     3  4      where x - 1 is: every list ascends
///
/// The inputs' bits, which find repeated sites, have that order. The outputs' bits lie behind, and
/// one pass numbers both: places of inputs, then rows of outputs. The number of pairs is known
/// before any list: an input has the product, over the axes, of the taps that lead somewhere. So
/// the host creates the outputs while the lists are counted by tap and tile, and summed.
///
/// **Expect.** On an H200 95 us for a sweep, stride 1 (sweep-k3s1-pairs): 1.09 million outputs,
/// 3.4 million pairs, 51 MB of bits cleared and read. 54 us with stride 2 (sweep-k3s2-pairs).
/// **Costs.** A bit for each cell of both grids, 4 bytes for each word, of which few are touched.
/// The host waits once. Declined: other forms than pairs, and as bit_grid_of_outputs.cu.
/// **Try.** Most tiles of bits are empty, yet all are read. The answers of atomicOr say how many
/// bits are new: add those to the tile's sum. What is left of count_bits?
#include "core/cuda/host_message.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/bit_grid.cuh"
#include "cuda_optimized/rulebook/block_sum.cuh"
#include "cuda_optimized/rulebook/pair_lists.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_grid::kMaxBlocks;
using bit_grid::kThreads;
using bit_grid::kTileWords;
using bit_grid::kWholeWarp;
using bit_grid::Progress;
using pair_lists::InOut;

constexpr int kListThreads = 256;            ///< Of count_lists() and write_lists().
constexpr int kSumThreads = 1024;            ///< Of sum_and_place().
constexpr int kSitesEach = 4;                ///< Of a lane: their loads are in flight together.
constexpr int kTileSites = 32 * kSitesEach;  ///< Of a warp.
constexpr int kLast = kMaxAxes - 1;          ///< The innermost axis.

/// The given sites in the order of the lists.
struct GivenSites {
  Lattice lattice;
  const std::int32_t* coords;     ///< [N][1 + ndim]
  const std::uint32_t* numbered;  ///< How many have numbers, at most N. Under `inverse` none has.
  const std::uint32_t* cells;     ///< [*numbered] in order; null under `inverse`: as in coords.
  const std::int32_t* rows;       ///< [*numbered] by place; null under `inverse`.

  /// How many places there are. Of bad input it may be fewer than N.
  __device__ std::int64_t count() const { return cells != nullptr ? *numbered : lattice.sites; }
  /// The site at a place. The sample of one outside of the grid is -1.
  __device__ LatticeSite site(std::int64_t place) const {
    if (cells != nullptr) return given_site(lattice, cells[place]);
    LatticeSite site = lattice_site(lattice, coords, place);
    if (!is_inside(lattice, site)) site.batch = -1;
    return site;
  }
  /// Its row of coords.
  __device__ std::int32_t row(std::int64_t place) const {
    return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);
  }
};

/// A tile of given sites and a line of taps along the innermost axis: where those lead, as one lane
/// of the tile's warp sees it.
class TileLine {
 public:
  __device__ TileLine(const GivenSites& given, std::int64_t first_place, int line)
      : lattice_(given.lattice) {
    int taps[kLast];  // along the outer axes
#pragma unroll
    for (int axis = kLast - 1; axis >= 0; --axis) {
      taps[axis] = line % lattice_.axes[axis].kernel;
      line /= lattice_.axes[axis].kernel;
    }
    const std::int64_t places = given.count();
#pragma unroll
    for (int i = 0; i < kSitesEach; ++i) {
      const std::int64_t place = first_place + 32 * i + threadIdx.x % 32;
      lines_[i] = -1;
      at_[i] = 0;
      if (place >= places) continue;
      const LatticeSite site = given.site(place);
      int to = site.batch;
#pragma unroll
      for (int axis = 0; axis < kLast; ++axis) {
        const int at = to < 0 ? -1 : lattice_.found_from_given(axis, site.at[axis], taps[axis]);
        to = at < 0 ? -1 : to * lattice_.axes[axis].found + at;
      }
      lines_[i] = to;
      if (to >= 0) at_[i] = site.at[kLast];
    }
  }

  /// The found cell where tap `tap` of the line leads site `i` of the lane, or -1.
  __device__ int cell(int i, int tap) const {
    const int at = lattice_.found_from_given(kLast, at_[i], tap);
    return lines_[i] < 0 || at < 0 ? -1 : lines_[i] * lattice_.axes[kLast].found + at;
  }

 private:
  const Lattice& lattice_;
  int lines_[kSitesEach];  ///< The cells of the outer axes, or -1.
  int at_[kSitesEach];     ///< Where the sites are along the innermost axis.
};

/// How many taps lead a given site, which lies inside, to a found cell. The taps of one axis that
/// do meet all those of the others.
__device__ int taps_that_lead(const Lattice& lattice, const LatticeSite& site) {
  const SiteRuns runs(lattice, site);
  int taps = 1;
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const LatticeAxis& along = lattice.axes[axis];
    int of_axis = 0, found = runs.axes[axis].found;
    for (int k = runs.axes[axis].tap; k < along.kernel; k += along.tap_step) {
      if (found >= 0 && found < along.found) ++of_axis;
      found += along.found_step;
    }
    taps *= of_axis;
  }
  return taps;
}

/// bit_grid::mark_sites(), and adds up the pairs. Any one-dimensional grid.
__global__ void mark_and_count(Lattice lattice, const std::int32_t* coords, std::uint32_t* given,
                               std::uint32_t* found, Progress* progress) {
  __shared__ unsigned long long pairs_of_block;
  if (threadIdx.x == 0) pairs_of_block = 0;
  __syncthreads();  // it is 0 before any warp adds to it
  unsigned long long pairs = 0;
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    bit_grid::mark_site(lattice, site, given, found, progress);
    if (is_inside(lattice, site)) pairs += static_cast<unsigned>(taps_that_lead(lattice, site));
  }
  for (int distance = 16; distance > 0; distance /= 2)
    pairs += __shfl_xor_sync(kWholeWarp, pairs, distance);
  if (threadIdx.x % 32 == 0) atomicAdd(&pairs_of_block, pairs);
  __syncthreads();  // all warps have added theirs
  if (threadIdx.x == 0) atomicAdd(&progress->pairs, pairs_of_block);
}

/// Numbers the bits of both grids: first [words], and the cells by number, each in its own grid. A
/// block of kThreads, any one-dimensional grid.
/// @param bits [tiles]: those of the given sites' grid come first
/// @param cells null: not asked for
__global__ void number_sites(std::int64_t tiles, std::int64_t given_tiles,
                             const std::uint32_t* bits, const std::uint32_t* sums,
                             std::uint32_t* first, std::uint32_t* cells) {
  __shared__ bit_grid::TileInShared shared;
  const std::uint32_t given = sums[given_tiles];
  const auto given_cells = static_cast<std::uint32_t>(given_tiles * kTileWords * 32);
  bit_grid::number_bits(
      tiles, gridDim.x, bits, sums, &shared,
      [&](std::uint32_t word, std::uint32_t number) { first[word] = number; },
      [&](std::uint32_t cell, std::uint32_t number) {
        // Both grids together may have 2^32 cells and more: modulo that, the difference is right.
        if (cells != nullptr) cells[number] = number < given ? cell : cell - given_cells;
      });
}

/// counts [KV][tiles]: a warp each tile of given sites and line of taps. Any one-dimensional grid
/// of kListThreads.
__global__ void __launch_bounds__(kListThreads)
    count_lists(GivenSites given, std::int64_t tiles, std::int32_t* counts) {
  const int of_line = given.lattice.axes[kLast].kernel, lines = given.lattice.KV / of_line;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kListThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kListThreads;
  for (std::int64_t task = thread / 32; task < tiles * lines; task += threads / 32) {
    const std::int64_t tile = task / lines;
    const int line = static_cast<int>(task % lines);
    const TileLine to(given, tile * kTileSites, line);
    for (int tap = 0; tap < of_line; ++tap) {
      int hits = 0;
#pragma unroll
      for (int i = 0; i < kSitesEach; ++i)
        hits += __popc(__ballot_sync(kWholeWarp, to.cell(i, tap) >= 0));
      if (threadIdx.x % 32 == 0) counts[(line * of_line + tap) * tiles + tile] = hits;
    }
  }
}

/// The first sum_blocks blocks replace the counts [KV][tiles] by the sums of those before in the
/// list of the tap, and write totals [KV]. The others write each given row to its place: rows [N].
/// Blocks of kSumThreads.
/// @param given bits of the given sites, and their numbers
__global__ void __launch_bounds__(kSumThreads)
    sum_and_place(Lattice lattice, std::int64_t tiles, unsigned sum_blocks,
                  const std::int32_t* coords, BitIndex given, std::int32_t* counts,
                  std::int32_t* totals, std::int32_t* rows) {
  if (blockIdx.x < sum_blocks) {
    row_exclusive_sums<kSumThreads>(lattice.KV, tiles, sum_blocks, counts, totals);
    return;
  }
  const std::int64_t grid_threads = std::int64_t{gridDim.x - sum_blocks} * kSumThreads;
  std::int64_t row = std::int64_t{blockIdx.x - sum_blocks} * kSumThreads + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    if (!is_inside(lattice, site)) continue;  // bad input, of which the host may not know yet
    const std::uint32_t cell = given_cell(lattice, site);
    rows[given.rank(cell, given.bits[cell / 32])] = static_cast<std::int32_t>(row);
  }
}

/// pairs [P][3]: each warp writes those of a tile and of a line of taps. Any one-dimensional grid
/// of kListThreads.
/// @param found bits of the found sites, and their numbers, which follow those of the given ones
/// @param places [KV][tiles]: where they begin in the list of the tap
__global__ void __launch_bounds__(kListThreads)
    write_lists(GivenSites given, BitIndex found, bool inverse, std::int64_t tiles,
                const std::int32_t* __restrict__ places, const std::int32_t* __restrict__ totals,
                std::int32_t* __restrict__ pairs) {
  __shared__ InOut staged_by_warp[kListThreads / 32][kTileSites];
  InOut* const staged = staged_by_warp[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int of_line = given.lattice.axes[kLast].kernel, lines = given.lattice.KV / of_line;
  const std::uint32_t first_found = *given.numbered;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kListThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kListThreads;
  for (std::int64_t task = thread / 32; task < tiles * lines; task += threads / 32) {
    const std::int64_t tile = task / lines;
    const int first = static_cast<int>(task % lines) * of_line;
    const TileLine to(given, tile * kTileSites, first / of_line);
    std::int32_t rows[kSitesEach];
#pragma unroll
    for (int i = 0; i < kSitesEach; ++i) {
      const std::int64_t place = tile * kTileSites + 32 * i + lane;
      rows[i] = place < given.count() ? given.row(place) : -1;
    }
    std::int64_t list = pair_lists::begin_of_list(totals, first);
    for (int k = first; k < first + of_line; ++k) {
      const std::int32_t place = places[k * tiles + tile], total = totals[k];
      bool hit[kSitesEach];
      std::int32_t found_rows[kSitesEach];
#pragma unroll
      for (int i = 0; i < kSitesEach; ++i) {
        const int cell = to.cell(i, k - first);
        hit[i] = cell >= 0;
        found_rows[i] = 0;
        if (!hit[i]) continue;
        const auto at = static_cast<std::uint32_t>(cell);  // its bit is set: the site set it
        found_rows[i] =
            static_cast<std::int32_t>(found.rank(at, found.bits[at / 32]) - first_found);
      }
      int count = 0;
#pragma unroll
      for (int i = 0; i < kSitesEach; ++i) {
        const unsigned hits = __ballot_sync(kWholeWarp, hit[i]);
        if (hit[i])
          staged[count + __popc(hits & ((1u << lane) - 1))] =
              inverse ? InOut{found_rows[i], rows[i]} : InOut{rows[i], found_rows[i]};
        count += __popc(hits);
      }
      __syncwarp();  // all pairs are there before other lanes write them
      std::int32_t* const own = pairs + (list + place) * kPairColumns;
      pair_lists::visit_words(staged, count, [&](int word, int column, const InOut& pair) {
        own[word] = column == 0 ? k : column == 1 ? pair.in : pair.out;
      });
      list += total;
      __syncwarp();  // all have been written before those of the next tap overwrite them
    }
  }
}

/// The workspace, front to back. Under `inverse` given sites get no numbers, and their tiles no
/// place in `first`.
struct Workspace {
  Progress* progress;
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid, in whole tiles.
  std::uint32_t* found;      ///< The same for the found sites, behind it.
  std::uint32_t* sums;       ///< By numbered tile.
  std::uint32_t* first;      ///< By word of numbered tiles.
  std::uint32_t* cells;      ///< By number; null under `inverse`.
  std::int32_t* rows;        ///< By place; null under `inverse`.
  std::int32_t* counts;      ///< By tap and tile of given sites.
  std::int32_t* totals;      ///< By tap.
  std::int64_t given_tiles;  ///< Numbered tiles of the given sites' bits.
  std::int64_t tiles;        ///< Numbered tiles of both.
  std::size_t zeroed_bytes;  ///< Of the first places, which must be zero before the first launch.
  std::size_t bytes;         ///< Of all.
};

/// Tiles of given sites: a warp takes one at a time.
std::int64_t site_tiles(const RulebookProblem& book) {
  return ceil_div<std::int64_t>(book.sites, kTileSites);
}

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::uint32_t* begin) {
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t given_tiles = bit_grid::tiles_for(key_count(book, book.shape));
  const std::int64_t found_tiles = bit_grid::tiles_for(key_count(book, book.out_shape));
  Workspace all{};
  bit_grid::Cutter cutter(begin);
  all.given_tiles = inverse ? 0 : given_tiles;
  all.tiles = all.given_tiles + found_tiles;
  all.progress = reinterpret_cast<Progress*>(cutter.take(bit_grid::kProgressWords));
  all.given = cutter.take(given_tiles * kTileWords);
  all.found = cutter.take(found_tiles * kTileWords);
  all.zeroed_bytes = cutter.bytes();
  all.sums = cutter.take(all.tiles + 1);
  all.first = cutter.take(all.tiles * kTileWords);
  if (!inverse) {
    all.cells = cutter.take(book.sites + most_found(book));
    all.rows = reinterpret_cast<std::int32_t*>(cutter.take(book.sites));
  }
  all.counts = reinterpret_cast<std::int32_t*>(cutter.take(book.KV * site_tiles(book)));
  all.totals = reinterpret_cast<std::int32_t*>(cutter.take(book.KV));
  all.bytes = cutter.bytes();
  return all;
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
void run(const RulebookProblem& book, const Arguments& arrays) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  auto* const begin = arrays.workspace<std::uint32_t>();
  const Workspace work = workspace_at(book, begin);
  const Lattice lattice(book);
  const bool inverse = book.mode == SparseMode::inverse;
  const std::uint32_t* const bits = inverse ? work.found : work.given;  // of the numbered tiles
  const GivenSites given{lattice, coords, work.sums + work.given_tiles, work.cells, work.rows};
  const std::int64_t tiles = site_tiles(book);
  const std::int64_t tasks = tiles * (book.KV / book.kernel[book.ndim - 1]);
  const LaunchConfig of_tiles{blocks_for(work.tiles, 1, kMaxBlocks), kThreads};
  const LaunchConfig of_lists{blocks_for(tasks, kListThreads / 32, kMaxBlocks), kListThreads};
  const unsigned sum_blocks = blocks_for(book.KV, 1, kMaxBlocks);
  // No given site has a place to be written to under `inverse`.
  const unsigned row_blocks = inverse ? 0 : blocks_for(book.sites, kSumThreads, kMaxBlocks);
  HostMessage<bit_grid::Count> message;

  check(cudaMemsetAsync(begin, 0, work.zeroed_bytes));
  launch(mark_and_count, {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, lattice, coords,
         work.given, work.found, work.progress);
  launch(bit_grid::count_bits, of_tiles, work.tiles, bits, work.sums, work.progress,
         message.letter());
  message.expect();
  launch(number_sites, of_tiles, work.tiles, work.given_tiles, bits, work.sums, work.first,
         work.cells);
  launch(count_lists, of_lists, given, tiles, work.counts);
  launch(sum_and_place, {sum_blocks + row_blocks, kSumThreads}, lattice, tiles, sum_blocks, coords,
         BitIndex{work.given, work.first}, work.counts, work.totals, work.rows);

  const bit_grid::Count count = message.received();  // the kernels behind count_bits() run on
  if (count.unusable > 0) report_site_errors(book, coords);
  // The bits that were counted are those of the given sites, too: one for each row, as none
  // repeats.
  const std::int64_t M = inverse ? book.sites : count.found - book.sites;
  bit_grid::create_out_coords(book, lattice, arrays, M,
                              inverse ? nullptr : work.cells + book.sites);
  auto* pairs = arrays.create<std::int32_t>("pairs", {count.pairs, kPairColumns});
  const BitIndex found{work.found, work.first + work.given_tiles * kTileWords};
  launch(write_lists, of_lists, given, found, inverse, tiles, work.counts, work.totals, pairs);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(bit_grid::found_in_words(book), ", numbered in ",
              bit_grid::tiles_in_words(workspace_at(book, nullptr).tiles), ", ",
              how_many(site_tiles(book), "tile"), " of sites",
              site_tiles(book) > kSumThreads ? " summed in several rounds" : "");
}

}  // namespace

Implementation<RulebookProblem> lists_of_inputs() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
