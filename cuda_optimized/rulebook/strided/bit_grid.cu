/// @file bit_grid.cu
/// @brief rulebook, strided: bitmap of outputs; set bits are distinct and ordered, without a sort.
///
/// - Before: compact_before_sort.cu
/// - After: gather.cu, input_lists.cu
/// - The bits, their sums and ranks: shared/bit_ranks.cuh; where taps lead: shared/lattice.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** The row of an output is the number of outputs before it. Every cell of the output
/// grid has a bit, and every input sets those of its outputs with `atomicOr`, which is idempotent.
/// A row is the number of bits in the words before, plus those below its own bit in its word
/// (`__popc`): the *rank* of the bit.
///
///     cells      . . x . | x x . . | . . . . | . x . x       4 to a word here, 32 there
///     first          0         1         3         3          bits in the words before
///     rows           0     1 2                   3   4         + bits below in the word
///
/// `first` is a prefix sum over all words: each block sums a tile of 1024 words, the last block to
/// finish scans the sums of the tiles, and then each block writes `first` and the cells of its
/// tile. A bit of the input grid that is already set is a duplicate site.
///
/// **Expect.** For sweep-k3s2-table 3.2 MB of bits for the outputs and 25.6 MB for the inputs are
/// cleared. The table, 14.8 MB, is filled with -1 and then written 423 thousand times.
/// @expect on --shape 12,12,12 --sites 512 --mode strided --stride 2 --pad 1 --form pairs
/// @expect lanes.coords.load 2 * 4 * 512 = 4096, each site once in two kernels
/// @expect lanes.nbr.store 1470, of pairs alone
/// @expect lanes.mask.atomic 1470, one a pair
/// @expect launches 8, nothing is sorted
/// **Costs.** Memory and time grow with the grid, up to 2^31 cells. One host synchronization.
/// **Try.** Set bits by `|=` instead of `atomicOr`. Why do the lost outputs differ between runs?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_ranks::Count;
using bit_ranks::kMaxBlocks;
using bit_ranks::kThreads;
using bit_ranks::kTileWords;
using bit_ranks::Progress;

/// Sets the bits of all given sites, and of all that they lead to. A row outside, or whose bit is
/// already set, is counted. Any one-dimensional grid.
/// @param given, found bits, all zero
__global__ void rulebook_strided_bit_grid_mark_sites(Lattice lattice, const std::int32_t* coords,
                                                     std::uint32_t* given, std::uint32_t* found,
                                                     Progress* progress) {
  // mark_site(): given[cell of the row] = 1, and for all taps that lead the site to a cell of the
  // other grid, found[cell] = 1. Taps of a line set their bits of a word in one atomicOr.
  for (const std::int64_t row : grid_stride(lattice.sites))
    mark_site(lattice, lattice_site(lattice, coords, row), given, found, &progress->unusable);
}

/// sums [tiles + 1]: the number of bits in all previous tiles; the total is also written to host
/// memory. A block of kThreads, any one-dimensional grid.
__global__ void rulebook_strided_bit_grid_count_bits(std::int64_t tiles, const std::uint32_t* found,
                                                     std::uint32_t* sums, Progress* progress,
                                                     Letter<Count>* count) {
  __shared__ int warp_sums[bit_ranks::kWarps];
  // for each tile: sums[tile] = bits set in its 1024 words;  then, in the block that finishes last,
  // for each tile: sums[tile] = sum of sums[0 ... tile - 1]
  bit_ranks::count_tiles(tiles, gridDim.x, found, sums, warp_sums);
  bit_ranks::scan_tiles(tiles, gridDim.x, sums, progress, count, warp_sums);
}

/// first [words], and the cells of the found sites in order: cells [found]. A block of kThreads,
/// any one-dimensional grid.
__global__ void rulebook_strided_bit_grid_number_sites(std::int64_t tiles,
                                                       const std::uint32_t* found,
                                                       const std::uint32_t* sums,
                                                       std::uint32_t* first, std::uint32_t* cells) {
  __shared__ bit_ranks::TileInShared shared;
  // for each word that has bits: first[word] = bits before it;  for each bit: cells[its rank] =
  // cell
  bit_ranks::number_bits(
      tiles, gridDim.x, found, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
}

/// out_coords [M][1 + ndim] of cells [M]. Any one-dimensional grid.
__global__ void rulebook_strided_bit_grid_write_sites(Lattice lattice, std::int64_t M,
                                                      const std::uint32_t* cells,
                                                      std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(M))
    write_lattice_site(lattice, found_site(lattice, cells[row]), out_coords, row);
}

/// Stores each pair at its entry of nbr [KV][M], which must be -1, and in mask [M][words], which
/// must be 0. One thread a given row. Any one-dimensional grid.
/// @param inverse found sites are inputs, and given ones outputs
__global__ void rulebook_strided_bit_grid_scatter_pairs(Lattice lattice, bool inverse,
                                                        std::int64_t M, const std::int32_t* coords,
                                                        BitIndex found, std::int32_t* nbr,
                                                        std::int32_t* mask) {
  const int words = mask_words(lattice.KV);
  for (const std::int64_t given : grid_stride(lattice.sites)) {
    const SiteRuns runs(lattice, lattice_site(lattice, coords, given));
    const auto store = [&](int tap, std::uint32_t cell) {
      const std::int64_t row = found.rank(cell, found.bits[cell / 32]);
      const std::int64_t in = inverse ? row : given, out = inverse ? given : row;
      nbr[tap * M + out] = static_cast<std::int32_t>(in);
      atomicOr(&mask[out * words + tap / 32], static_cast<std::int32_t>(1u << tap % 32));
    };
    // for each tap that leads the site to a cell of the found grid: store(tap, cell)
    visit_found(lattice, runs, 0, runs.batch, store);
  }
}

Declined supports(const RulebookProblem& book) { return small_lattice_supports(book); }

/// Layout of the workspace, in order of addresses.
struct Workspace {
  Progress* progress;        ///< Shared by the kernels.
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid.
  std::uint32_t* found;      ///< The same for the found sites, in whole tiles.
  std::uint32_t* sums;       ///< Indexed by tile.
  std::uint32_t* first;      ///< By word of the found sites' bits.
  std::uint32_t* cells;      ///< Of the found sites, in order.
  std::size_t zeroed_bytes;  ///< Leading bytes of the workspace that must be zero before the first
                             ///< launch.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t tiles = bit_ranks::tiles_for(key_count(book, book.out_shape));
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.progress = cutter.take<Progress>(1);
  work.given = cutter.take<std::uint32_t>(words_for(key_count(book, book.shape)));
  work.found = cutter.take<std::uint32_t>(tiles * kTileWords);
  work.zeroed_bytes = cutter.bytes();
  work.sums = cutter.take<std::uint32_t>(tiles + 1);
  work.first = cutter.take<std::uint32_t>(tiles * kTileWords);
  work.cells = cutter.take<std::uint32_t>(most_found(book));
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// Fills bytes, all alike, in the default stream.
void fill(void* memory, int byte, std::int64_t bytes) {
  if (bytes > 0)
    check(cudaMemsetAsync(memory, byte, static_cast<std::size_t>(bytes), current_stream()));
}

/// coords [N][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words] and the form.
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const Lattice lattice(book);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const std::int64_t tiles = bit_ranks::tiles_for(key_count(book, book.out_shape));
  const unsigned tile_blocks = blocks_for(tiles, 1, kMaxBlocks);
  const bool inverse = book.mode == SparseMode::inverse;
  HostMessage<Count> message;

  check(cudaMemsetAsync(work.progress, 0, work.zeroed_bytes, current_stream()));
  launch(rulebook_strided_bit_grid_mark_sites, {row_blocks, kThreads}, lattice, coords, work.given,
         work.found, work.progress);
  launch(rulebook_strided_bit_grid_count_bits, {tile_blocks, kThreads}, tiles, work.found,
         work.sums, work.progress, message.letter());
  message.expect();
  launch(rulebook_strided_bit_grid_number_sites, {tile_blocks, kThreads}, tiles, work.found,
         work.sums, work.first, work.cells);
  const Count count = message.received();  // rulebook_strided_bit_grid_number_sites() is still
                                           // running
  if (count.unusable > 0) report_site_errors(book, coords);

  const std::int64_t M = inverse ? book.sites : count.found;
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  auto* nbr = arrays.create("nbr", {book.KV, M});
  auto* mask = arrays.create("mask", {M, mask_words(book.KV)});
  if (inverse) {
    check(cudaMemcpyAsync(
        out_coords, coords,
        static_cast<std::size_t>(M) * static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
        cudaMemcpyDeviceToDevice, current_stream()));
  } else {
    launch(rulebook_strided_bit_grid_write_sites, {blocks_for(M, kThreads, kMaxBlocks), kThreads},
           lattice, M, work.cells, out_coords);
  }
  fill(nbr, 0xff, book.KV * M * std::int64_t{sizeof *nbr});
  fill(mask, 0, M * mask_words(book.KV) * std::int64_t{sizeof *mask});
  launch(rulebook_strided_bit_grid_scatter_pairs, {row_blocks, kThreads}, lattice, inverse, M,
         coords, BitIndex{work.found, work.first}, nbr, mask);
  create_form(book, M, nbr, mask, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(bit_ranks::found_in_words(book), ", ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> strided_bit_grid = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
