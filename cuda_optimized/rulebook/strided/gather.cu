/// @file gather.cu
/// @brief rulebook, strided: gather; each output looks up its inputs by bits and ranks.
///
/// - Before: bit_grid.cu
/// - The bits: shared/bit_ranks.cuh; the look-ups of an output: shared/output_taps.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** The table has one column for each output, so one thread for each output fills it.
/// The thread checks at each tap whether the input exists. Each entry of nbr is stored once, -1 or
/// not, without a fill before, and a mask is collected in a register. The bits of the input grid,
/// which also find duplicate sites, answer a line of taps at once:
///
///     inputs' bits    . . x . | x x . x      4 to a word here, 32 there
///     3 taps                ^   ^ ^          one word, or two shifted together: . x x
///     first           9         4            where the word's entries in `rows` begin
///     rows            [4], [5]               the rows of the two inputs: 4 + the bits below
///
/// A word gets its range of `rows` from an atomic counter. The kernel that counts the outputs sends
/// their number to the host (core/cuda/host_message.hpp), which allocates the result while the next
/// kernel lists their cells.
///
/// **Expect.** For sweep-k3s2-table (125 thousand sites, kernel 3, stride 2) a memset of 28.8 MB
/// and four kernels, 14.8 MB of nbr: 28 us of GPU time on an H200, 43 us from call to result.
/// @expect on --shape 12,12,12 --sites 512 --mode strided --stride 2 --pad 1 --form table
/// @expect launches 4
/// @expect lanes.nbr.store 27 * 216 = 5832, each output looks all taps up
/// @expect lanes.mask.atomic 0
/// @expect lanes.mask.store 216
/// **Costs.** A bit for each cell of both grids, 4 bytes for each word of one.
/// **Try.** Add a bit for each 128 bytes of bits, and clear only those that are used.
#include <optional>

#include "core/cuda/early_launch.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/rulebook/shared/lattice.cuh"
#include "cuda_optimized/rulebook/shared/output_taps.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_ranks::Count;
using bit_ranks::kMaxBlocks;
using bit_ranks::kThreads;
using bit_ranks::kTileWords;
using bit_ranks::Progress;

constexpr int kRowThreads = 128;  ///< Of fill_table: many registers.

/// Sets the bits of all given sites, and of all that they lead to. A row outside, or whose bit is
/// already set, is counted. Any one-dimensional grid.
/// @param given, found bits, all zero
__global__ void rulebook_strided_gather_mark_sites(Lattice lattice, const std::int32_t* coords,
                                                   std::uint32_t* given, std::uint32_t* found,
                                                   Progress* progress) {
  // mark_site(): given[cell of the row] = 1, and for all taps that lead the site to a cell of the
  // other grid, found[cell] = 1.
  for (const std::int64_t row : grid_stride(lattice.sites))
    mark_site(lattice, lattice_site(lattice, coords, row), given, found, &progress->unusable);
}

/// The first tile_blocks blocks count the tiles of the found sites' bits. The others give each word
/// of the given sites' bits a range of indices, one per set bit: first [words]. Blocks of kThreads.
/// @param sums [tiles + 1], out: bits of all tiles before
/// @param count in the host's memory; null: the number is not sent
__global__ void rulebook_strided_gather_count_and_place(
    Lattice lattice, std::int64_t tiles, unsigned tile_blocks, const std::int32_t* coords,
    const std::uint32_t* given, const std::uint32_t* found, std::uint32_t* sums,
    std::uint32_t* first, Progress* progress, Letter<Count>* count) {
  __shared__ int warp_sums[bit_ranks::kWarps];
  wait_for_kernel_before();
  if (blockIdx.x < tile_blocks) {
    bit_ranks::count_tiles(tiles, tile_blocks, found, sums, warp_sums);
    bit_ranks::scan_tiles(tiles, tile_blocks, sums, progress, count, warp_sums);
  } else {
    word_places::place_words(lattice, tile_blocks, coords, given, &progress->placed, first,
                             warp_sums);
  }
}

/// The first tile_blocks blocks list the found sites' cells in order, cells [M]. The others write
/// each given row to its index: rows [N]. Blocks of kThreads.
__global__ void rulebook_strided_gather_number_sites(Lattice lattice, std::int64_t tiles,
                                                     unsigned tile_blocks,
                                                     const std::int32_t* coords,
                                                     const std::uint32_t* found,
                                                     const std::uint32_t* sums, BitIndex given,
                                                     std::uint32_t* cells, std::int32_t* rows) {
  __shared__ bit_ranks::TileInShared shared;
  wait_for_kernel_before();
  if (blockIdx.x < tile_blocks) {
    bit_ranks::number_bits(
        tiles, tile_blocks, found, sums, &shared, [](std::uint32_t, std::uint32_t) {},
        [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
  } else {
    word_places::place_rows<kThreads>(lattice, tile_blocks, coords, given, rows);
  }
}

/// first [words]: the row of each word's first found site. A block of kThreads, any one-dimensional
/// grid.
__global__ void rulebook_strided_gather_number_words(std::int64_t tiles, const std::uint32_t* found,
                                                     const std::uint32_t* sums,
                                                     std::uint32_t* first) {
  __shared__ bit_ranks::TileInShared shared;
  wait_for_kernel_before();
  bit_ranks::number_bits(
      tiles, gridDim.x, found, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [](std::uint32_t, std::uint32_t) {});
}

/// out_coords [M][1 + ndim], nbr [KV][M] and mask [M][mask_words(KV)]: one thread an output row.
/// Any one-dimensional grid.
__global__ void rulebook_strided_gather_fill_table(Question ask, std::int64_t M, BitIndex index,
                                                   const std::int32_t* rows,
                                                   std::int32_t* out_coords, std::int32_t* nbr,
                                                   std::int32_t* mask) {
  wait_for_kernel_before();
  for (const std::int64_t row : grid_stride(M)) {
    const LatticeSite site = ask.site(row);
    write_lattice_site(ask.lattice, site, out_coords, row);
    unsigned word = 0;
    visit_taps(ask, site, [&](int k, int cell) {
      const std::int32_t hit = row_in(cell, index, rows);
      nbr[k * M + row] = hit;
      if (hit >= 0) word |= 1u << k % 32;
      if (k % 32 == 31 || k == ask.lattice.KV - 1) {
        mask[row * mask_words(ask.lattice.KV) + k / 32] = static_cast<std::int32_t>(word);
        word = 0;
      }
    });
  }
}

/// The same for a kernel that Lines, a TapLines, takes: all loads of a step are under way before
/// the first is needed. Any one-dimensional grid.
template <class Lines>
__global__ void __launch_bounds__(kRowThreads)
    rulebook_strided_gather_fill_table_by_lines(Question ask, std::int64_t M,
                                                const std::uint32_t* __restrict__ bits,
                                                const std::uint32_t* __restrict__ first,
                                                const std::int32_t* __restrict__ rows,
                                                std::int32_t* __restrict__ out_coords,
                                                std::int32_t* __restrict__ nbr,
                                                std::int32_t* __restrict__ mask) {
  wait_for_kernel_before();
  for (const std::int64_t row : grid_stride(M)) {
    const LatticeSite site = ask.site(row);
    write_lattice_site(ask.lattice, site, out_coords, row);
    const Lines lines(ask, site);
    unsigned taps = 0;
    std::int32_t* to = nbr + row;
#pragma unroll
    for (int step = 0; step < Lines::kSteps; ++step) {
      // look_up() stands for
      //
      //     for the taps k of the step:  cell = where tap k leads the output, or none
      //       hits[k] = is the cell's bit set? rows[first[its word] + bits before it] : -1
      //
      // with one or two words for a line of taps, and all loads of the step in flight together.
      std::int32_t hits[Lines::kTaps];
      lines.look_up(step, bits, first, rows, hits);
#pragma unroll
      for (int i = 0; i < Lines::kTaps; ++i) {
        *to = hits[i];
        to += M;
        if (hits[i] >= 0) taps |= 1u << (step * Lines::kTaps + i);
      }
    }
    mask[row] = static_cast<std::int32_t>(taps);
  }
}

Declined supports(const RulebookProblem& book) { return small_lattice_supports(book); }

/// Layout of the workspace, in order of addresses.
struct Workspace {
  Progress* progress;
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid.
  std::uint32_t* found;      ///< The same for the found sites, in whole tiles.
  std::uint32_t* sums;       ///< Indexed by tile.
  std::uint32_t* first;      ///< Indexed by word of the bits that are looked up.
  std::uint32_t* cells;      ///< Of the found sites, in order.
  std::int32_t* rows;        ///< By index; null under `inverse`, which needs no cells, either.
  std::size_t zeroed_bytes;  ///< Leading bytes of the workspace that must be zero before the first
                             ///< launch.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t tiles = bit_ranks::tiles_for(key_count(book, book.out_shape));
  const std::int64_t given_words = words_for(key_count(book, book.shape));
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.progress = cutter.take<Progress>(1);
  work.given = cutter.take<std::uint32_t>(given_words);
  work.found = cutter.take<std::uint32_t>(tiles * kTileWords);
  work.zeroed_bytes = cutter.bytes();
  work.sums = cutter.take<std::uint32_t>(tiles + 1);
  work.first = cutter.take<std::uint32_t>(inverse ? tiles * kTileWords : given_words);
  if (!inverse) {
    work.cells = cutter.take<std::uint32_t>(most_found(book));
    work.rows = cutter.take<std::int32_t>(book.sites);
  }
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// coords [N][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words] and the form.
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const Lattice lattice(book);
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t tiles = bit_ranks::tiles_for(key_count(book, book.out_shape));
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned tile_blocks = blocks_for(tiles, 1, kMaxBlocks);
  // The blocks of the given rows, but under `inverse`, where found sites are requested.
  const unsigned blocks = tile_blocks + (inverse ? 0 : row_blocks);

  // Not under `inverse`: what is recorded in a graph must not write to a message that is read.
  std::optional<HostMessage<Count>> message;
  if (!inverse) message.emplace();

  check(cudaMemsetAsync(work.progress, 0, work.zeroed_bytes, current_stream()));
  launch(rulebook_strided_gather_mark_sites, {row_blocks, kThreads}, lattice, coords, work.given,
         work.found, work.progress);
  launch_early(rulebook_strided_gather_count_and_place, {blocks, kThreads}, lattice, tiles,
               tile_blocks, coords, work.given, work.found, work.sums, work.first, work.progress,
               message ? message->letter() : nullptr);
  if (message) message->expect();
  if (inverse) {
    launch_early(rulebook_strided_gather_number_words, {blocks, kThreads}, tiles, work.found,
                 work.sums, work.first);
  } else {
    launch_early(rulebook_strided_gather_number_sites, {blocks, kThreads}, lattice, tiles,
                 tile_blocks, coords, work.found, work.sums, BitIndex{work.given, work.first},
                 work.cells, work.rows);
  }

  // The last kernel that does not need the outputs' memory runs while their number is sent to the
  // host.
  std::int64_t M = book.sites;
  if (message) {
    const Count count = message->received();
    if (count.unusable > 0) report_site_errors(book, coords);
    M = count.found;
  }
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  auto* nbr = arrays.create("nbr", {book.KV, M});
  auto* mask = arrays.create("mask", {M, mask_words(book.KV)});
  const Question ask{lattice, inverse, work.cells, coords};
  const std::uint32_t* const bits = inverse ? work.found : work.given;
  const LaunchConfig config{blocks_for(M, kRowThreads, kMaxBlocks), kRowThreads};
  if (has_sides_of(lattice, 3) || has_sides_of(lattice, 2)) {
    launch_early(has_sides_of(lattice, 3)
                     ? rulebook_strided_gather_fill_table_by_lines<TapLines<3, 1>>
                     : rulebook_strided_gather_fill_table_by_lines<TapLines<2, 2>>,
                 config, ask, M, bits, work.first, work.rows, out_coords, nbr, mask);
  } else {
    launch_early(rulebook_strided_gather_fill_table, config, ask, M, BitIndex{bits, work.first},
                 work.rows, out_coords, nbr, mask);
  }
  create_form(book, M, nbr, mask, arrays);
}

/// Under `inverse` the number of outputs is that of the inputs, and `run` did not wait.
/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  if (book.mode != SparseMode::inverse) return;
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  if (downloaded(&work.progress->unusable) > 0) report_site_errors(book, arrays.coords);
}

std::string choice_in_words(const RulebookProblem& book) {
  const Lattice lattice(book);
  return text(bit_ranks::found_in_words(book), ", ",
              has_sides_of(lattice, 3)   ? "27 taps, "
              : has_sides_of(lattice, 2) ? "8 taps, "
                                         : "any taps, ",
              form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> strided_gather = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
