/// @file table_forms.cu
/// @brief Converts the table nbr to the requested form of a rulebook: pairs, or sorted rows.
///
/// Not a rung: the rungs that build a table call it at the end. neighbour_table.cu explains why the
/// table, read row by row, gives the pairs in canonical order.
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "cuda_optimized/rulebook/shared/mask_order.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace table_forms {
namespace {

constexpr int kThreads = 256;                 ///< Also the entries of a tile. A multiple of 32.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr int kWarps = kThreads / 32;         ///< Per block.
constexpr unsigned kWholeWarp = 0xffffffff;   ///< Mask of all lanes.

/// counts [tiles]: the pairs in each tile of kThreads entries of nbr. Any one-dimensional grid of
/// kThreads.
__global__ void rulebook_count_pairs(std::int64_t places, const std::int32_t* nbr,
                                     std::int32_t* counts) {
  for (std::int64_t tile = blockIdx.x; tile * kThreads < places; tile += gridDim.x) {
    const std::int64_t place = tile * kThreads + threadIdx.x;
    // A barrier for its count alone: there is no shared memory to protect.
    const int count = __syncthreads_count(place < places && nbr[place] >= 0);
    if (threadIdx.x == 0) counts[tile] = count;
  }
}

/// pairs [P][3]: those of each tile from its offset on. Any one-dimensional grid of kThreads.
__global__ void rulebook_write_pairs(std::int64_t M, std::int64_t places, const std::int32_t* nbr,
                                     const std::int64_t* offsets, std::int32_t* pairs) {
  __shared__ int warp_pairs[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t tile = blockIdx.x; tile * kThreads < places; tile += gridDim.x) {
    const std::int64_t place = tile * kThreads + threadIdx.x;
    const std::int32_t in = place < places ? nbr[place] : -1;
    const unsigned hits = __ballot_sync(kWholeWarp, in >= 0);
    if (lane == 0) warp_pairs[warp] = __popc(hits);
    __syncthreads();  // all warps have counted before any thread adds up
    if (in >= 0) {
      std::int64_t rank = offsets[tile] + __popc(hits & ((1u << lane) - 1));
      for (int before = 0; before < warp; ++before) rank += warp_pairs[before];
      std::int32_t* pair = pairs + rank * kPairColumns;
      pair[0] = static_cast<std::int32_t>(place / M);
      pair[1] = in;
      pair[2] = static_cast<std::int32_t>(place % M);
    }
    __syncthreads();  // all have added up before the next tile's counts overwrite these
  }
}

/// Bits `first` to `first` + `bits` - 1 of each row's mask: keys [M]. mask [M][words], at most 32
/// bits. rows [M]: in which order they are read; null for 0, 1, 2 ... Any one-dimensional grid.
__global__ void rulebook_read_mask_bits(std::int64_t M, int words, const std::int32_t* mask,
                                        int first, int bits, const std::int32_t* rows,
                                        std::uint32_t* keys, std::int32_t* numbers) {
  for (const std::int64_t i : grid_stride(M)) {
    const std::int32_t row = rows != nullptr ? rows[i] : static_cast<std::int32_t>(i);
    const std::int32_t* of_row = mask + std::int64_t{row} * words;
    const int word = first / 32, shift = first % 32;
    std::uint64_t both = static_cast<std::uint32_t>(of_row[word]);
    if (shift + bits > 32)
      both |= std::uint64_t{static_cast<std::uint32_t>(of_row[word + 1])} << 32;
    keys[i] = static_cast<std::uint32_t>(both >> shift & ((std::uint64_t{1} << bits) - 1));
    numbers[i] = row;
  }
}

/// Creates `pairs` [P][3] from the table nbr [KV][M]. The host waits for P.
void create_pairs(const RulebookProblem& book, std::int64_t M, const std::int32_t* nbr,
                  const RulebookArrays& arrays) {
  const std::int64_t places = book.KV * M, tiles = ceil_div<std::int64_t>(places, kThreads);
  const DeviceArray<std::int32_t> counts(tiles);
  const DeviceArray<std::int64_t> offsets(tiles + 1);
  const unsigned blocks = blocks_for(tiles, 1, kMaxBlocks);
  launch(rulebook_count_pairs, {blocks, kThreads}, places, nbr, counts.data());
  exclusive_sum(counts.data(), offsets.data(), tiles);
  const std::int64_t P = downloaded(offsets.data() + tiles);
  auto* pairs = arrays.create("pairs", {P, kPairColumns});
  launch(rulebook_write_pairs, {blocks, kThreads}, M, places, nbr, offsets.data(), pairs);
}

/// Sorts rows by up to 32 bits of their masks, equal ones as they were.
/// @param before [M]: how they were; null for 0, 1, 2 ... @param order [M], out; may be `before`
void sort_rows(std::int64_t M, int words, const std::int32_t* mask, int first, int bits,
               const std::int32_t* before, std::int32_t* order) {
  static const int most_blocks =
      resident_blocks(mask_order::rulebook_sort_rows, mask_order::kThreads);
  const unsigned blocks = blocks_for(M, mask_order::kThreads, most_blocks);
  if (M <= std::int64_t{most_blocks} * mask_order::kThreads * mask_order::kMostEach) {
    const DeviceArray<mask_order::Entry> entries(2 * M);
    const DeviceArray<std::uint32_t> counts(2 * blocks * mask_order::kDigits);
    const mask_order::Sort sort = {.rows = static_cast<int>(M),
                                   .words = words,
                                   .mask = mask,
                                   .first = first,
                                   .bits = bits,
                                   .before = before,
                                   .even = entries.data(),
                                   .odd = entries.data() + M,
                                   .counts = counts.data(),
                                   .order = order};
    launch_cooperatively(mask_order::rulebook_sort_rows, {blocks, mask_order::kThreads}, sort);
    return;
  }
  const DeviceArray<std::uint32_t> keys(M), sorted_keys(M);
  const DeviceArray<std::int32_t> rows(M);
  launch(rulebook_read_mask_bits, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, M, words, mask,
         first, bits, before, keys.data(), rows.data());
  sort_pairs(keys.data(), rows.data(), sorted_keys.data(), order, M, std::max(bits, 1));
}

/// Creates `order` [parts][M] from the masks: for each part of the taps a stable sort, 32 bits at a
/// time, the lowest first.
void create_order(const RulebookProblem& book, std::int64_t M, const std::int32_t* mask,
                  const RulebookArrays& arrays) {
  const int parts = orders_of(book.form);
  auto* order = arrays.create("order", {parts, M});
  if (M == 0) return;
  for (int part = 0; part < parts; ++part) {
    std::int32_t* const sorted = order + part * M;
    const int end = first_tap(book.KV, parts, part + 1);
    const std::int32_t* before = nullptr;
    for (int first = first_tap(book.KV, parts, part); first < end || before == nullptr;
         first += 32) {
      // A part without taps (KV = 1) has no bits: all rows are equal.
      const int bits = std::clamp(end - first, 0, 32);
      sort_rows(M, mask_words(book.KV), mask, bits == 0 ? 0 : first, bits, before, sorted);
      before = sorted;
    }
  }
}

}  // namespace
}  // namespace table_forms

void create_form(const RulebookProblem& book, std::int64_t M, const std::int32_t* nbr,
                 const std::int32_t* mask, const RulebookArrays& arrays) {
  if (book.form == RulebookForm::pairs) {
    table_forms::create_pairs(book, M, nbr, arrays);
  } else if (orders_of(book.form) > 0) {
    table_forms::create_order(book, M, mask, arrays);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
