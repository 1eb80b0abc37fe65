/// @file site_hash.cuh
/// @brief A hash table from the keys of sites to their rows, on the device, a walk over the taps of
/// a submanifold site that asks it, and the table of neighbours that comes of it.
#pragma once

#include <bit>

#include "core/cuda/algorithms.hpp"
#include "core/cuda/site_check.hpp"
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The table: a power of two of buckets of four slots. A slot holds key and row side by side in 64
/// bits, and so is read, compared and exchanged as a whole. A bucket is a sector, the 32 bytes that
/// memory moves at least.
///
/// The search for a key begins in its home bucket, and goes on from bucket to bucket (linear
/// probing, around the end) as long as they are full. Nothing is ever taken out, so behind a bucket
/// with an empty slot there is nothing to be found. Three quarters of the slots are empty: each
/// search ends.
///
/// @tparam kFiltered whether there is a filter: words for lines of 32 cells, hashed, and without
/// keys. The bit of each site's cell is set. Several lines may share a word, so a bit may be set
/// where there is no site; but none is clear where there is one.
template <bool kFiltered>
struct SiteHash {
  using Slot = unsigned long long;  ///< The type of CUDA's 64-bit atomics.
  /// An entry's highest bit is never set. (All bits set would do as well, but with that content
  /// the tests hand out memory, and would not notice a table that is never emptied.)
  static constexpr Slot kEmpty = Slot{1} << 63;
  static constexpr int kSlots = 4;       ///< Of a bucket.
  static constexpr int kMinBits = 6;     ///< Of the number of slots.
  static constexpr int kSlotsASite = 4;  ///< At least.

  Slot* slots;            ///< [2^bits]
  std::uint32_t* filter;  ///< [2^(bits - 2)], or nothing
  int bits;               ///< log2 of the number of slots
  int row_bits;           ///< of a slot for the row; those above are the key

  /// How many slots there are.
  HOST_DEVICE std::int64_t capacity() const { return std::int64_t{1} << bits; }
  /// Words of the filter.
  HOST_DEVICE std::int64_t filter_words() const { return kFiltered ? capacity() / kSlots : 0; }

  /// A number's bits, mixed to 32: the highest ones are the place of a key.
  ///
  /// Keys are anything but random: along a wall they differ by multiples of an extent, and taken
  /// modulo a power of two, whole planes of sites would meet in a few buckets. A multiplication by
  /// a large odd number carries every bit to the bits above it; the shift brings the upper half
  /// down, the second multiplication carries that up again, and now the highest bits depend on all.
  /// (32 bits number all buckets, and a GPU multiplies 32 bits at a time. The constants are those
  /// of MurmurHash3's last step and 2^32 divided by the golden ratio.)
  __device__ static std::uint32_t mixed(std::uint64_t number) {
    std::uint32_t bits = static_cast<std::uint32_t>(number) * 0x9e3779b1u +
                         static_cast<std::uint32_t>(number >> 32) * 0x85ebca6bu;
    bits ^= bits >> 15;
    return bits * 0xc2b2ae35u;
  }

  /// The number of the bucket where the search for a key begins.
  __device__ std::uint32_t home_of(std::uint64_t key) const { return mixed(key) >> (34 - bits); }

  /// The word of the filter for a line of 32 cells, key / 32.
  __device__ std::uint32_t* word_of(std::uint64_t line) const {
    return &filter[mixed(line) >> (34 - bits)];
  }

  /// The bucket behind one.
  __device__ std::uint32_t after(std::uint32_t bucket) const {
    return (bucket + 1) & static_cast<std::uint32_t>(capacity() / kSlots - 1);
  }

  /// The row of an entry, if it is that of a key; else a number that no row has.
  __device__ Slot row_in(Slot entry, std::uint64_t key) const { return entry - (key << row_bits); }
  /// Whether row_in() found the row of an entry of that key.
  __device__ bool is_row(Slot row) const { return row >> row_bits == 0; }

  /// Puts a site in. Of rows that have the same key the lowest stays, and each other one is
  /// counted, whatever the order in which threads come.
  __device__ void insert(std::uint64_t key, std::int32_t row, SiteErrors* errors) const {
    const Slot entry = Slot{key} << row_bits | static_cast<Slot>(row);
    if constexpr (kFiltered) atomicOr(word_of(key / 32), 1u << key % 32);
    std::uint32_t bucket = home_of(key);
    for (std::int64_t full = 0; full < capacity() / kSlots; ++full) {  // a quarter is enough
      for (int i = 0; i < kSlots; ++i) {
        // For one key it is always the same order, so that it cannot get in twice.
        Slot* slot =
            &slots[std::int64_t{bucket} * kSlots + (key + static_cast<unsigned>(i)) % kSlots];
        // Compared and exchanged at once: of two threads that find it empty, one finds the other.
        Slot there = atomicCAS(slot, kEmpty, entry);
        if (there == kEmpty) return;
        if (is_row(row_in(there, key))) {
          there = atomicMin(slot, entry);  // the keys agree, so the lower row wins
          const auto other = static_cast<std::int32_t>(row_in(there, key));
          count_duplicate(errors, row > other ? row : other);
          return;
        }
      }
      bucket = after(bucket);
    }
  }

  /// The row of a key, or -1. Compared are halves of 32 bits, as a GPU does it anyway: the upper
  /// half must agree, and the lower one be the row alone beyond the key's bits.
  __device__ std::int32_t row_of(std::uint64_t key) const {
    const std::uint64_t wanted = key << row_bits;
    const auto upper = static_cast<std::uint32_t>(wanted >> 32);
    const auto lower = static_cast<std::uint32_t>(wanted);
    std::uint32_t bucket = home_of(key);
    for (std::int64_t full = 0; full < capacity() / kSlots; ++full) {
      const auto* from = reinterpret_cast<const uint4*>(slots + std::int64_t{bucket} * kSlots);
      const uint4 first = from[0], second = from[1];  // two slots each: lower, upper, lower, upper
      std::uint32_t found = ~0u;
      const auto look = [&](std::uint32_t entry_lower, std::uint32_t entry_upper) {
        const std::uint32_t row = entry_lower - lower;
        if (entry_upper == upper && row >> row_bits == 0) found = row;
      };
      look(first.x, first.y);
      look(first.z, first.w);
      look(second.x, second.y);
      look(second.z, second.w);
      const std::uint32_t all = first.y | first.w | second.y | second.w;
      if (found != ~0u || all >> 31 != 0) return static_cast<std::int32_t>(found);  // or empty: -1
      bucket = after(bucket);
    }
    return -1;
  }
};

namespace site_hash {

inline constexpr int kThreads = 256;                 ///< Of a block.
inline constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< More work than these take: threads stride.

/// Empties the table, forgets errors, and copies coords [sites][1 + ndim]: all that has no order.
/// Any one-dimensional grid.
template <bool kFiltered>
static __global__ void prepare(RulebookProblem book, const std::int32_t* coords,
                               SiteHash<kFiltered> hash, SiteErrors* errors,
                               std::int32_t* out_coords) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (first == 0) *errors = SiteErrors{};
  constexpr auto kHigh = static_cast<std::uint32_t>(SiteHash<kFiltered>::kEmpty >> 32);
  for (std::int64_t i = first; i < hash.capacity() / 2; i += grid_threads)
    reinterpret_cast<uint4*>(hash.slots)[i] = {0, kHigh, 0, kHigh};  // two slots
  for (std::int64_t i = first; i < hash.filter_words(); i += grid_threads) hash.filter[i] = 0;
  const std::int64_t numbers = std::int64_t{book.sites} * (1 + book.ndim);
  for (std::int64_t i = first; i < numbers; i += grid_threads) out_coords[i] = coords[i];
}

/// A row of coords, in registers: the number of axes is known to the compiler.
template <int kAxes>
struct GivenSite {
  int sample;          ///< The sample.
  int at[kAxes];       ///< The coordinates.
  bool inside = true;  ///< of the batch and the grid

  /// Row `row` of coords.
  __device__ GivenSite(const RulebookProblem& book, const std::int32_t* coords, std::int64_t row) {
    const std::int32_t* from = coords + row * (1 + kAxes);
    sample = from[0];
    inside = sample >= 0 && sample < book.batch;
    for (int axis = 0; axis < kAxes; ++axis) {
      at[axis] = from[1 + axis];
      inside = inside && at[axis] >= 0 && at[axis] < book.shape[axis];
    }
  }
};

/// Puts all sites in; those outside of the grid are counted instead. Any one-dimensional grid.
template <int kAxes, bool kFiltered>
static __global__ void insert_sites(RulebookProblem book, const std::int32_t* coords,
                                    SiteHash<kFiltered> hash, SiteErrors* errors) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < book.sites; i += grid_threads) {
    const auto row = static_cast<std::int32_t>(i);
    const GivenSite<kAxes> site(book, coords, row);
    if (site.inside) {
      auto key = static_cast<std::uint64_t>(site.sample);
      for (int axis = 0; axis < kAxes; ++axis)
        key = key * static_cast<unsigned>(book.shape[axis]) + static_cast<unsigned>(site.at[axis]);
      hash.insert(key, row, errors);
    } else {
      atomicAdd(&errors->outside, 1);
      atomicMin(&errors->first_outside, row);
    }
  }
}

/// Calls use(k, row) for the taps k from `first` to `last` - 1 of a site of mode subm, with the row
/// of the site that it meets there, or -1. A site outside of the grid meets none.
///
/// A line is what a kernel has along the last axis. What the other axes say is worked out once a
/// line, without a division.
template <int kAxes, bool kFiltered, class Use>
__device__ void look_up_taps(const RulebookProblem& book, const SiteHash<kFiltered>& hash,
                             const std::int32_t* coords, std::int64_t row, int first, int last,
                             Use use) {
  constexpr int kLine = kAxes - 1;
  const GivenSite<kAxes> site(book, coords, row);
  int tap[kAxes] = {};
  if (first != 0) {
    int rest = first;
    for (int axis = kLine; axis >= 0; --axis) {
      tap[axis] = rest % book.kernel[axis];
      rest /= book.kernel[axis];
    }
  }
  // Where a tap leads, modulo 2^32. A coordinate and the padding are less than 2^31, and no tap
  // reaches further than the padding on the other side: what lies outside is 2^31 or more, whether
  // before the grid or behind it, and so more than any extent.
  const auto along = [&](int axis) {
    return static_cast<std::uint32_t>(site.at[axis]) - static_cast<std::uint32_t>(book.pad[axis]) +
           static_cast<std::uint32_t>(tap[axis]) * static_cast<std::uint32_t>(book.dilation[axis]);
  };
  std::uint64_t held = ~std::uint64_t{0};  // the line of cells whose word is held: none
  std::uint32_t word = 0;
  for (int k = first; k < last;) {
    bool inside = site.inside;
    auto line_key = static_cast<std::uint64_t>(site.sample);  // wraps around outside of the grid
    for (int axis = 0; axis < kLine; ++axis) {
      const std::uint32_t there = along(axis), extent = static_cast<unsigned>(book.shape[axis]);
      inside = inside && there < extent;
      line_key = line_key * extent + there;
    }
    line_key *= static_cast<unsigned>(book.shape[kLine]);
    for (; tap[kLine] < book.kernel[kLine] && k < last; ++tap[kLine], ++k) {
      const std::uint32_t there = along(kLine);
      const std::uint64_t key = line_key + there;
      bool asks = inside && there < static_cast<unsigned>(book.shape[kLine]);
      if constexpr (kFiltered) {
        if (asks && key / 32 != held) {
          held = key / 32;
          word = *hash.word_of(held);
        }
        asks = asks && (word >> key % 32 & 1) != 0;
      }
      use(k, asks ? hash.row_of(key) : -1);
    }
    tap[kLine] = 0;
    for (int axis = kLine - 1; axis >= 0; --axis) {
      if (++tap[axis] < book.kernel[axis]) break;
      tap[axis] = 0;
    }
  }
}

}  // namespace site_hash

/// Why the table cannot hold the sites of a problem's inputs.
inline Declined site_hash_declines(const RulebookProblem& book) {
  const int row_bits = key_bits(book.sites);
  if (key_bits(key_count(book, book.shape) - 1) + row_bits > 63)
    return "keys and rows of at most 63 bits together only";
  return {};
}

/// A bucket must begin at a multiple of its size, and a workspace, in the tests, at any multiple of
/// 4 bytes: ask for so many bytes more.
inline constexpr std::size_t kBucketBytes = 32;

/// The first place in the workspace where a bucket may begin.
inline char* aligned_workspace(const Arguments& arrays) {
  auto* const memory = arrays.workspace<char>();
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % kBucketBytes;
  return beyond == 0 ? memory : memory + (kBucketBytes - beyond);
}

/// The table for a problem's inputs, in `memory`, where a bucket may begin.
template <bool kFiltered>
SiteHash<kFiltered> site_hash_in(const RulebookProblem& book, char* memory) {
  using Hash = SiteHash<kFiltered>;
  const std::int64_t wanted = Hash::kSlotsASite * std::max<std::int64_t>(book.sites, 1);
  const int bits = std::max(key_bits(wanted - 1), Hash::kMinBits);
  const auto slot_bytes = sizeof(typename Hash::Slot) << bits;
  return {reinterpret_cast<typename Hash::Slot*>(memory),
          kFiltered && memory != nullptr ? reinterpret_cast<std::uint32_t*>(memory + slot_bytes)
                                         : nullptr,
          bits, key_bits(book.sites)};
}

/// Bytes that it takes.
template <bool kFiltered>
std::size_t site_hash_bytes(const RulebookProblem& book) {
  const SiteHash<kFiltered> hash = site_hash_in<kFiltered>(book, nullptr);
  return static_cast<std::size_t>(hash.capacity()) * sizeof *hash.slots +
         static_cast<std::size_t>(hash.filter_words()) * sizeof *hash.filter;
}

/// Fills the table with the sites of coords [sites][1 + ndim], and copies those. Errors are counted
/// afresh.
template <bool kFiltered>
void build_site_hash(const RulebookProblem& book, const std::int32_t* coords,
                     const SiteHash<kFiltered>& hash, SiteErrors* errors,
                     std::int32_t* out_coords) {
  using site_hash::insert_sites, site_hash::kMaxBlocks, site_hash::kThreads;
  launch(site_hash::prepare<kFiltered>,
         {blocks_for(hash.capacity() / 2, kThreads, kMaxBlocks), kThreads}, book, coords, hash,
         errors, out_coords);
  constexpr decltype(&insert_sites<1, kFiltered>) kOfAxes[kMaxAxes] = {
      insert_sites<1, kFiltered>, insert_sites<2, kFiltered>, insert_sites<3, kFiltered>,
      insert_sites<4, kFiltered>};
  launch(kOfAxes[book.ndim - 1], {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, book,
         coords, hash, errors);
}

namespace site_hash {

// What hash_table.cu and filtered_hash.cu have in common: all but whether there is a filter.

/// nbr [KV][N] and mask [N][mask_words(KV)]: one thread a row. Any one-dimensional grid.
template <int kAxes, bool kFiltered>
static __global__ void fill_table(RulebookProblem book, const std::int32_t* coords,
                                  SiteHash<kFiltered> hash, std::int32_t* nbr, std::int32_t* mask) {
  const std::int64_t N = book.sites;
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < N; row += grid_threads) {
    unsigned word = 0;
    look_up_taps<kAxes>(book, hash, coords, row, 0, book.KV, [&](int k, std::int32_t in_row) {
      nbr[k * N + row] = in_row;
      if (in_row >= 0) word |= 1u << k % 32;
      if (k % 32 == 31 || k == book.KV - 1) {
        mask[row * mask_words(book.KV) + k / 32] = static_cast<std::int32_t>(word);
        word = 0;
      }
    });
  }
}

/// What the rung declines.
inline Declined supports(const RulebookProblem& book) {
  if (book.mode != SparseMode::subm)
    return "mode subm only: the others must find their sites before they can look them up";
  return site_hash_declines(book);
}

/// The slots, and the errors behind them.
template <bool kFiltered>
std::size_t workspace_bytes(const RulebookProblem& book) {
  return kBucketBytes + site_hash_bytes<kFiltered>(book) + sizeof(SiteErrors);
}

/// The errors, in the workspace.
template <bool kFiltered>
SiteErrors* errors_in(const RulebookProblem& book, const Arguments& arrays) {
  return reinterpret_cast<SiteErrors*>(aligned_workspace(arrays) +
                                       site_hash_bytes<kFiltered>(book));
}

/// coords [N][1 + ndim] to out_coords [N][1 + ndim], nbr [KV][N], mask [N][words], and what the
/// form asks for.
template <bool kFiltered>
void run(const RulebookProblem& book, const Arguments& arrays) {
  const auto* coords = arrays.in<std::int32_t>("coords");
  const std::int64_t N = book.sites;
  const SiteHash<kFiltered> hash = site_hash_in<kFiltered>(book, aligned_workspace(arrays));

  auto* out_coords = arrays.create<std::int32_t>("out_coords", {N, 1 + book.ndim});
  build_site_hash(book, coords, hash, errors_in<kFiltered>(book, arrays), out_coords);

  auto* nbr = arrays.create<std::int32_t>("nbr", {book.KV, N});
  auto* mask = arrays.create<std::int32_t>("mask", {N, mask_words(book.KV)});
  constexpr decltype(&fill_table<1, kFiltered>) kOfAxes[kMaxAxes] = {
      fill_table<1, kFiltered>, fill_table<2, kFiltered>, fill_table<3, kFiltered>,
      fill_table<4, kFiltered>};
  launch(kOfAxes[book.ndim - 1], {blocks_for(N, kThreads, kMaxBlocks), kThreads}, book, coords,
         hash, nbr, mask);
  create_form(book, N, nbr, mask, arrays);
}

/// @throws BadInput for sites outside of the grid, and for duplicates
template <bool kFiltered>
void finish(const RulebookProblem& book, const Arguments& arrays) {
  require_no_errors_on_device(book, arrays.in<std::int32_t>("coords"),
                              errors_in<kFiltered>(book, arrays));
}

/// For a rung's choice.
inline std::string choice_in_words(const RulebookProblem& book) {
  return text(book.ndim, book.ndim == 1 ? " axis, " : " axes, ", form_in_words(book));
}

/// The rung, with a filter or without.
template <bool kFiltered>
Implementation<RulebookProblem> rung() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes<kFiltered>,
          .run = run<kFiltered>,
          .finish = finish<kFiltered>,
          .choice = choice_in_words};
}

}  // namespace site_hash

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
