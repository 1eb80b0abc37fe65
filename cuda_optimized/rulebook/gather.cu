/// @file gather.cu
/// @brief rulebook, new sites: each output looks its inputs up in bits and ranks, and stores once.
///
/// - Before: bit_grid_of_outputs.cu
/// - After: one_output_each.cu, lists_of_inputs.cu
/// - The bits: bit_grid.cuh, as in bit_grid_of_outputs.cu
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** The table is as long as the outputs, so let outputs fill its columns: a thread an
/// output row, which asks at each tap whether the input is there. Every place of nbr is stored
/// once, -1 or not, and none is cleared before; a mask is collected in a register. The inputs'
/// bits, which find repeated rows, answer a line of taps at once:
///
///     inputs' bits    . . x . | x x . x      4 to a word here, 32 there
///     3 taps                ^   ^ ^          one word, or two shifted together: . x x
///     first           9         4            where the word's places in `rows` begin
///     rows            [4], [5]               the rows of the two inputs: 4 + the bits below
///
/// So a line of 3 taps costs one load, and most lines end there. Which range of `rows` a word gets
/// does not matter: the sites draw it from a counter, and no sum runs over all words.
/// The kernel that counts the outputs tells the host (core/cuda/host_message.hpp). While the host
/// creates them, the next kernel lists their cells; one is left. Under `inverse` it does not wait.
/// **Expect.** A sweep of 125 thousand sites, kernel 3, stride 2 (sweep-k3s2-table): a memset of
/// 28.8 MB and four kernels, 14.8 MB of nbr: on an H200 28 us of GPU time, 43 us from call to
/// result. With stride 1 (sweep-k3s1-table) 118 MB of nbr, and 29 million questions in 10 million
/// lines.
/// **Costs.** A bit for each cell of both grids; 4 bytes for each word of one, few of them touched.
/// Other kernels than 2 x 2 x 2 and 3 x 3 x 3 ask tap by tap. Declined: as bit_grid_of_outputs.cu.
/// **Try.** Most bits are cleared in vain. Keep a bit for each 128 bytes of them: the thread that
/// sets it first clears those. What must the other threads wait for?
#include <optional>

#include "core/cuda/early_launch.hpp"
#include "core/cuda/host_message.hpp"
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

constexpr int kRowThreads = 128;  ///< Of fill_table: many registers.

/// The first tile_blocks blocks count the tiles of the found sites' bits. The others give each word
/// of the given sites' bits a range of places, as long as it has bits: first [words]. The thread of
/// a word's lowest bit asks, and one thread for all of its block: which range it gets does not
/// matter. Blocks of kThreads.
/// @param sums [tiles + 1], out: bits of all tiles before
/// @param count in the host's memory; null where it does not ask
__global__ void count_and_place(Lattice lattice, std::int64_t tiles, unsigned tile_blocks,
                                const std::int32_t* coords, const std::uint32_t* given,
                                const std::uint32_t* found, std::uint32_t* sums,
                                std::uint32_t* first, Progress* progress,
                                Letter<bit_grid::Count>* count) {
  __shared__ int warp_sums[kWarps];
  __shared__ std::uint32_t start;
  wait_for_kernel_before();
  if (blockIdx.x < tile_blocks) {
    bit_grid::count_tiles(tiles, tile_blocks, found, sums, warp_sums);
    bit_grid::scan_tiles(tiles, tile_blocks, sums, progress, count, warp_sums);
    return;
  }
  const std::int64_t grid_threads = std::int64_t{gridDim.x - tile_blocks} * kThreads;
  std::int64_t begin = std::int64_t{blockIdx.x - tile_blocks} * kThreads;
  for (; begin < lattice.sites; begin += grid_threads) {
    const std::int64_t row = begin + threadIdx.x;
    std::uint32_t word = 0;
    int places = 0;
    if (row < lattice.sites) {
      const LatticeSite site = lattice_site(lattice, coords, row);
      if (is_inside(lattice, site)) {
        const std::uint32_t cell = given_cell(lattice, site);
        word = cell / 32;
        const std::uint32_t bits = given[word];
        if ((bits & (bit_grid::bit_of(cell) - 1)) == 0) places = __popc(bits);
      }
    }
    int total;
    const int before = block_exclusive_sum<kWarps>(places, warp_sums, &total);
    if (threadIdx.x == 0) start = atomicAdd(&progress->placed, static_cast<std::uint32_t>(total));
    __syncthreads();  // the range is known; it is overwritten behind the next sum's barriers
    if (places > 0) first[word] = start + static_cast<std::uint32_t>(before);
  }
}

/// The first tile_blocks blocks list the found sites' cells in order, cells [M]. The others write
/// each given row to its place: rows [N]. Blocks of kThreads.
__global__ void number_sites(Lattice lattice, std::int64_t tiles, unsigned tile_blocks,
                             const std::int32_t* coords, const std::uint32_t* found,
                             const std::uint32_t* sums, BitIndex given, std::uint32_t* cells,
                             std::int32_t* rows) {
  __shared__ bit_grid::TileInShared shared;
  wait_for_kernel_before();
  if (blockIdx.x < tile_blocks) {
    bit_grid::number_bits(
        tiles, tile_blocks, found, sums, &shared, [](std::uint32_t, std::uint32_t) {},
        [&](std::uint32_t cell, std::uint32_t row) { cells[row] = cell; });
    return;
  }
  const std::int64_t grid_threads = std::int64_t{gridDim.x - tile_blocks} * kThreads;
  std::int64_t row = std::int64_t{blockIdx.x - tile_blocks} * kThreads + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    if (!is_inside(lattice, site)) continue;  // bad input, of which the host may not know yet
    const std::uint32_t cell = given_cell(lattice, site);
    const std::uint32_t place = given.rank(cell, given.bits[cell / 32]);
    // Where a site is repeated, which the host may not know yet either, places may lie beyond.
    if (place < static_cast<std::uint32_t>(lattice.sites))
      rows[place] = static_cast<std::int32_t>(row);
  }
}

/// first [words]: the row of each word's first found site. A block of kThreads, any one-dimensional
/// grid.
__global__ void number_words(std::int64_t tiles, const std::uint32_t* found,
                             const std::uint32_t* sums, std::uint32_t* first) {
  __shared__ bit_grid::TileInShared shared;
  wait_for_kernel_before();
  bit_grid::number_bits(
      tiles, gridDim.x, found, sums, &shared,
      [&](std::uint32_t word, std::uint32_t row) { first[word] = row; },
      [](std::uint32_t, std::uint32_t) {});
}

/// The row of the site in a cell, or -1. Cells of -1 are none.
/// @param rows by place; null: the place is the row
__device__ std::int32_t row_in(int cell, const BitIndex& index, const std::int32_t* rows) {
  if (cell < 0) return -1;
  const auto at = static_cast<std::uint32_t>(cell);
  const std::uint32_t word = index.bits[at / 32];
  if ((word & bit_grid::bit_of(at)) == 0) return -1;
  const std::uint32_t place = index.rank(at, word);
  return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);
}

/// Outputs, and where their taps lead. They are found sites, in cells [M], and ask for given ones;
/// or, under `inverse`, given sites, in coords [M][1 + ndim], that ask for found ones.
struct Question {
  Lattice lattice;
  bool inverse;
  const std::uint32_t* cells;
  const std::int32_t* coords;

  /// The site of an output.
  __device__ LatticeSite site(std::int64_t row) const {
    return inverse ? lattice_site(lattice, coords, row) : found_site(lattice, cells[row]);
  }
  /// The coordinate asked for along an axis, or -1.
  __device__ int along(int axis, int at, int tap) const {
    return inverse ? lattice.found_from_given(axis, at, tap)
                   : lattice.given_from_found(axis, at, tap);
  }
  /// The cell of axes up to `axis` from that of the axes before; -1 if either is none.
  __device__ int cell(int outer, int axis, int at) const {
    const int extent = inverse ? lattice.axes[axis].found : lattice.axes[axis].given;
    return outer < 0 || at < 0 ? -1 : outer * extent + at;
  }
};

/// out_coords [M][1 + ndim], nbr [KV][M] and mask [M][mask_words(KV)]: one thread an output row.
/// Any one-dimensional grid.
__global__ void fill_table(Question ask, std::int64_t M, BitIndex index, const std::int32_t* rows,
                           std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  const Lattice& lattice = ask.lattice;
  wait_for_kernel_before();
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < M; row += grid_threads) {
    const LatticeSite site = ask.site(row);
    write_lattice_site(lattice, site, out_coords, row);
    // A row outside is bad input, which finish() reports; its cells are none.
    const int sample = !ask.inverse || is_inside(lattice, site) ? site.batch : -1;
    unsigned word = 0;
    int k = 0;
    for (int k0 = 0; k0 < lattice.axes[0].kernel; ++k0) {
      const int volume = ask.cell(sample, 0, sample < 0 ? -1 : ask.along(0, site.at[0], k0));
      for (int k1 = 0; k1 < lattice.axes[1].kernel; ++k1) {
        const int plane = ask.cell(volume, 1, volume < 0 ? -1 : ask.along(1, site.at[1], k1));
        for (int k2 = 0; k2 < lattice.axes[2].kernel; ++k2) {
          const int line = ask.cell(plane, 2, plane < 0 ? -1 : ask.along(2, site.at[2], k2));
          for (int k3 = 0; k3 < lattice.axes[3].kernel; ++k3, ++k) {
            const int cell = ask.cell(line, 3, line < 0 ? -1 : ask.along(3, site.at[3], k3));
            const std::int32_t hit = row_in(cell, index, rows);
            nbr[k * M + row] = hit;
            if (hit >= 0) word |= 1u << k % 32;
            if (k % 32 == 31 || k == lattice.KV - 1) {
              mask[row * mask_words(lattice.KV) + k / 32] = static_cast<std::int32_t>(word);
              word = 0;
            }
          }
        }
      }
    }
  }
}

/// The same for a kernel of kSide taps along each of the last three axes and one along the first:
/// cells of a line lie within 32 of one another, and so in two words at most. All loads of a step
/// are under way before the first is needed. Any one-dimensional grid.
/// @tparam kPlanes of kSide lines that make a step
template <int kSide, int kPlanes>
__global__ void __launch_bounds__(kRowThreads)
    fill_table_of(Question ask, std::int64_t M, const std::uint32_t* __restrict__ bits,
                  const std::uint32_t* __restrict__ first, const std::int32_t* __restrict__ rows,
                  std::int32_t* __restrict__ out_coords, std::int32_t* __restrict__ nbr,
                  std::int32_t* __restrict__ mask) {
  static_assert(kSide % kPlanes == 0 && kSide * kSide * kSide <= 32, "whole steps, one mask word");
  constexpr int kLines = kPlanes * kSide;
  wait_for_kernel_before();
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < M; row += grid_threads) {
    const LatticeSite site = ask.site(row);
    write_lattice_site(ask.lattice, site, out_coords, row);
    // A row outside is bad input, which finish() reports; its cells are none.
    const bool usable = !ask.inverse || is_inside(ask.lattice, site);
    const int volume = usable ? ask.cell(site.batch, 0, ask.along(0, site.at[0], 0)) : -1;
    int planes[kSide], lines[kSide];  // along the two axes between, by tap
#pragma unroll
    for (int k = 0; k < kSide; ++k) {
      planes[k] = ask.cell(volume, 1, usable ? ask.along(1, site.at[1], k) : -1);
      lines[k] = usable ? ask.along(2, site.at[2], k) : -1;
    }
    // Along the last axis: where the first cell is, and which bits, from there on, are the taps'.
    int begin = -1, at[kSide];
#pragma unroll
    for (int k3 = 0; k3 < kSide; ++k3) {
      at[k3] = usable ? ask.along(3, site.at[3], k3) : -1;
      if (at[k3] >= 0 && (begin < 0 || at[k3] < begin)) begin = at[k3];
    }
    std::uint32_t tap_bit[kSide], pattern = 0;  // no bit: the tap leads nowhere
#pragma unroll
    for (int k3 = 0; k3 < kSide; ++k3) {
      tap_bit[k3] = at[k3] >= 0 ? 1u << (at[k3] - begin) : 0;
      pattern |= tap_bit[k3];
    }
    unsigned taps = 0;
    std::int32_t* to = nbr + row;
#pragma unroll
    for (int step = 0; step < kSide / kPlanes; ++step) {
      int cells[kLines];                             // where each line begins
      std::uint32_t words[kLines], windows[kLines];  // the word there; 32 bits from the cell on
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        const int k1 = step * kPlanes + i / kSide, k2 = i % kSide;
        cells[i] = ask.cell(ask.cell(planes[k1], 2, lines[k2]), 3, begin);
        const int shift = cells[i] & 31;
        std::uint32_t next = 0;
        words[i] = 0;
        if (cells[i] >= 0) {
          words[i] = __ldg(&bits[cells[i] / 32]);
          if (__clz(static_cast<int>(pattern)) < shift) next = __ldg(&bits[cells[i] / 32 + 1]);
        }
        windows[i] = __funnelshift_r(words[i], next, static_cast<unsigned>(shift));
      }
      std::uint32_t places[kLines], jumps[kLines];  // of the window's first site; in the next word
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        const int shift = cells[i] & 31;
        const std::uint32_t below = (1u << shift) - 1, in_word = ~0u >> shift;
        places[i] = jumps[i] = 0;
        if ((windows[i] & pattern & in_word) != 0)
          places[i] =
              __ldg(&first[cells[i] / 32]) + static_cast<std::uint32_t>(__popc(words[i] & below));
        if ((windows[i] & pattern & ~in_word) != 0) jumps[i] = __ldg(&first[cells[i] / 32 + 1]);
      }
      std::int32_t hits[kLines * kSide];
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
#pragma unroll
        for (int k3 = 0; k3 < kSide; ++k3) hits[i * kSide + k3] = -1;
        if ((windows[i] & pattern) == 0) continue;  // four of five lines
        const std::uint32_t in_word = ~0u >> (cells[i] & 31);
#pragma unroll
        for (int k3 = 0; k3 < kSide; ++k3) {
          std::int32_t& hit = hits[i * kSide + k3];
          if ((windows[i] & tap_bit[k3]) == 0) continue;
          const std::uint32_t before = windows[i] & (tap_bit[k3] - 1);
          hit = static_cast<std::int32_t>(
              (tap_bit[k3] & in_word) != 0
                  ? places[i] + static_cast<std::uint32_t>(__popc(before))
                  : jumps[i] + static_cast<std::uint32_t>(__popc(before & ~in_word)));
          if (rows != nullptr) hit = __ldg(&rows[hit]);
        }
      }
#pragma unroll
      for (int i = 0; i < kLines * kSide; ++i) {
        *to = hits[i];
        to += M;
        if (hits[i] >= 0) taps |= 1u << (step * kLines * kSide + i);
      }
    }
    mask[row] = static_cast<std::int32_t>(taps);
  }
}

/// The workspace, front to back.
struct Workspace {
  Progress* progress;
  std::uint32_t* given;      ///< A bit for each cell of the given sites' grid.
  std::uint32_t* found;      ///< The same for the found sites, in whole tiles.
  std::uint32_t* sums;       ///< By tile.
  std::uint32_t* first;      ///< By word of the bits that are asked.
  std::uint32_t* cells;      ///< Of the found sites, in order.
  std::int32_t* rows;        ///< By place; null under `inverse`, which needs no cells, either.
  std::size_t zeroed_bytes;  ///< Of the first places, which must be zero before the first launch.
  std::size_t bytes;         ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::uint32_t* begin) {
  const bool inverse = book.mode == SparseMode::inverse;
  const std::int64_t tiles = bit_grid::tiles_for(key_count(book, book.out_shape));
  const std::int64_t given_words = bit_grid::words_for(key_count(book, book.shape));
  Workspace all{};
  bit_grid::Cutter cutter(begin);
  all.progress = reinterpret_cast<Progress*>(cutter.take(bit_grid::kProgressWords));
  all.given = cutter.take(given_words);
  all.found = cutter.take(tiles * kTileWords);
  all.zeroed_bytes = cutter.bytes();
  all.sums = cutter.take(tiles + 1);
  all.first = cutter.take(inverse ? tiles * kTileWords : given_words);
  if (!inverse) {
    all.cells = cutter.take(most_found(book));
    all.rows = reinterpret_cast<std::int32_t*>(cutter.take(book.sites));
  }
  all.bytes = cutter.bytes();
  return all;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

Declined supports(const RulebookProblem& book) { return small_lattice_supports(book); }

/// Whether fill_table_of<side, ...> takes the kernel.
bool has_sides_of(const Lattice& lattice, int side) {
  const LatticeAxis& last = lattice.axes[kMaxAxes - 1];
  return lattice.axes[0].kernel == 1 && lattice.axes[1].kernel == side &&
         lattice.axes[2].kernel == side && last.kernel == side &&
         window_extent(last.kernel, last.dilation) <= 32;
}

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
  // The blocks of the given rows, but under `inverse`, where found sites are asked for.
  const unsigned blocks = tile_blocks + (inverse ? 0 : row_blocks);

  // Not under `inverse`: what is recorded in a graph must not write to a message that is read.
  std::optional<HostMessage<bit_grid::Count>> message;
  if (!inverse) message.emplace();

  check(cudaMemsetAsync(begin, 0, work.zeroed_bytes));
  launch(bit_grid::mark_sites, {row_blocks, kThreads}, lattice, coords, work.given, work.found,
         work.progress);
  launch_early(count_and_place, {blocks, kThreads}, lattice, tiles, tile_blocks, coords, work.given,
               work.found, work.sums, work.first, work.progress,
               message ? message->letter() : nullptr);
  if (message) message->expect();
  if (inverse) {
    launch_early(number_words, {blocks, kThreads}, tiles, work.found, work.sums, work.first);
  } else {
    launch_early(number_sites, {blocks, kThreads}, lattice, tiles, tile_blocks, coords, work.found,
                 work.sums, BitIndex{work.given, work.first}, work.cells, work.rows);
  }

  // The last kernel that does not need the outputs' memory runs while the host learns their number.
  std::int64_t M = book.sites;
  if (message) {
    const bit_grid::Count count = message->received();
    if (count.unusable > 0) report_site_errors(book, coords);
    M = count.found;
  }
  auto* out_coords = arrays.create<std::int32_t>("out_coords", {M, 1 + book.ndim});
  auto* nbr = arrays.create<std::int32_t>("nbr", {book.KV, M});
  auto* mask = arrays.create<std::int32_t>("mask", {M, mask_words(book.KV)});
  const Question ask{lattice, inverse, work.cells, coords};
  const std::uint32_t* const bits = inverse ? work.found : work.given;
  const LaunchConfig config{blocks_for(M, kRowThreads, kMaxBlocks), kRowThreads};
  if (has_sides_of(lattice, 3) || has_sides_of(lattice, 2)) {
    launch_early(has_sides_of(lattice, 3) ? fill_table_of<3, 1> : fill_table_of<2, 2>, config, ask,
                 M, bits, work.first, work.rows, out_coords, nbr, mask);
  } else {
    launch_early(fill_table, config, ask, M, BitIndex{bits, work.first}, work.rows, out_coords, nbr,
                 mask);
  }
  create_form(book, M, nbr, mask, arrays);
}

/// Under `inverse` the number of outputs is that of the inputs, and `run` did not wait.
/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const Arguments& arrays) {
  if (book.mode != SparseMode::inverse) return;
  const Workspace work = workspace_at(book, arrays.workspace<std::uint32_t>());
  if (downloaded(&work.progress->unusable) > 0)
    report_site_errors(book, arrays.in<std::int32_t>("coords"));
}

std::string choice_in_words(const RulebookProblem& book) {
  const Lattice lattice(book);
  return text(bit_grid::found_in_words(book), ", ",
              has_sides_of(lattice, 3)   ? "27 taps, "
              : has_sides_of(lattice, 2) ? "8 taps, "
                                         : "any taps, ",
              form_in_words(book));
}

}  // namespace

Implementation<RulebookProblem> gather() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .finish = finish,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
