/// @file hash_set.cu
/// @brief rulebook, strided: hash set; each output is inserted once, and only distinct keys are
/// sorted.
///
/// - Before: compact_before_sort.cu
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** In a LiDAR sweep, kernel 3, stride 2, three candidates lead to the same output. A
/// hash set removes repeats before the sort. A search starts at the slot given by the key's hash
/// and ends at the key itself or at the first empty slot, where the key is stored by `atomicCAS`.
///
///     candidates  12 7 12 9 7 12       slots   . 9 . . 12 7 . .      each once: P in, M stay
///     in order of arrival               list   12 9 7                 the threads that found
///     sorted                            keys   7 9 12                 an empty slot append
///     row of each key, in its slot              . 1 . . 2  0 . .
///
/// The slots of keys depend on the order of insertion, which varies between runs; sorted keys do
/// not.
///
/// **Expect.** In a sweep of 125 thousand sites, kernel 3, stride 2 (sweep-k3s2-table): 423
/// thousand candidates, but 137 thousand keys to sort. 16 MB of slots are filled twice. A look-up
/// takes about 1.5 loads.
/// @expect on --shape 12,12,12 --sites 512 --mode strided --stride 2 --pad 1 --form pairs
/// @expect lanes.coords.load 4 * 4 * 512 = 8192, each site once in four kernels
/// @expect lanes.nbr.store 1470, of pairs alone
/// @expect lanes.mask.atomic 1470, one a pair
/// @expect launches 9
/// **Costs.** 8 bytes a slot, for twice all possible keys: 8 outputs a site here, 27 with stride 1.
/// Three host synchronizations.
/// **Try.** Number the outputs by list index, without the sort. How do two runs differ?
#include <bit>

#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/rulebook/shared/lattice.cuh"
#include "cuda_optimized/rulebook/shared/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; threads stride over more
                                              ///< work.
constexpr std::int64_t kMaxCandidates = std::int64_t{1} << 31;

using Key = unsigned long long;        ///< The type of atomicCAS.
constexpr Key kEmpty = ~Key{0};        ///< No key: those are less than 2^63.
constexpr std::uint32_t kNoRow = ~0u;  ///< More than any row; as memset writes it.

/// Mixes a key's bits, so that neighbouring sites do not collide in neighbouring slots. (The end of
/// splitmix64; Steele, Lea and Flood, 2014.) Unsigned: signed numbers must not overflow.
__device__ Key hash_of(Key key) {
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
  key = (key ^ key >> 27) * 0x94d049bb133111eb;
  return key ^ key >> 31;
}

/// A hash set with a row for each key.
struct SiteSet {
  Key* slots;           ///< [mask + 1]; kEmpty where nothing is.
  std::uint32_t* rows;  ///< [mask + 1]
  Key mask;             ///< Slots less one; their number is a power of two.

  /// The slot of a key, which is put there if it is in none. Ends because slots stay empty.
  __device__ Key insert(Key key, bool* is_new) const {
    for (Key slot = hash_of(key) & mask;; slot = (slot + 1) & mask) {
      const Key before = atomicCAS(&slots[slot], kEmpty, key);
      *is_new = before == kEmpty;
      if (*is_new || before == key) return slot;
    }
  }
  /// The slot of a key that is in the set.
  __device__ Key find(Key key) const {
    Key slot = hash_of(key) & mask;
    while (slots[slot] != key) slot = (slot + 1) & mask;
    return slot;
  }
};

/// Inserts all given sites, and counts duplicates: of the rows of one site, all but the smallest.
/// Any one-dimensional grid.
__global__ void rulebook_strided_hash_set_find_duplicates(RulebookProblem book,
                                                          const std::int32_t* coords, SiteSet given,
                                                          SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    bool is_new;
    const Key slot = given.insert(
        static_cast<Key>(key_of(book, book.shape, site_of(book, coords, row))), &is_new);
    const auto own = static_cast<std::uint32_t>(row);
    const std::uint32_t other = atomicMin(&given.rows[slot], own);
    if (other != kNoRow)
      count_duplicate(errors, static_cast<std::int32_t>(other > own ? other : own));
  }
}

/// Inserts all candidates. keys [*count]: each of them once, in the order of their arrival.
/// *count starts as 0. One thread a given row. Any one-dimensional grid.
__global__ void rulebook_strided_hash_set_insert_candidates(Lattice lattice,
                                                            const std::int32_t* coords,
                                                            SiteSet found, std::int64_t* keys,
                                                            Key* count) {
  for (const std::int64_t row : grid_stride(lattice.sites)) {
    const SiteRuns runs(lattice, lattice_site(lattice, coords, row));
    const auto insert = [&](int, Key key) {
      bool is_new;
      found.insert(key, &is_new);
      if (is_new) keys[atomicAdd(count, 1)] = static_cast<std::int64_t>(key);
    };
    visit_found(lattice, runs, 0, Key{runs.batch}, insert);
  }
}

/// Writes the rows 0, 1, 2 ... to the slots of keys [count], and their sites to out_coords
/// [count][1 + ndim] if that is not null. Any one-dimensional grid.
__global__ void rulebook_strided_hash_set_number_sites(RulebookProblem book, std::int64_t count,
                                                       const std::int64_t* keys, SiteSet found,
                                                       std::int32_t* out_coords) {
  for (const std::int64_t row : grid_stride(count)) {
    found.rows[found.find(static_cast<Key>(keys[row]))] = static_cast<std::uint32_t>(row);
    if (out_coords != nullptr)
      write_site(book, site_of_key(book, book.out_shape, keys[row]), out_coords, row);
  }
}

/// Stores each pair at its entry of nbr [KV][M], which must be -1, and in mask [M][words], which
/// must be 0. One thread a given row. Any one-dimensional grid.
/// @param inverse found sites are inputs, and given ones outputs
__global__ void rulebook_strided_hash_set_scatter_pairs(Lattice lattice, bool inverse,
                                                        std::int64_t M, const std::int32_t* coords,
                                                        SiteSet found, std::int32_t* nbr,
                                                        std::int32_t* mask) {
  const int words = mask_words(lattice.KV);
  for (const std::int64_t given : grid_stride(lattice.sites)) {
    const SiteRuns runs(lattice, lattice_site(lattice, coords, given));
    const auto store = [&](int tap, Key key) {
      const std::int64_t row = found.rows[found.find(key)];
      const std::int64_t in = inverse ? row : given, out = inverse ? given : row;
      nbr[tap * M + out] = static_cast<std::int32_t>(in);
      atomicOr(&mask[out * words + tap / 32], static_cast<std::int32_t>(1u << tap % 32));
    };
    visit_found(lattice, runs, 0, Key{runs.batch}, store);
  }
}

/// How many slots there are for so many keys: at least half of them stay empty.
std::int64_t slots_for(std::int64_t keys) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(2 * keys, 2))));
}

Declined supports(const RulebookProblem& book) {
  if (std::int64_t{book.KV} * book.sites >= kMaxCandidates)
    return "fewer than 2^31 candidates (taps times sites) only";
  return lattice_supports(book);
}

/// Number of slots that suffices for either set.
std::int64_t slot_count(const RulebookProblem& book) {
  return slots_for(std::max<std::int64_t>(book.sites, most_found(book)));
}

/// Layout of the workspace, in order of addresses.
struct Workspace {
  SiteSet set;         ///< First of the given sites, then of the found ones: never both at once.
  Key* count;          ///< Of the keys in the list.
  std::int64_t* keys;  ///< The list of found keys.
  std::size_t bytes;   ///< Total size in bytes.
};

/// @param begin  the workspace, or null to compute its size
Workspace workspace_at(const RulebookProblem& book, std::byte* begin) {
  const std::int64_t slots = slot_count(book);
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.set.slots = cutter.take<Key>(slots);
  work.set.rows = cutter.take<std::uint32_t>(slots);
  work.set.mask = static_cast<Key>(slots - 1);
  work.count = cutter.take<Key>(1);
  work.keys = cutter.take<std::int64_t>(most_found(book));
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
  const std::int64_t slots = slot_count(book);
  const auto [set, count, keys, bytes] = workspace_at(book, context.workspace_as<std::byte>());
  const bool inverse = book.mode == SparseMode::inverse;

  const SiteCheck sites(book, coords);
  fill(set.slots, 0xff, slots * std::int64_t{sizeof(Key)});
  fill(set.rows, 0xff, slots * std::int64_t{sizeof(std::uint32_t)});
  launch(rulebook_strided_hash_set_find_duplicates, {row_blocks, kThreads}, book, coords, set,
         sites.errors());
  sites.require_distinct();

  fill(set.slots, 0xff, slots * std::int64_t{sizeof(Key)});
  fill(count, 0, sizeof(Key));
  launch(rulebook_strided_hash_set_insert_candidates, {row_blocks, kThreads}, lattice, coords, set,
         keys, count);
  const auto found = static_cast<std::int64_t>(downloaded(count));

  const DeviceArray<std::int64_t> sorted(found);
  sort_keys(keys, sorted.data(), found, key_bits(key_count(book, book.out_shape) - 1));
  const std::int64_t M = inverse ? book.sites : found;
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  auto* nbr = arrays.create("nbr", {book.KV, M});
  auto* mask = arrays.create("mask", {M, mask_words(book.KV)});
  launch(rulebook_strided_hash_set_number_sites,
         {blocks_for(found, kThreads, kMaxBlocks), kThreads}, book, found, sorted.data(), set,
         inverse ? nullptr : out_coords);
  if (inverse) {
    check(cudaMemcpyAsync(
        out_coords, coords,
        static_cast<std::size_t>(M) * static_cast<std::size_t>(1 + book.ndim) * sizeof *coords,
        cudaMemcpyDeviceToDevice, current_stream()));
  }
  fill(nbr, 0xff, book.KV * M * std::int64_t{sizeof *nbr});
  fill(mask, 0, M * mask_words(book.KV) * std::int64_t{sizeof *mask});
  launch(rulebook_strided_hash_set_scatter_pairs, {row_blocks, kThreads}, lattice, inverse, M,
         coords, set, nbr, mask);
  create_form(book, M, nbr, mask, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(book.mode == SparseMode::inverse ? "inputs are found, " : "outputs are found, ",
              form_in_words(book));
}

}  // namespace

extern const Implementation<RulebookArrays> strided_hash_set = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
