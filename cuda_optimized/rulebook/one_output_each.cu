/// @file one_output_each.cu
/// @brief rulebook, windows that do not overlap: each input has one output, and one division.
///
/// - Before: bit_grid_of_outputs.cu
/// - The bits: cell_bits.cuh; the sums: bit_ranks.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Where the kernel is as long as the stride, as in the 2 x 2 x 2 layers between the
/// levels of a U-Net and in most pooling, windows lie side by side. Each input lies in one of them,
/// and there is nothing to ask: along each axis one division gives the output and the tap.
///
///     input + pad   0 1 | 2 3 | 4 5 | 6 7          kernel 2, stride 2
///     output         0     1     2     3            quotient
///     tap           0 1   0 1   0 1   0 1           remainder
///
/// That is one bit to set and one pair to store for an input, where kernel 3 with stride 2 has 27
/// questions and 3.4 pairs. A kernel shorter than the stride leaves gaps: the remainder of an input
/// in a gap is no tap. Where windows overlap, the remainder is the first tap, and the next one is a
/// stride further with the output before: a loop. As each input has one place in the table, inputs
/// are scattered here and not gathered: N stores, where each of M outputs would look up 8 cells.
///
/// **Expect.** Per input one division an axis (a multiplication: core/fast_division.hpp), an atomic
/// on a bit of its own grid, one on the outputs', then a store to nbr and an atomic on a mask. So
/// with kernel 2 and stride 2 (sweep-k2s2-table, large-k2s2-table) it should be ahead of gather.cu.
/// @expect on --shape 12,12,12 --sites 512 --mode strided --kernel 2 --stride 2 --form table
/// @expect lanes.workspace.atomic 2 * 512 + 1 = 1025, a bit in each of two grids, and a tile's sum
/// @expect lanes.nbr.store 512, each input has one output
/// @expect lanes.mask.atomic 512
/// @expect lanes.coords.load 2 * 4 * 512 = 4096, each site once in two kernels
/// **Costs.** As bit_grid_of_outputs.cu: memory for each cell, the host waits once. Declined: modes
/// subm and transposed, dilation, grids of 2^31 cells and more.
/// **Try.** Keep the bits of a window's 8 inputs side by side, as one byte an output, instead of in
/// two grids. What does that byte say at the end, and which pass over memory is gone?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/host_message.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/bit_ranks.cuh"
#include "cuda_optimized/rulebook/cell_bits.cuh"
#include "cuda_optimized/rulebook/lattice_problems.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_ranks::Count;
using bit_ranks::kMaxBlocks;
using bit_ranks::kThreads;
using bit_ranks::kTileWords;
using bit_ranks::Progress;

/// Calls visit(tap, cell) for every tap of the axes from kAxis on that leads a given site to a
/// found cell: the remainder is the first such tap, and others are a stride apart. `tap` and `cell`
/// are those of the axes before.
template <int kAxis = 0, class Visit>
__device__ void visit_windows(const Lattice& lattice, const LatticeSite& site, int tap,
                              std::uint32_t cell, const Visit& visit) {
  if constexpr (kAxis == kMaxAxes) {
    visit(tap, cell);
  } else {
    const LatticeAxis& axis = lattice.axes[kAxis];
    const int from = site.at[kAxis] + axis.pad;
    int at = axis.by_stride.quotient(from);
    // Once, where windows do not overlap; not at all in a gap between them.
    for (int k = axis.by_stride.remainder(from, at); k < axis.kernel && at >= 0; k += axis.stride) {
      if (at < axis.found)
        visit_windows<kAxis + 1>(
            lattice, site, tap * axis.kernel + k,
            cell * static_cast<std::uint32_t>(axis.found) + static_cast<std::uint32_t>(at), visit);
      --at;
    }
  }
}

/// Sets the bits of all given sites, and of all that they lead to. A row outside, or whose bit is
/// there already, is counted and leads nowhere. Any one-dimensional grid.
/// @param given, found bits, all zero
__global__ void mark_sites(Lattice lattice, const std::int32_t* coords, std::uint32_t* given,
                           std::uint32_t* found, Progress* progress) {
  for (const std::int64_t row : grid_stride(lattice.sites)) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    if (!mark_given(lattice, site, given)) {
      atomicAdd(&progress->unusable, 1u);
      continue;
    }
    const auto set = [&](int, std::uint32_t cell) { atomicOr(&found[cell / 32], bit_of(cell)); };
    visit_windows(lattice, site, 0, static_cast<std::uint32_t>(site.batch), set);
  }
}

/// sums [tiles + 1]: the bits of all tiles before; and their number, in the host's memory. A block
/// of kThreads, any one-dimensional grid.
__global__ void count_bits(std::int64_t tiles, const std::uint32_t* found, std::uint32_t* sums,
                           Progress* progress, Letter<Count>* count) {
  __shared__ int warp_sums[bit_ranks::kWarps];
  bit_ranks::count_tiles(tiles, gridDim.x, found, sums, warp_sums);
  bit_ranks::scan_tiles(tiles, gridDim.x, sums, progress, count, warp_sums);
}

/// first [words], and the cells of the found sites in order: cells [found]. A block of kThreads,
/// any one-dimensional grid.
__global__ void number_sites(std::int64_t tiles, const std::uint32_t* found,
                             const std::uint32_t* sums, std::uint32_t* first,
                             std::uint32_t* cells) {
  __shared__ bit_ranks::TileInShared shared;
  bit_ranks::number_bits(
      tiles, gridDim.x, found, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
}

/// out_coords [M][1 + ndim] of cells [M]. Any one-dimensional grid.
__global__ void write_sites(Lattice lattice, std::int64_t M, const std::uint32_t* cells,
                            std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(M))
    write_lattice_site(lattice, found_site(lattice, cells[row]), out_coords, row);
}

/// Stores each pair at its place of nbr [KV][M], which must be -1, and in mask [M][words], which
/// must be 0. One thread a given row. Any one-dimensional grid.
/// @param inverse found sites are inputs, and given ones outputs
__global__ void scatter_pairs(Lattice lattice, bool inverse, std::int64_t M,
                              const std::int32_t* coords, BitIndex found, std::int32_t* nbr,
                              std::int32_t* mask) {
  const int words = mask_words(lattice.KV);
  for (const std::int64_t given : grid_stride(lattice.sites)) {
    const LatticeSite site = lattice_site(lattice, coords, given);
    const auto store = [&](int tap, std::uint32_t cell) {
      const std::int64_t row = found.rank(cell, found.bits[cell / 32]);
      const std::int64_t in = inverse ? row : given, out = inverse ? given : row;
      nbr[tap * M + out] = static_cast<std::int32_t>(in);
      atomicOr(&mask[out * words + tap / 32], static_cast<std::int32_t>(1u << tap % 32));
    };
    visit_windows(lattice, site, 0, static_cast<std::uint32_t>(site.batch), store);
  }
}

Declined supports(const RulebookProblem& book) {
  if (const Declined why = small_lattice_supports(book)) return why;
  if (book.mode == SparseMode::transposed) return "modes strided and inverse only";
  for (int axis = 0; axis < book.ndim; ++axis) {
    if (book.kernel[axis] > 1 && book.dilation[axis] > 1) return "dilation 1 only";
  }
  return {};
}

/// The workspace, front to back.
struct Workspace {
  Progress* progress;        ///< Of the kernels.
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid.
  std::uint32_t* found;      ///< The same for the found sites, in whole tiles.
  std::uint32_t* sums;       ///< By tile.
  std::uint32_t* first;      ///< By word of the found sites' bits.
  std::uint32_t* cells;      ///< Of the found sites, in order.
  std::size_t zeroed_bytes;  ///< Of the first places, which must be zero before the first launch.
  std::size_t bytes;         ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
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
  launch(mark_sites, {row_blocks, kThreads}, lattice, coords, work.given, work.found,
         work.progress);
  launch(count_bits, {tile_blocks, kThreads}, tiles, work.found, work.sums, work.progress,
         message.letter());
  message.expect();
  launch(number_sites, {tile_blocks, kThreads}, tiles, work.found, work.sums, work.first,
         work.cells);
  const Count count = message.received();  // number_sites() runs on
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
    launch(write_sites, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, lattice, M, work.cells,
           out_coords);
  }
  fill(nbr, 0xff, book.KV * M * std::int64_t{sizeof *nbr});
  fill(mask, 0, M * mask_words(book.KV) * std::int64_t{sizeof *mask});
  launch(scatter_pairs, {row_blocks, kThreads}, lattice, inverse, M, coords,
         BitIndex{work.found, work.first}, nbr, mask);
  create_form(book, M, nbr, mask, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(bit_ranks::found_in_words(book), ", ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> one_output_each = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
