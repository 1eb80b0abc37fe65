/// @file hash_table.cu
/// @brief rulebook, submanifold: hash table of 64-bit slots with key and row; insertion finds
/// duplicates.
///
/// - Before: linear_probing.cu
/// - After: filtered_hash.cu
/// - The table: shared/site_hash.cuh; the taps of a site: shared/site_taps.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** A slot of 64 bits holds key and row. One atomicCAS stores both, and a thread that
/// finds its own key reads the row of the duplicate at once, without a separate pass. A search
/// starts in the home bucket of four slots, and continues with the next one if it is full.
///
///     home of e, g         v
///     buckets   | a . . . | b c d h | f . . . | . . . . |
///     insert e              full      occupied, by atomicCAS: | f e . . |
///     find g                full      an empty slot, and no g: there is no g
///
/// Buckets are one sector, 32 bytes. The table is at most 25 % full to keep searches short.
///
/// **Expect.** A LiDAR sweep of 125,562 sites (sweep-subm3-table) has 2^19 slots, 4 MB. A site
/// reads 27 sectors, 109 MB in all, from L2, and nbr takes 13.6 MB: at 5 TB/s 25 us on an H200, and
/// with the other kernels 40 us; 913,903 sites (large-subm3-table) take 230 us.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect footprint.workspace 1024 * 16 + 16 = 16400, two slots a site; and four numbers
/// @expect lanes.coords.load 3 * 4 * 512 = 6144, each site once in three kernels
/// @expect lanes.nbr.store 27 * 512 = 13824, a look-up each
/// @expect launches 3
/// **Costs.** Scattered loads; keys and rows of up to 63 bits together.
/// **Try.** Use the key's last bits as home. How long are searches?
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

/// Clears the table, forgets errors, and copies coords [N][1 + ndim]: all that has no order. Any
/// one-dimensional grid.
__global__ void rulebook_submanifold_hash_table_prepare(RulebookProblem book,
                                                        const std::int32_t* coords, SiteHash hash,
                                                        SiteErrors* errors,
                                                        std::int32_t* out_coords) {
  if (thread_of_grid() == 0) *errors = SiteErrors{};
  for (const std::int64_t i : grid_stride(hash.capacity() / 2)) hash.empty(i);
  const std::int64_t numbers = std::int64_t{book.sites} * (1 + book.ndim);
  for (const std::int64_t i : grid_stride(numbers)) out_coords[i] = coords[i];
}

/// Inserts all sites; those outside of the grid are counted instead. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_hash_table_insert_sites(RulebookProblem book,
                                                             const std::int32_t* coords,
                                                             SiteHash hash, SiteErrors* errors) {
  for (const std::int64_t i : grid_stride(book.sites)) {
    const auto row = static_cast<std::int32_t>(i);
    const GivenSite<kAxes> site(book, coords, row);
    if (site.inside) {
      const std::uint64_t key = site.key(book);
      hash.insert(key, row, errors);
    } else {
      atomicAdd(&errors->outside, 1);
      atomicMin(&errors->first_outside, row);
    }
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_hash_table_fill_table(RulebookProblem book,
                                                           const std::int32_t* coords,
                                                           SiteHash hash, std::int32_t* nbr,
                                                           std::int32_t* mask) {
  const std::int64_t N = book.sites;
  for (const std::int64_t row : grid_stride(N)) {
    const GivenSite<kAxes> site(book, coords, row);
    unsigned bits = 0;
    // visit_taps() stands for
    //
    //     for k in 0 ... KV - 1:  cell = site - pad + tap k * dilation, along each axis
    //       the lambda, with k, whether the cell lies in the grid, and its key (row-major number)
    //
    // without a division for each tap.
    visit_taps(book, site, 0, book.KV, [&](int k, bool inside, std::uint64_t key) {
      const std::int32_t in_row = inside ? hash.row_of(key) : -1;
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
  SiteErrors* errors;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.hash = cut_site_hash(book, &cutter);
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
  const auto [hash, errors, bytes] = workspace_at(book, context.workspace_as<std::byte>());
  auto* out_coords = arrays.create("out_coords", {book.sites, 1 + book.ndim});

  const unsigned slot_blocks = blocks_for(hash.capacity() / 2, kThreads, kMaxBlocks);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  constexpr decltype(&rulebook_submanifold_hash_table_insert_sites<1>) kInsert[kMaxAxes] = {
      rulebook_submanifold_hash_table_insert_sites<1>,
      rulebook_submanifold_hash_table_insert_sites<2>,
      rulebook_submanifold_hash_table_insert_sites<3>,
      rulebook_submanifold_hash_table_insert_sites<4>};
  launch(rulebook_submanifold_hash_table_prepare, {slot_blocks, kThreads}, book, coords, hash,
         errors, out_coords);
  launch(kInsert[book.ndim - 1], {row_blocks, kThreads}, book, coords, hash, errors);

  auto* nbr = arrays.create("nbr", {book.KV, book.sites});
  auto* mask = arrays.create("mask", {book.sites, mask_words(book.KV)});
  constexpr decltype(&rulebook_submanifold_hash_table_fill_table<1>) kFill[kMaxAxes] = {
      rulebook_submanifold_hash_table_fill_table<1>, rulebook_submanifold_hash_table_fill_table<2>,
      rulebook_submanifold_hash_table_fill_table<3>, rulebook_submanifold_hash_table_fill_table<4>};
  launch(kFill[book.ndim - 1], {row_blocks, kThreads}, book, coords, hash, nbr, mask);
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

extern const Implementation<RulebookArrays> submanifold_hash_table = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
