/// @file neighbour_table.cu
/// @brief rulebook, every mode: neighbour table by binary search; its row order gives ordered
/// pairs.
///
/// - Before: strided/compact_before_sort.cu
/// - The same maths: cpu_reference/rulebook/sorted_search.cpp
///
/// **The idea.** An output has at most one input at a tap. The rulebook is therefore a table, nbr
/// [KV][M], and one thread per output row fills its column, without atomics. The bits of its taps,
/// mask [M], are collected in a register.
///
///     nbr       out 0  1  2  3                     pairs (k, in, out)
///     tap 0       .  0  .  2       read row by     (0, 0, 1) (0, 2, 3)
///     tap 1       0  1  2  3       row, without    (1, 0, 0) (1, 1, 1) (1, 2, 2) (1, 3, 3)
///     tap 2       1  .  3  .       its holes       (2, 1, 0) (2, 3, 2)
///     mask      110 011 110 011  (tap 2 first)
///
/// Read row by row, the table *is* the list of pairs in order of tap and output. Sites are found by
/// binary search in their sorted keys, so the size of the grid does not matter, and equal
/// neighbours in the list are duplicates.
///
/// **Expect.** KV * M searches of log2(sites) dependent loads: 17 loads in a sweep
/// (sweep-subm3-table), where a grid takes one. Stores of nbr, 4 * KV * M bytes, are coalesced.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect lanes.workspace.atomic 0
/// @expect lanes.nbr.store 27 * 512 = 13824, a look-up each
/// @expect lanes.mask.store 512
/// @expect launches 5
/// **Costs.** An entry for each tap and output, 80 % of them empty in a sweep.
/// **Try.** Start each search where the previous tap's search ended. How many loads remain?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/site_check.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr std::int64_t kMaxCandidates = std::int64_t{1} << 31;

/// Sites by key, on the device.
struct SiteIndex {
  const std::int64_t* keys;  ///< [count], ascending and distinct
  const std::int32_t* rows;  ///< [count], or null: each key's row is its index
  std::int64_t count;        ///< How many.

  /// The row of a key, or -1.
  __device__ std::int32_t row_of(std::int64_t key) const {
    std::int64_t begin = 0, end = count;  // invariant: the first key that is not less is in [begin,
                                          // end]
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      if (keys[middle] < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    if (begin == count || keys[begin] != key) return -1;
    return rows != nullptr ? rows[begin] : static_cast<std::int32_t>(begin);
  }
};

/// counts [N]: the number of taps of each site that lead to an output. Any one-dimensional grid.
__global__ void rulebook_neighbour_table_count_candidates(RulebookProblem book,
                                                          const std::int32_t* coords,
                                                          std::int32_t* counts) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    const Site in = site_of(book, coords, row);
    std::int32_t count = 0;
    Site out;
    for (int k = 0; k < book.KV; ++k) count += output_of(book, in, tap_of(book, k), &out) ? 1 : 0;
    counts[row] = count;
  }
}

/// candidates [offsets[N]]: the keys that each site leads to, from its offset on. Any
/// one-dimensional grid.
__global__ void rulebook_neighbour_table_list_candidates(RulebookProblem book,
                                                         const std::int32_t* coords,
                                                         const std::int64_t* offsets,
                                                         std::int64_t* candidates) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    const Site in = site_of(book, coords, row);
    std::int64_t place = offsets[row];
    for (int k = 0; k < book.KV; ++k) {
      Site out;
      if (output_of(book, in, tap_of(book, k), &out))
        candidates[place++] = key_of(book, book.out_shape, out);
    }
  }
}

/// out_coords [count][1 + ndim] of keys [count]. Any one-dimensional grid.
__global__ void rulebook_neighbour_table_write_sites(RulebookProblem book, std::int64_t count,
                                                     const std::int64_t* keys,
                                                     std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(count))
    write_site(book, site_of_key(book, book.out_shape, keys[row]), out_coords, row);
}

/// nbr [KV][M] and mask [M][mask_words(KV)]: one thread an output row. Any one-dimensional grid.
__global__ void rulebook_neighbour_table_fill_table(RulebookProblem book, std::int64_t M,
                                                    const std::int32_t* out_coords,
                                                    SiteIndex inputs, std::int32_t* nbr,
                                                    std::int32_t* mask) {
  // Under `inverse` the outputs are the given sites, which look up where `strided` leads them.
  const bool inverse = book.mode == SparseMode::inverse;
  for (const std::int64_t row : grid_stride(M)) {
    const Site out = site_of(book, out_coords, row);
    unsigned word = 0;
    for (int k = 0; k < book.KV; ++k) {
      const PerAxis tap = tap_of(book, k);
      Site in;
      const bool inside = inverse ? output_of(book, out, tap, &in) : input_of(book, out, tap, &in);
      const std::int32_t in_row =
          inside ? inputs.row_of(key_of(book, inverse ? book.out_shape : book.shape, in)) : -1;
      nbr[k * M + row] = in_row;
      if (in_row >= 0) word |= 1u << k % 32;
      if (k % 32 == 31 || k == book.KV - 1) {
        mask[row * mask_words(book.KV) + k / 32] = static_cast<std::int32_t>(word);
        word = 0;
      }
    }
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm && std::int64_t{book.KV} * book.sites >= kMaxCandidates)
    return "fewer than 2^31 candidates (taps times sites) only, but in mode subm";
  return {};
}

/// The sites that those of coords lead to: their keys, and how many.
struct FoundSites {
  DeviceArray<std::int64_t> keys;  ///< ascending, distinct; longer than count
  std::int64_t count;
};

FoundSites find_sites(const RulebookProblem& book, const std::int32_t* coords) {
  const unsigned blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  const DeviceArray<std::int32_t> counts(book.sites);
  const DeviceArray<std::int64_t> offsets(std::int64_t{book.sites} + 1), distinct_count(1);
  launch(rulebook_neighbour_table_count_candidates, {blocks, kThreads}, book, coords,
         counts.data());
  exclusive_sum(counts.data(), offsets.data(), book.sites);
  const std::int64_t total = downloaded(offsets.data() + book.sites);

  const DeviceArray<std::int64_t> candidates(total), sorted(total);
  FoundSites found{DeviceArray<std::int64_t>(total), 0};
  launch(rulebook_neighbour_table_list_candidates, {blocks, kThreads}, book, coords, offsets.data(),
         candidates.data());
  sort_keys(candidates.data(), sorted.data(), total, key_bits(key_count(book, book.out_shape) - 1));
  unique(sorted.data(), found.keys.data(), distinct_count.data(), total);
  found.count = downloaded(distinct_count.data());
  return found;
}

/// coords [N][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words], pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context&) {
  const auto* coords = arrays.coords;
  const bool inverse = book.mode == SparseMode::inverse;

  const SiteCheck sites(book, coords);
  const DeviceArray<std::int64_t> given_keys(book.sites);
  const DeviceArray<std::int32_t> given_rows(book.sites);
  sort_sites(book, coords, given_keys.data(), given_rows.data(), sites.errors());
  sites.require_distinct();

  const FoundSites found = book.mode == SparseMode::subm
                               ? FoundSites{DeviceArray<std::int64_t>(0), 0}
                               : find_sites(book, coords);
  const bool rows_are_given = inverse || book.mode == SparseMode::subm;
  const std::int64_t M = rows_are_given ? book.sites : found.count;
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  if (rows_are_given) {
    check(cudaMemcpyAsync(
        out_coords, coords,
        static_cast<std::size_t>(M) * static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
        cudaMemcpyDeviceToDevice, current_stream()));
  } else {
    launch(rulebook_neighbour_table_write_sites, {blocks_for(M, kThreads, kMaxBlocks), kThreads},
           book, M, found.keys.data(), out_coords);
  }

  auto* nbr = arrays.create("nbr", {book.KV, M});
  auto* mask = arrays.create("mask", {M, mask_words(book.KV)});
  const SiteIndex inputs = inverse ? SiteIndex{found.keys.data(), nullptr, found.count}
                                   : SiteIndex{given_keys.data(), given_rows.data(), book.sites};
  launch(rulebook_neighbour_table_fill_table, {blocks_for(M, kThreads, kMaxBlocks), kThreads}, book,
         M, out_coords, inputs, nbr, mask);

  create_form(book, M, nbr, mask, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(book.mode == SparseMode::subm      ? "all rows are given, "
              : book.mode == SparseMode::inverse ? "inputs are found, "
                                                 : "outputs are found, ",
              form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> neighbour_table = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
