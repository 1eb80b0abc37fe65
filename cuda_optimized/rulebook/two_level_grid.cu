/// @file two_level_grid.cu
/// @brief rulebook, submanifold: a bit for each block of cells, and bits only for blocks with any.
///
/// - Before: bit_grid.cu
/// - The look-ups: runs.cuh
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** Of the words of a bit grid nearly all are zero, and yet each call clears them and
/// counts their bits. So there is a level above: the *summary* has a bit for each block of 1024
/// cells, 32 words, and says whether it has any site. Only those blocks have words, and where a
/// block's words begin is found as a row is: by counting the bits before.
///
///     cells      . . . . | # . # . | . . . . | . . . . | . # # .      4 a block here, 1024 there
///     summary    0         1         0         0         1            one word: 01001
///     words                0: 1010                       1: 0110      rank of the block's bit
///     rows                 0   1                           2 3        rank of the cell's bit
///
/// Page tables and OpenVDB's trees are built so. A cell in a block without sites takes one load;
/// any other takes three, one after the other: the summary's word, the blocks before, and the word.
/// **Expect.** In a LiDAR sweep (sweep-subm3-table), 80 x 1600 x 1600 cells, the summary has 25 KB
/// where the bit grid has 25.6 MB, and some 20 thousand blocks have words, 2.5 MB. On an H200 38 us
/// for 125,562 sites, most of it for short launches, and 95 us for 913,903 (large-subm3-table). The
/// summary of 2^37 cells, the most, has 16 MB.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect launches 9, two sums and the summary's
/// @expect footprint.workspace 5 * 128 + 4 * 512 + 116 = 2804, 5 blocks, rows, an index
/// @expect lanes.coords.load 2 * 512 - 1 + 3 * 512 + 3 * 512 = 4095, once more for the summary
/// @expect lanes.nbr.store 27 * 512 = 13824
/// **Costs.** Two sums over the whole device. 144 bytes for each block that could have sites, which
/// is each site where all are far apart; only those of real blocks are touched. Declined: other
/// modes than subm, grids of more than 2^32 runs of 32 cells.
/// **Try.** Make a block 8 x 4 x 32 cells, 32 words still: how many blocks has a sweep then?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/runs.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using runs::State;

constexpr int kThreads = 384;
constexpr int kRows = kThreads / runs::kPlanes;  ///< Of a tile: three threads each.
constexpr std::int64_t kMaxBlocks = 1 << 20;     ///< More work than these take: threads stride.
constexpr int kBlockWords = 32;                  ///< Of a block of cells: one for each of a warp.
constexpr int kGroupWords = 8;                   ///< One sector of memory.
constexpr int kGroupBits = 10;                   ///< Of a number up to 768, the sites in 24 words.

/// The grid, in two levels: an index for look_up().
struct BitGrid {
  using Answer = std::uint32_t;

  std::int64_t* blocks_before;  ///< [summary words + 1]: blocks in the summary words before
  std::int64_t* sites_before;   ///< [blocks + 1]: sites in the blocks before
  std::uint32_t* summary;       ///< [summary words]: a bit for each block of the grid
  std::uint32_t* words;         ///< [blocks][kBlockWords]: a bit for each cell, a word for each run
  std::uint32_t* in_block;      ///< [blocks]: sites before the groups 1, 2 and 3 of its words
  std::int32_t* rows;           ///< [sites], by rank; only where the input is not sorted

  struct Found {
    std::uint32_t word;
    std::int64_t place;  ///< Of the word, among all.
  };

  /// The word of the summary with a run's bit.
  __device__ static std::uint32_t summary_word(std::uint32_t run) { return run / kBlockWords / 32; }
  __device__ static unsigned summary_bit(std::uint32_t run) { return 1u << run / kBlockWords % 32; }
  /// Where the word of a run stands, whose block has sites.
  __device__ std::int64_t place_of(std::uint32_t run, std::uint32_t in_summary) const {
    const std::int64_t block =
        blocks_before[summary_word(run)] + __popc(in_summary & (summary_bit(run) - 1));
    return block * kBlockWords + run % kBlockWords;
  }

  __device__ Answer ask(std::uint32_t run) const { return summary[summary_word(run)]; }
  __device__ Found settle(std::uint32_t run, Answer in_summary) const {
    if ((in_summary & summary_bit(run)) == 0) return {0, 0};
    const std::int64_t place = place_of(run, in_summary);
    return {words[place], place};
  }
  /// The sites before a cell.
  __device__ std::int32_t rank_at(const Found& found, int bit) const {
    const std::int64_t block = found.place / kBlockWords;
    const int group = static_cast<int>(found.place % kBlockWords) / kGroupWords;
    auto rank = static_cast<std::int32_t>(sites_before[block]);
    if (group > 0)
      rank += static_cast<std::int32_t>(in_block[block] >> (group - 1) * kGroupBits &
                                        ((1u << kGroupBits) - 1));
    for (std::int64_t i = found.place / kGroupWords * kGroupWords; i < found.place; ++i)
      rank += __popc(words[i]);
    return rank + __popc(found.word & ((1u << bit) - 1));
  }
  __device__ std::int32_t row_at(const Found& found, int bit, bool sorted) const {
    if ((found.word >> bit & 1) == 0) return -1;
    const std::int32_t rank = rank_at(found, bit);
    return sorted ? rank : rows[rank];
  }
};

/// Copies coords [N][1 + ndim], looks at their order, and sets the bits of all blocks with sites.
/// The summary and state must be zero. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void set_summary(runs::Problem grid, const std::int32_t* coords, BitGrid bits,
                            State* state, std::int32_t* out_coords) {
  if (!runs::copy_sites<kCube>(grid, coords, thread_of_grid(), threads_of_grid(), out_coords))
    state->unsorted = 1;
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t, const runs::Site& site) {
    const std::uint32_t word = BitGrid::summary_word(site.run);
    const runs::Group group(site.inside, word, static_cast<int>(site.run / kBlockWords % 32));
    if (site.inside && group.leads) atomicOr(&bits.summary[word], group.bits);
  });
}

/// counts [summary words]: the blocks with sites of each. Any one-dimensional grid.
__global__ void count_blocks(std::int64_t summary_words, const std::uint32_t* summary,
                             std::int32_t* counts) {
  for (const std::int64_t i : grid_stride(summary_words)) counts[i] = __popc(summary[i]);
}

/// Empties the words of all blocks with sites, of which there are *blocks. Any one-dimensional
/// grid.
__global__ void clear_words(const std::int64_t* blocks, std::uint32_t* words) {
  for (const std::int64_t i : grid_stride(*blocks * kBlockWords)) words[i] = 0;
}

/// Sets the bits of all sites. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void set_bits(runs::Problem grid, const std::int32_t* coords, BitGrid bits,
                         State* state) {
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (row < grid.sites && !site.inside) atomicAdd(&state->bad, 1);
    const runs::Group group(site.inside, site.run, site.bit);
    if (!site.inside || !group.leads) return;
    const std::int64_t place = bits.place_of(site.run, bits.ask(site.run));
    const std::uint32_t old = atomicOr(&bits.words[place], group.bits);
    const int repeated = group.lanes - __popc(group.bits) + __popc(old & group.bits);
    if (repeated != 0) atomicAdd(&state->bad, repeated);
  });
}

/// counts [most blocks]: the sites of each of *blocks blocks, 0 behind the last; and in_block. A
/// warp a block: any one-dimensional grid of whole warps.
__global__ void count_sites(std::int64_t most_blocks, const std::int64_t* blocks,
                            const std::uint32_t* words, std::int32_t* counts,
                            std::uint32_t* in_block) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t block = thread_of_grid() / 32; block < most_blocks;
       block += threads_of_grid() / 32) {
    const bool exists = block < *blocks;                                 // the same for all lanes
    int sites = exists ? __popc(words[block * kBlockWords + lane]) : 0;  // up to this word
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(runs::kWholeWarp, sites, static_cast<unsigned>(distance));
      if (lane >= distance) sites += before;
    }
    std::uint32_t packed = 0;
    for (int group = 1; group < kBlockWords / kGroupWords; ++group) {
      const int before = __shfl_sync(runs::kWholeWarp, sites, group * kGroupWords - 1);
      packed |= static_cast<std::uint32_t>(before) << (group - 1) * kGroupBits;
    }
    if (lane == 31) counts[block] = sites;
    if (lane == 31 && exists) in_block[block] = packed;
  }
}

/// rows [N], by rank, unless the input is sorted. Any one-dimensional grid of whole warps.
template <bool kCube>
__global__ void list_rows(runs::Problem grid, const std::int32_t* coords, BitGrid bits,
                          const State* state) {
  if (state->unsorted == 0) return;
  runs::visit_sites<kCube>(grid, coords, [&](std::int64_t row, const runs::Site& site) {
    if (!site.inside) return;
    // Of several rows of one site any may win here: the result is not used.
    bits.rows[bits.rank_at(bits.settle(site.run, bits.ask(site.run)), site.bit)] =
        static_cast<std::int32_t>(row);
  });
}

/// nbr [KV][N] and mask [N][mask_words(KV)]. Any one-dimensional grid of kThreads.
template <bool kCube>
__global__ void __launch_bounds__(kThreads)
    find_neighbours(runs::Problem grid, const std::int32_t* coords, BitGrid bits,
                    const State* state, std::int32_t* nbr, std::int32_t* mask) {
  const bool sorted = state->unsorted == 0;
  if constexpr (kCube) {
    __shared__ std::uint32_t mask_bits[runs::kPlanes][kRows];
    const int row_of_tile = static_cast<int>(threadIdx.x) % kRows;
    const int plane = static_cast<int>(threadIdx.x) / kRows;
    const auto sites = static_cast<unsigned>(grid.sites);
    for (unsigned first = blockIdx.x * kRows; first < sites; first += gridDim.x * kRows) {
      const unsigned row = first + static_cast<unsigned>(row_of_tile);
      if (row < sites)
        mask_bits[plane][row_of_tile] = runs::look_up_plane(
            grid, runs::cell_of<true>(grid, coords, row), bits, sorted, plane, row, nbr);
      __syncthreads();  // the bits of all planes are there before one thread a row joins them
      if (plane == 0 && row < sites)
        mask[row] = static_cast<std::int32_t>(
            mask_bits[0][row_of_tile] | mask_bits[1][row_of_tile] | mask_bits[2][row_of_tile]);
      __syncthreads();  // they are joined before the next tile's bits overwrite them
    }
  } else {
    for (std::int64_t row = thread_of_grid(); row < grid.sites; row += threads_of_grid())
      runs::look_up(grid, runs::cell_of<false>(grid, coords, row), bits, sorted, row,
                    grid.tap_lines, nbr, mask);
  }
}

/// Where everything stands in the workspace.
struct Workspace {
  State* state;
  BitGrid bits;
  std::size_t zeroed_bytes;  ///< Of state and summary, which must be zero before the first launch.
  std::int32_t *summary_counts, *block_counts;
  std::int64_t summary_words, most_blocks;
  std::size_t bytes;  ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t blocks = ceil_div<std::int64_t>(runs::run_count(book), kBlockWords);
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.summary_words = ceil_div<std::int64_t>(blocks, 32);
  work.most_blocks = std::min<std::int64_t>(blocks, book.sites);
  work.state = cutter.take<State>(1);
  work.bits.summary = cutter.take<std::uint32_t>(work.summary_words);
  work.zeroed_bytes = cutter.bytes();
  work.bits.words = cutter.take<std::uint32_t>(work.most_blocks * kBlockWords);
  work.bits.blocks_before = cutter.take<std::int64_t>(work.summary_words + 1);
  work.bits.sites_before = cutter.take<std::int64_t>(work.most_blocks + 1);
  work.summary_counts = cutter.take<std::int32_t>(work.summary_words);
  work.block_counts = cutter.take<std::int32_t>(work.most_blocks);
  work.bits.in_block = cutter.take<std::uint32_t>(work.most_blocks);
  work.bits.rows = cutter.take<std::int32_t>(book.sites);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

template <bool kCube>
void launch_steps(const RulebookProblem& book, const std::int32_t* coords, const Workspace& work,
                  std::int32_t* out_coords, std::int32_t* nbr, std::int32_t* mask) {
  const runs::Problem grid(book);
  const BitGrid& bits = work.bits;
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned find_blocks = kCube ? blocks_for(book.sites, kRows, kMaxBlocks) : row_blocks;
  const std::int64_t* const blocks = bits.blocks_before + work.summary_words;
  check(cudaMemsetAsync(work.state, 0, work.zeroed_bytes, current_stream()));
  launch(set_summary<kCube>, {row_blocks, kThreads}, grid, coords, bits, work.state, out_coords);
  launch(count_blocks, {blocks_for(work.summary_words, kThreads, kMaxBlocks), kThreads},
         work.summary_words, bits.summary, work.summary_counts);
  exclusive_sum(work.summary_counts, bits.blocks_before, work.summary_words);
  launch(clear_words, {row_blocks, kThreads}, blocks, bits.words);
  launch(set_bits<kCube>, {row_blocks, kThreads}, grid, coords, bits, work.state);
  launch(count_sites, {blocks_for(work.most_blocks, kThreads / 32, kMaxBlocks), kThreads},
         work.most_blocks, blocks, bits.words, work.block_counts, bits.in_block);
  exclusive_sum(work.block_counts, bits.sites_before, work.most_blocks);
  launch(list_rows<kCube>, {row_blocks, kThreads}, grid, coords, bits, work.state);
  launch(find_neighbours<kCube>, {find_blocks, kThreads}, grid, coords, bits, work.state, nbr,
         mask);
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and the form.
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  auto* nbr = arrays.create("nbr", {book.KV, book.sites});
  auto* mask = arrays.create("mask", {book.sites, mask_words(book.KV)});
  if (book.sites > 0) {
    const bool cube = runs::is_cube_of_3(book, coords, out_coords);
    const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
    (cube ? launch_steps<true> : launch_steps<false>)(book, coords, work, out_coords, nbr, mask);
  }
  create_form(book, book.sites, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  runs::require_no_bad_rows(book, arrays.coords, &work.state->bad);
}

std::string choice_in_words(const RulebookProblem& book) {
  if (book.sites == 0) return text("no sites, ", form_in_words(book));
  const bool fewer = workspace_at(book, nullptr).most_blocks < book.sites;
  return text(runs::kernel_in_words(book), ", ", fewer ? "fewer blocks than sites, " : "",
              form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> two_level_grid = {
    .supports = runs::declined,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
