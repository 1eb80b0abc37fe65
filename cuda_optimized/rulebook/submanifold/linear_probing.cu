/// @file linear_probing.cu
/// @brief rulebook, submanifold: a hash table of keys with linear probing instead of a dense grid.
///
/// - Before: output_stationary.cu
/// - After: hash_table.cu
/// - The taps of a site: shared/site_taps.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** In a sweep one cell of 1600 has a site. A hash table has two to four slots for
/// each site, whatever the size of the grid. The upper bits of the key times a large odd number
/// name its *home slot*. If another key occupies that slot, the next one is tried (open addressing
/// with linear probing). The search for a key visits the same slots and ends at an empty one.
///
///     home slot of 57 and 81        v
///     keys     |    | 12 | 40 | 57 | 81 |    |     insert: atomicCAS(&keys[slot], empty, key)
///     rows     |    |  6 |  1 |  3 |  0 |    |     find 93, home slot as 57: not there
///
/// Of several threads that find a slot empty, atomicCAS lets one store its key, and the others read
/// it. The row is stored later, in another array, so a thread that meets its own key cannot yet
/// read the row beside it. A pass of its own finds duplicates: each site must find its own row.
///
/// **Expect.** A sweep of 125,562 sites (sweep-subm3-table) has 2^18 slots, 3 MB in the L2 cache.
/// A warp waits for the longest of its 32 searches. 60 us on an H200; the grid's 0.15 ms before.
/// @expect on --shape 12,12,12 --sites 512 --form table
/// @expect footprint.workspace 1024 * 12 + 16 = 12304, two slots a site; and four numbers
/// @expect lanes.coords.load 4 * 4 * 512 = 8192, each site once in four kernels
/// @expect lanes.nbr.store 27 * 512 = 13824, a search each
/// @expect launches 4
/// **Costs.** Probes jump through memory. Not supported: other modes than subm.
/// **Try.** Use the lowest bits of the key as home slot. How long are searches in a plane of sites?
#include "core/cuda/algorithms.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/site_taps.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The table, at most half full, so that each search reaches an empty slot.
struct KeyTable {
  using Key = unsigned long long;  ///< The type of CUDA's 64-bit atomics.
  /// A key's highest bit is never set.
  static constexpr Key kEmpty = Key{1} << 63;
  static constexpr std::int32_t kNoRow = 0x7fffffff;  ///< More than any row.
  static constexpr int kMinBits = 6;                  ///< Of the number of slots.
  static constexpr int kSlotsASite = 2;               ///< At least.

  Key* keys;           ///< [2^bits]
  std::int32_t* rows;  ///< [2^bits]
  int bits;            ///< log2 of the number of slots

  /// The number of slots.
  HOST_DEVICE std::int64_t capacity() const { return std::int64_t{1} << bits; }

  /// The slot where the search for a key begins: Knuth's multiplicative hash.
  __device__ std::uint64_t home_of(std::uint64_t key) const {
    return key * 0x9e3779b97f4a7c15u >> (64 - bits);
  }

  /// The slot after one; the first follows the last.
  __device__ std::uint64_t after(std::uint64_t slot) const {
    return (slot + 1) & static_cast<std::uint64_t>(capacity() - 1);
  }

  /// Clears a slot.
  __device__ void empty(std::int64_t slot) const {
    keys[slot] = kEmpty;
    rows[slot] = kNoRow;
  }

  /// Inserts a site. Of rows that have the same key the lowest stays.
  __device__ void insert(std::uint64_t key, std::int32_t row) const {
    std::uint64_t slot = home_of(key);
    while (true) {
      // atomicCAS: of two threads that find the slot empty, the second one reads the key of the
      // first.
      const Key there = atomicCAS(&keys[slot], kEmpty, Key{key});
      if (there == kEmpty || there == key) break;
      slot = after(slot);
    }
    atomicMin(&rows[slot], row);
  }

  /// The row of a key, or -1. All sites must have been inserted by an earlier kernel.
  __device__ std::int32_t row_of(std::uint64_t key) const {
    for (std::uint64_t slot = home_of(key); keys[slot] != kEmpty; slot = after(slot)) {
      if (keys[slot] == key) return rows[slot];
    }
    return -1;
  }
};

/// Cuts the table for a problem's inputs from a workspace.
inline KeyTable cut_key_table(const RulebookProblem& book, WorkspaceCutter* cutter) {
  const std::int64_t wanted = KeyTable::kSlotsASite * std::max<std::int64_t>(book.sites, 1);
  const int bits = std::max(key_bits(wanted - 1), KeyTable::kMinBits);
  return {cutter->take<KeyTable::Key>(std::int64_t{1} << bits),
          cutter->take<std::int32_t>(std::int64_t{1} << bits), bits};
}

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.

/// Clears the table, forgets errors, and copies coords [N][1 + ndim]: all that has no order. Any
/// one-dimensional grid.
__global__ void rulebook_submanifold_linear_probing_prepare(RulebookProblem book,
                                                            const std::int32_t* coords,
                                                            KeyTable hash, SiteErrors* errors,
                                                            std::int32_t* out_coords) {
  if (thread_of_grid() == 0) *errors = SiteErrors{};
  for (const std::int64_t i : grid_stride(hash.capacity())) hash.empty(i);
  const std::int64_t numbers = std::int64_t{book.sites} * (1 + book.ndim);
  for (const std::int64_t i : grid_stride(numbers)) out_coords[i] = coords[i];
}

/// Inserts all sites; those outside of the grid are counted instead. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_linear_probing_insert_sites(RulebookProblem book,
                                                                 const std::int32_t* coords,
                                                                 KeyTable hash,
                                                                 SiteErrors* errors) {
  for (const std::int64_t i : grid_stride(book.sites)) {
    const auto row = static_cast<std::int32_t>(i);
    const GivenSite<kAxes> site(book, coords, row);
    if (site.inside) {
      const std::uint64_t key = site.key(book);
      hash.insert(key, row);
    } else {
      atomicAdd(&errors->outside, 1);
      atomicMin(&errors->first_outside, row);
    }
  }
}

/// Counts the rows whose site is that of an earlier row. Any one-dimensional grid.
__global__ void rulebook_submanifold_linear_probing_find_duplicates(RulebookProblem book,
                                                                    const std::int32_t* coords,
                                                                    KeyTable hash,
                                                                    SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    const Site site = site_of(book, coords, row);
    if (!is_inside(book, site)) continue;  // counted when it should have been inserted
    const auto key = static_cast<std::uint64_t>(key_of(book, book.shape, site));
    if (hash.row_of(key) != row) count_duplicate(errors, static_cast<std::int32_t>(row));
  }
}

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <int kAxes>
__global__ void rulebook_submanifold_linear_probing_fill_table(RulebookProblem book,
                                                               const std::int32_t* coords,
                                                               KeyTable hash, std::int32_t* nbr,
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
  return {};
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  KeyTable hash;
  SiteErrors* errors;
  std::size_t bytes;  ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.hash = cut_key_table(book, &cutter);
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

  const unsigned slot_blocks = blocks_for(hash.capacity(), kThreads, kMaxBlocks);
  const unsigned row_blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  constexpr decltype(&rulebook_submanifold_linear_probing_insert_sites<1>) kInsert[kMaxAxes] = {
      rulebook_submanifold_linear_probing_insert_sites<1>,
      rulebook_submanifold_linear_probing_insert_sites<2>,
      rulebook_submanifold_linear_probing_insert_sites<3>,
      rulebook_submanifold_linear_probing_insert_sites<4>};
  launch(rulebook_submanifold_linear_probing_prepare, {slot_blocks, kThreads}, book, coords, hash,
         errors, out_coords);
  launch(kInsert[book.ndim - 1], {row_blocks, kThreads}, book, coords, hash, errors);
  launch(rulebook_submanifold_linear_probing_find_duplicates, {row_blocks, kThreads}, book, coords,
         hash, errors);

  auto* nbr = arrays.create("nbr", {book.KV, book.sites});
  auto* mask = arrays.create("mask", {book.sites, mask_words(book.KV)});
  constexpr decltype(&rulebook_submanifold_linear_probing_fill_table<1>) kFill[kMaxAxes] = {
      rulebook_submanifold_linear_probing_fill_table<1>,
      rulebook_submanifold_linear_probing_fill_table<2>,
      rulebook_submanifold_linear_probing_fill_table<3>,
      rulebook_submanifold_linear_probing_fill_table<4>};
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

extern const Implementation<RulebookArrays> submanifold_linear_probing = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .finish = finish,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
