/// @file filtered_hash.cu
/// @brief rulebook, submanifold: Bloom filter; a bitmap filters the look-ups of the hash table.
///
/// - Before: hash_table.cu
/// - After: count_scan_fill.cu
/// - The table and the filter: shared/site_hash.cuh; the taps: shared/site_taps.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Four of five taps of a site in a sweep find no site, and one bit can tell that. 32
/// cells along the last axis, a *line*, share a word of a small table, and the hash of the line's
/// number is the index of its word.
///
///     cells along x    | . . x . x x . . | . . . . . . x . |      (8 for 32)
///     words              00101100          00000010
///     taps of one line           ^ ^ ^                            one word, three answers: x x .
///
/// Two lines with the same hash share a word, so a bit may be set for a cell of the other line,
/// which costs one look-up. A clear bit is certain: a Bloom filter with one hash function.
///
/// **Expect.** About 9 words a site are loaded instead of 27 sectors, and neighbouring sites load
/// the same words from L1. The hash table is searched for the 6.3 neighbours of a site and for a
/// few false positives. Predicted on an H200: 25 us for sweep-subm3-table, 120 us for
/// large-subm3-table.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect footprint.workspace 1024 * 16 + 16 + 4 * 512 = 18448, and 32 bits a site
/// @expect lanes.workspace.atomic 607 + 512 = 1119, hash_table has 607 here; and one bit a site
/// @expect lanes.nbr.store 27 * 512 = 13824, as before
/// **Costs.** 4 to 8 bytes a site besides the table of hash_table.cu, with the same limits.
/// **Try.** Let each word cover 4 x 8 cells of the last two axes. How many words does a site load?
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/site_hash.cuh"
#include "cuda_optimized/rulebook/shared/site_taps.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.

/// Clears the table and the filter, forgets errors, and copies coords [N][1 + ndim]: all that has
/// no order. Any one-dimensional grid.
__global__ void rulebook_submanifold_filtered_hash_prepare(RulebookProblem book,
                                                           const std::int32_t* coords,
                                                           SiteHash hash, SiteFilter filter,
                                                           SiteErrors* errors,
                                                           std::int32_t* out_coords) {
  if (thread_of_grid() == 0) *errors = SiteErrors{};
  for (const std::int64_t i : grid_stride(hash.capacity() / 2)) hash.empty(i);
  for (const std::int64_t i : grid_stride(filter.size())) filter.words[i] = 0;
  const std::int64_t numbers = std::int64_t{book.sites} * (1 + book.ndim);
  for (const std::int64_t i : grid_stride(numbers)) out_coords[i] = coords[i];
}

/// Inserts all sites; those outside of the grid are counted instead. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_filtered_hash_insert_sites(RulebookProblem book,
                                                                const std::int32_t* coords,
                                                                SiteHash hash, SiteFilter filter,
                                                                SiteErrors* errors) {
  for (const std::int64_t i : grid_stride(book.sites)) {
    const auto row = static_cast<std::int32_t>(i);
    const GivenSite<kAxes> site(book, coords, row);
    if (site.inside) {
      const std::uint64_t key = site.key(book);
      filter.set(key);
      hash.insert(key, row, errors);
    } else {
      atomicAdd(&errors->outside, 1);
      atomicMin(&errors->first_outside, row);
    }
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_filtered_hash_fill_table(RulebookProblem book,
                                                              const std::int32_t* coords,
                                                              SiteHash hash, SiteFilter filter,
                                                              std::int32_t* nbr,
                                                              std::int32_t* mask) {
  const std::int64_t N = book.sites;
  for (const std::int64_t row : grid_stride(N)) {
    const GivenSite<kAxes> site(book, coords, row);
    unsigned bits = 0;
    std::uint64_t line = ~std::uint64_t{0};  // whose word is held: none
    std::uint32_t word = 0;
    // visit_taps() stands for
    //
    //     for k in 0 ... KV - 1:  cell = site - pad + tap k * dilation, along each axis
    //       the lambda, with k, whether the cell lies in the grid, and its key (row-major number)
    //
    // without a division for each tap.
    visit_taps(book, site, 0, book.KV, [&](int k, bool inside, std::uint64_t key) {
      if (inside && key / 32 != line) {
        line = key / 32;
        word = *filter.word_of(line);
      }
      const bool asks = inside && (word >> key % 32 & 1) != 0;
      const std::int32_t in_row = asks ? hash.row_of(key) : -1;
      nbr[k * N + row] = in_row;
      if (in_row >= 0) bits |= 1u << k % 32;
      if (k % 32 == 31 || k == book.KV - 1) {
        mask[row * mask_words(book.KV) + k / 32] = static_cast<std::int32_t>(bits);
        bits = 0;
      }
    });
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm)
    return "mode subm only: the others must find their sites before they can look them up";
  return site_hash_declines(book);
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  SiteHash hash;
  SiteFilter filter;
  SiteErrors* errors;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.hash = cut_site_hash(book, &cutter);
  work.filter = cut_site_filter(work.hash, &cutter);
  work.errors = cutter.take<SiteErrors>(1);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const RulebookProblem& book) {
  return workspace_at(book, nullptr).bytes;
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and the form.
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const auto* coords = arrays.coords;
  const auto [hash, filter, errors, bytes] = workspace_at(book, context.workspace_as<std::byte>());
  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});

  const unsigned slot_blocks = blocks_for(hash.capacity() / 2, kThreads, kMaxBlocks);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  constexpr decltype(&rulebook_submanifold_filtered_hash_insert_sites<1>) kInsert[kMaxAxes] = {
      rulebook_submanifold_filtered_hash_insert_sites<1>,
      rulebook_submanifold_filtered_hash_insert_sites<2>,
      rulebook_submanifold_filtered_hash_insert_sites<3>,
      rulebook_submanifold_filtered_hash_insert_sites<4>};
  launch(rulebook_submanifold_filtered_hash_prepare, {slot_blocks, kThreads}, book, coords, hash,
         filter, errors, out_coords);
  launch(kInsert[book.ndim - 1], {row_blocks, kThreads}, book, coords, hash, filter, errors);

  auto* nbr = arrays.create("nbr", {book.KV, book.sites});
  auto* mask = arrays.create("mask", {book.sites, mask_words(book.KV)});
  constexpr decltype(&rulebook_submanifold_filtered_hash_fill_table<1>) kFill[kMaxAxes] = {
      rulebook_submanifold_filtered_hash_fill_table<1>,
      rulebook_submanifold_filtered_hash_fill_table<2>,
      rulebook_submanifold_filtered_hash_fill_table<3>,
      rulebook_submanifold_filtered_hash_fill_table<4>};
  launch(kFill[book.ndim - 1], {row_blocks, kThreads}, book, coords, hash, filter, nbr, mask);
  create_form(book, book.sites, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
void finish(const RulebookProblem& book, const RulebookArrays& arrays, const Context& context) {
  const Workspace work = workspace_at(book, context.workspace_as<std::byte>());
  require_no_errors_on_device(book, arrays.coords, work.errors);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(book.ndim, book.ndim == 1 ? " axis, " : " axes, ", form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> submanifold_filtered_hash = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
