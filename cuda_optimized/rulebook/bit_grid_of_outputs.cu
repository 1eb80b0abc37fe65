/// @file bit_grid_of_outputs.cu
/// @brief rulebook, new sites: a bit for each cell; set bits are distinct and in order, unsorted.
///
/// - Before: hash_set_of_outputs.cu (sorts each output once)
/// - After: gather.cu (no atomics in the table, which is written once)
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** An output's row is the number of outputs before it. Let every cell of the outputs'
/// grid have a bit, and every input set those of its outputs: `atomicOr`, which does not mind how
/// often. Then the cells are in order because memory is, no output is there twice, and the row of
/// one is the number of bits before its own: those in words before, and those below it in its word,
/// for which there is an instruction, `__popc`.
///
///     cells      . . x . | x x . . | . . . . | . x . x       4 to a word here, 32 there
///     first          0         1         3         3          bits in the words before
///     rows           0     1 2                   3   4         + bits below in the word
///
/// `first` is a running sum over all words. Each block adds up a tile of 1024, the last block to
/// finish replaces the tiles' sums by those of the tiles before (it knows that it is the last by a
/// counter), and the next kernel, in which each block knows where it begins, runs through its tile
/// once more and writes `first` and the list of cells. The sum over a block's threads is the
/// classic: block_exclusive_sum() in bit_grid.cuh adds up a warp in five exchanges of registers,
/// and then the sums of the warps.
///
/// A second grid, of the inputs' cells, finds rows that repeat a site: their bit is there already.
///
/// **Expect.** In a sweep on a grid of 80 x 1600 x 1600, kernel 3, stride 2: 3.2 MB of bits for the
/// outputs, and 25.6 MB for the inputs, which are filled with zeros first. 126 thousand atomics on
/// the inputs' words, at most 300 thousand on the outputs', as neighbouring taps share one; a load
/// before each tells whether it is needed, which halves the time of this kernel on 914 thousand
/// sites (measured: 57 to 35 us). The table, 14.8 MB, is filled with -1 and then scattered to, 423
/// thousand times.
/// **Costs.** Memory and time grow with the grid, not with the sites. The host waits once, for the
/// number of outputs and for the verdict on the sites. Declined: mode subm, grids of 2^31 cells
/// (256 MB) and more: those need a level above, of bits for blocks of cells, or the hash set;
/// windows that end beyond 2^31.
/// **Try.** Set bits by `|=` instead of `atomicOr`. Why are outputs lost, and why not always the
/// same? Then give each word to one thread of the numbering no longer, but each bit, by a search in
/// the block's sums: which sweeps are faster, those with stride 1 or with 2?
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/bit_grid.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_grid::kMaxBlocks;
using bit_grid::kThreads;
using bit_grid::kTileWords;
using bit_grid::kWarps;
using bit_grid::Progress;

/// sums [tiles]: the bits of all tiles before; and their number, in progress. A block of kThreads,
/// any one-dimensional grid.
__global__ void count_bits(std::int64_t tiles, const std::uint32_t* found, std::uint32_t* sums,
                           Progress* progress) {
  __shared__ int warp_sums[kWarps];
  bit_grid::count_tiles(tiles, gridDim.x, found, sums, warp_sums);
  bit_grid::scan_tiles(tiles, gridDim.x, sums, progress, warp_sums);
}

/// first [words], and the cells of the found sites in order: cells [found]. A block of kThreads,
/// any one-dimensional grid.
__global__ void number_sites(std::int64_t tiles, const std::uint32_t* found,
                             const std::uint32_t* sums, std::uint32_t* first,
                             std::uint32_t* cells) {
  __shared__ bit_grid::TileInShared shared;
  bit_grid::number_bits(
      tiles, gridDim.x, found, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
}

/// out_coords [M][1 + ndim] of cells [M]. Any one-dimensional grid.
__global__ void write_sites(Lattice lattice, std::int64_t M, const std::uint32_t* cells,
                            std::int32_t* out_coords) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < M; row += grid_threads)
    write_lattice_site(lattice, found_site(lattice, cells[row]), out_coords, row);
}

/// Stores each pair at its place of nbr [KV][M], which must be -1, and in mask [M][words], which
/// must be 0: one thread a given row. Any one-dimensional grid.
/// @param inverse found sites are inputs, and given ones outputs
__global__ void scatter_pairs(Lattice lattice, bool inverse, std::int64_t M,
                              const std::int32_t* coords, BitIndex found, std::int32_t* nbr,
                              std::int32_t* mask) {
  const int words = mask_words(lattice.KV);
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t given = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; given < lattice.sites; given += grid_threads) {
    const auto store = [&](int tap, std::uint32_t cell) {
      const std::int64_t row = found.rank(cell, found.bits[cell / 32]);
      const std::int64_t in = inverse ? row : given, out = inverse ? given : row;
      nbr[tap * M + out] = static_cast<std::int32_t>(in);
      atomicOr(&mask[out * words + tap / 32], static_cast<std::int32_t>(1u << tap % 32));
    };
    const SiteRuns runs(lattice, lattice_site(lattice, coords, given));
    visit_found(lattice, runs, 0, runs.batch, store);
  }
}

/// The workspace, front to back.
struct Workspace {
  Progress* progress;
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid.
  std::uint32_t* found;      ///< The same for the found sites, in whole tiles.
  std::uint32_t* sums;       ///< By tile.
  std::uint32_t* first;      ///< By word of the found sites' bits.
  std::uint32_t* cells;      ///< Of the found sites, in order.
  std::size_t zeroed_bytes;  ///< Of the first places, which must be zero before the first launch.
  std::size_t bytes;         ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::uint32_t* begin) {
  const std::int64_t tiles = bit_grid::tiles_for(key_count(book, book.out_shape));
  Workspace all{};
  bit_grid::Cutter cutter(begin);
  all.progress = reinterpret_cast<Progress*>(cutter.take(bit_grid::kProgressWords));
  all.given = cutter.take(bit_grid::words_for(key_count(book, book.shape)));
  all.found = cutter.take(tiles * kTileWords);
  all.zeroed_bytes = cutter.bytes();
  all.sums = cutter.take(tiles + 1);
  all.first = cutter.take(tiles * kTileWords);
  all.cells = cutter.take(most_found(book));
  all.bytes = cutter.bytes();
  return all;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

Declined supports(const RulebookProblem& book) { return small_lattice_supports(book); }

/// coords [N][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words] and the form.
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const Arguments& arrays) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  auto* const begin = arrays.workspace<std::uint32_t>();
  const Workspace work = workspace_at(book, begin);
  const Lattice lattice(book);
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t tiles = bit_grid::tiles_for(key_count(book, book.out_shape));
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned tile_blocks = blocks_for(tiles, 1, kMaxBlocks);

  check(cudaMemsetAsync(begin, 0, work.zeroed_bytes));
  launch(bit_grid::mark_sites, {row_blocks, kThreads}, lattice, coords, work.given, work.found,
         work.progress);
  launch(count_bits, {tile_blocks, kThreads}, tiles, work.found, work.sums, work.progress);
  launch(number_sites, {tile_blocks, kThreads}, tiles, work.found, work.sums, work.first,
         work.cells);
  const Progress progress = downloaded(work.progress);
  if (progress.unusable > 0) report_site_errors(book, coords);

  const std::int64_t M = inverse ? book.sites : progress.found;
  auto* out_coords = arrays.create<std::int32_t>("out_coords", {M, 1 + book.ndim});
  auto* nbr = arrays.create<std::int32_t>("nbr", {book.KV, M});
  auto* mask = arrays.create<std::int32_t>("mask", {M, mask_words(book.KV)});
  if (inverse) {
    copy_given_sites(book, coords, out_coords);
  } else {
    launch(write_sites, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, lattice, M, work.cells,
           out_coords);
  }
  clear_table(book, M, nbr, mask);
  launch(scatter_pairs, {row_blocks, kThreads}, lattice, inverse, M, coords,
         BitIndex{work.found, work.first}, nbr, mask);
  create_form(book, M, nbr, mask, arrays);
}

}  // namespace

Implementation<RulebookProblem> bit_grid_of_outputs() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
