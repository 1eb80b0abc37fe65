/// @file aggregated_counters.cu
/// @brief rulebook, submanifold: aggregated atomics; one atomic addition per block and tap.
///
/// - Before: symmetric.cu
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** A tap has one counter, and thousands of threads add 1 to it: the atomics serialize
/// at one address. The 256 threads of a block, which all look up the same tap, therefore first
/// compute the ranks of their hits, by the warps' ballots and in shared memory. Then one thread
/// adds the total.
///
///     block     warp 0    warp 1    warp 2    ...    hits   2  0  3
///     lanes     .x..x.    ......    xx..x.           ranks  0  2  2    (prefix sums)
///                                                    atomicAdd(&counts[k], 5) = 40
///     indices   40 41               42 43 44
///
/// **Expect.** The additions of symmetric.cu, one for each pair before the centre, become at most
/// one per tap and 256 sites: in a LiDAR sweep of 125,562 sites (sweep-subm3-pairs) 6,383 instead
/// of 0.33 million. There are two more barriers per tap and 256 sites.
/// @expect lanes.workspace.atomic 512 + 13 * 2 = 538, one a site, one for a tap and 256 sites
/// @expect lanes.coords.load 4 * (14 + 13 + 3) * 512 = 61440, as before
/// @expect lanes.pairs.store 3 * 3838 = 11514, as before
/// **Costs.** As symmetric.cu: 4 bytes a cell, lists with room for all. Within a block the order is
/// that of the sites, but the order of blocks varies: not deterministic. Not supported: other forms
/// than pairs, other modes than subm, grids of 2^30 cells (4 GB) and more.
/// **Try.** Let each warp add its own total (no barrier, eight times the additions). Which is
/// faster where four of five look-ups find no site?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 256;                 ///< Also the sites of a tile. A multiple of 32.
constexpr int kWarps = kThreads / 32;         ///< Per block.
constexpr unsigned kWholeWarp = 0xffffffff;   ///< Mask of all lanes.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr std::int32_t kEmpty = 0x7fffffff;   ///< An empty cell: greater than every row.
constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  ///< 4 GB of rows.

/// Taps before the centre, which is tap number half_of() itself.
__host__ __device__ int half_of(const RulebookProblem& book) { return book.KV / 2; }

/// Tap and site of a thread's work: neighbouring threads have neighbouring sites at the same tap.
struct Item {
  int k;
  std::int32_t row;
};
__device__ Item item_of(const RulebookProblem& book, std::int64_t i) {
  return {static_cast<int>(i / book.sites), static_cast<std::int32_t>(i % book.sites)};
}

/// Clears each cell that a tap up to the centre leads to. coords [N][1 + ndim], grid [cells]. Any
/// one-dimensional grid.
__global__ void rulebook_submanifold_aggregated_counters_clear_cells(RulebookProblem book,
                                                                     const std::int32_t* coords,
                                                                     std::int32_t* grid) {
  for (const std::int64_t i : grid_stride(std::int64_t{half_of(book) + 1} * book.sites)) {
    const Item item = item_of(book, i);
    Site out;
    if (output_of(book, site_of(book, coords, item.row), tap_of(book, item.k), &out))
      grid[key_of(book, book.shape, out)] = kEmpty;
  }
}

/// Writes each row to its site's cell. Any one-dimensional grid.
__global__ void rulebook_submanifold_aggregated_counters_fill_cells(RulebookProblem book,
                                                                    const std::int32_t* coords,
                                                                    std::int32_t* grid) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    atomicMin(&grid[key_of(book, book.shape, site_of(book, coords, row))],
              static_cast<std::int32_t>(row));
  }
}

/// Counts the rows whose cell holds an earlier row. Any one-dimensional grid.
__global__ void rulebook_submanifold_aggregated_counters_find_duplicates(RulebookProblem book,
                                                                         const std::int32_t* coords,
                                                                         const std::int32_t* grid,
                                                                         SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    if (grid[key_of(book, book.shape, site_of(book, coords, row))] != row)
      count_duplicate(errors, static_cast<std::int32_t>(row));
  }
}

/// Looks up each site at each tap before the centre, a tile of kThreads sites at one tap at a time.
/// counts [half] must be zero; ins, outs [half][N] get the rows of each tap's pairs. Any
/// one-dimensional grid of kThreads.
__global__ void rulebook_submanifold_aggregated_counters_find_pairs(
    RulebookProblem book, const std::int32_t* coords, const std::int32_t* grid,
    std::int32_t* counts, std::int32_t* ins, std::int32_t* outs) {
  __shared__ int warp_hits[kWarps];
  __shared__ std::int32_t block_place;  // of the block's first hit in the tap's list
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t tiles_a_tap = ceil_div<std::int64_t>(book.sites, kThreads);
  for (std::int64_t tile = blockIdx.x; tile < half_of(book) * tiles_a_tap; tile += gridDim.x) {
    const int k = static_cast<int>(tile / tiles_a_tap);
    const std::int64_t row = tile % tiles_a_tap * kThreads + threadIdx.x;
    std::int32_t out_row = kEmpty;
    Site out;
    if (row < book.sites && output_of(book, site_of(book, coords, row), tap_of(book, k), &out))
      out_row = grid[key_of(book, book.shape, out)];

    const unsigned hits = __ballot_sync(kWholeWarp, out_row != kEmpty);
    if (lane == 0) warp_hits[warp] = __popc(hits);
    __syncthreads();  // all warps have counted before any thread adds up
    if (threadIdx.x == 0) {
      int sum = 0;
      for (const int of_warp : warp_hits) sum += of_warp;
      block_place = sum == 0 ? 0 : atomicAdd(&counts[k], sum);
    }
    int rank = __popc(hits & ((1u << lane) - 1));
    for (int before = 0; before < warp; ++before) rank += warp_hits[before];
    __syncthreads();  // the index is stored, and all threads have added up before the next tile's
                      // the previous kernel has stored the counts
    if (out_row != kEmpty) {
      const std::int64_t place = std::int64_t{k} * book.sites + block_place + rank;
      ins[place] = static_cast<std::int32_t>(row);
      outs[place] = out_row;
    }
    // The next tile's index is written after its first barrier, which all threads reach after this
    // read.
  }
}

__device__ void write_pair(std::int32_t* pairs, std::int64_t place, int k, std::int32_t in,
                           std::int32_t out) {
  std::int32_t* pair = pairs + place * kPairColumns;
  pair[0] = k;
  pair[1] = in;
  pair[2] = out;
}

/// pairs [P][3]: the lists, the centre, and the lists again, swapped and in reverse order of taps.
/// offsets [half + 1]. Any one-dimensional grid.
__global__ void rulebook_submanifold_aggregated_counters_pack_pairs(RulebookProblem book,
                                                                    const std::int32_t* ins,
                                                                    const std::int32_t* outs,
                                                                    const std::int64_t* offsets,
                                                                    std::int32_t* pairs) {
  const int half = half_of(book);
  const std::int64_t P = 2 * offsets[half] + book.sites;
  for (const std::int64_t i : grid_stride(std::int64_t{half + 1} * book.sites)) {
    const auto [k, place] = item_of(book, i);
    if (k == half) {
      write_pair(pairs, offsets[half] + place, half, place, place);
    } else if (place < offsets[k + 1] - offsets[k]) {  // beyond, the list is empty
      write_pair(pairs, offsets[k] + place, k, ins[i], outs[i]);
      // The number of pairs after the mirrored tap equals that before this one.
      write_pair(pairs, P - offsets[k + 1] + place, book.KV - 1 - k, outs[i], ins[i]);
    }
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  if (book.mode != SparseMode::subm) return "mode subm only: no other is symmetric";
  if (key_count(book, book.shape) >= kMaxCells) return "grids of fewer than 2^30 cells only";
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  std::int32_t* grid;        ///< The row of each cell.
  std::int32_t* counts;      ///< By tap before the centre.
  std::int32_t *ins, *outs;  ///< Lists of the same taps.
  std::size_t bytes;         ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t items = std::int64_t{half_of(book)} * book.sites;
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.grid = cutter.take<std::int32_t>(key_count(book, book.shape));
  work.counts = cutter.take<std::int32_t>(half_of(book));
  work.ins = cutter.take<std::int32_t>(items);
  work.outs = cutter.take<std::int32_t>(items);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const int half = half_of(book);
  const std::int64_t items = std::int64_t{half} * book.sites;
  const auto [grid, counts, ins, outs, bytes] =
      workspace_at(book, context.workspace_as<std::byte>());

  const SiteCheck sites(book, coords);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const unsigned tile_blocks =
      blocks_for(half * ceil_div<std::int64_t>(book.sites, kThreads), 1, kMaxBlocks);
  const unsigned with_centre = blocks_for(items + book.sites, kThreads, kMaxBlocks);
  launch(rulebook_submanifold_aggregated_counters_clear_cells, {with_centre, kThreads}, book,
         coords, grid);
  launch(rulebook_submanifold_aggregated_counters_fill_cells, {row_blocks, kThreads}, book, coords,
         grid);
  launch(rulebook_submanifold_aggregated_counters_find_duplicates, {row_blocks, kThreads}, book,
         coords, grid, sites.errors());
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(half) * sizeof *counts,
                        current_stream()));
  launch(rulebook_submanifold_aggregated_counters_find_pairs, {tile_blocks, kThreads}, book, coords,
         grid, counts, ins, outs);
  const DeviceArray<std::int64_t> offsets(std::int64_t{half} + 1);
  exclusive_sum(counts, offsets.data(), half);
  sites.require_distinct();

  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});
  check(cudaMemcpyAsync(out_coords, coords,
                        static_cast<std::size_t>(book.sites) *
                            static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
                        cudaMemcpyDeviceToDevice, current_stream()));
  const std::int64_t P = 2 * downloaded(offsets.data() + half) + book.sites;
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch(rulebook_submanifold_aggregated_counters_pack_pairs, {with_centre, kThreads}, book, ins,
         outs, offsets.data(), pairs);
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_aggregated_counters = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
