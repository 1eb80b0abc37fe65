/// @file site_hash.cuh
/// @brief A hash table from the keys of sites to their rows, and a bitmap that filters its
/// look-ups.
#pragma once

#include "core/cuda/algorithms.hpp"
#include "core/cuda/site_check.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Mixes the bits of a number to 32 bits, the highest of which are the bucket of a key.
///
/// Keys are anything but random: along a wall they differ by multiples of an extent, and taken
/// modulo a power of two, whole planes of sites would share a few buckets. A multiplication by a
/// large odd number propagates every bit to the bits above it; the shift moves the upper half down,
/// the second multiplication propagates that up again, and the highest bits then depend on all
/// bits. (32 bits number all buckets, and a GPU multiplies 32 bits at a time. The constants are
/// those of MurmurHash3's last step and 2^32 divided by the golden ratio.)
__device__ inline std::uint32_t mixed(std::uint64_t number) {
  std::uint32_t bits = static_cast<std::uint32_t>(number) * 0x9e3779b1u +
                       static_cast<std::uint32_t>(number >> 32) * 0x85ebca6bu;
  bits ^= bits >> 15;
  return bits * 0xc2b2ae35u;
}

/// The table: a power of two of buckets of four slots. A slot holds key and row in 64 bits, so one
/// atomic reads, compares and exchanges both. A bucket is a sector of 32 bytes, the granularity of
/// memory.
///
/// The search for a key begins in its home bucket, and continues with the next bucket (linear
/// probing, cyclically) while buckets are full. Nothing is ever removed, so a search ends at a
/// bucket with an empty slot. Three quarters of the slots are empty, so each search ends.
struct SiteHash {
  using Slot = unsigned long long;  ///< The type of CUDA's 64-bit atomics.
  /// An entry's highest bit is never set. (All bits set would do as well, but the tests allocate
  /// memory with that content, and would not detect a table that is never cleared.)
  static constexpr Slot kEmpty = Slot{1} << 63;
  static constexpr int kSlots = 4;       ///< Of a bucket.
  static constexpr int kMinBits = 6;     ///< Of the number of slots.
  static constexpr int kSlotsASite = 4;  ///< At least.

  Slot* slots;   ///< [2^bits]
  int bits;      ///< log2 of the number of slots
  int row_bits;  ///< of a slot for the row; those above are the key

  /// The number of slots.
  HOST_DEVICE std::int64_t capacity() const { return std::int64_t{1} << bits; }

  /// The number of the bucket where the search for a key begins.
  __device__ std::uint32_t home_of(std::uint64_t key) const { return mixed(key) >> (34 - bits); }

  /// The bucket after this one.
  __device__ std::uint32_t after(std::uint32_t bucket) const {
    return (bucket + 1) & static_cast<std::uint32_t>(capacity() / kSlots - 1);
  }

  /// The row of an entry, if it has the key; else a value that is no row.
  __device__ Slot row_in(Slot entry, std::uint64_t key) const { return entry - (key << row_bits); }
  /// Whether row_in() found the row of an entry of that key.
  __device__ bool is_row(Slot row) const { return row >> row_bits == 0; }

  /// Clears the slots 2 * `two` and 2 * `two` + 1, in one store.
  __device__ void empty(std::int64_t two) const {
    constexpr auto kHigh = static_cast<std::uint32_t>(kEmpty >> 32);
    reinterpret_cast<uint4*>(slots)[two] = {0, kHigh, 0, kHigh};
  }

  /// Puts a site in. Of rows that have the same key the lowest stays, and each other one is
  /// counted, in any order of the threads.
  __device__ void insert(std::uint64_t key, std::int32_t row, SiteErrors* errors) const {
    const Slot entry = Slot{key} << row_bits | static_cast<Slot>(row);
    std::uint32_t bucket = home_of(key);
    for (std::int64_t full = 0; full < capacity() / kSlots; ++full) {  // at most a quarter is full
      for (int i = 0; i < kSlots; ++i) {
        // The order of slots is the same for one key, so that it cannot be inserted twice.
        Slot* slot =
            &slots[std::int64_t{bucket} * kSlots + (key + static_cast<unsigned>(i)) % kSlots];
        // atomicCAS: of two threads that find the slot empty, the second one reads the key of the
        // first.
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

  /// The row of a key, or -1. Compares halves of 32 bits, the width of a GPU's comparison: the
  /// upper half must be equal, and the lower one must differ in the row's bits only.
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

/// The reason why the table does not support a problem, or none.
inline Declined site_hash_declines(const RulebookProblem& book) {
  const int row_bits = key_bits(book.sites);
  if (key_bits(key_count(book, book.shape) - 1) + row_bits > 63)
    return "keys and rows of at most 63 bits together only";
  return {};
}

/// Cuts the table for a problem's inputs from a workspace.
inline SiteHash cut_site_hash(const RulebookProblem& book, WorkspaceCutter* cutter) {
  const std::int64_t wanted = SiteHash::kSlotsASite * std::max<std::int64_t>(book.sites, 1);
  const int bits = std::max(key_bits(wanted - 1), SiteHash::kMinBits);
  return {cutter->take<SiteHash::Slot>(std::int64_t{1} << bits), bits, key_bits(book.sites)};
}

/// Words for lines of 32 cells, hashed, and without keys. The bit of each site's cell is set.
/// Several lines may share a word, so a bit may be set where there is no site; but none is clear
/// where there is one.
struct SiteFilter {
  std::uint32_t* words;  ///< [2^bits]
  int bits;              ///< log2 of the number of words

  /// The number of words.
  HOST_DEVICE std::int64_t size() const { return std::int64_t{1} << bits; }

  /// The word for a line of 32 cells, key / 32.
  __device__ std::uint32_t* word_of(std::uint64_t line) const {
    return &words[mixed(line) >> (32 - bits)];
  }

  /// Sets the bit of a site's cell.
  __device__ void set(std::uint64_t key) const { atomicOr(word_of(key / 32), 1u << key % 32); }
};

/// Cuts a filter with a word for each bucket of a table from a workspace.
inline SiteFilter cut_site_filter(const SiteHash& hash, WorkspaceCutter* cutter) {
  return {cutter->take<std::uint32_t>(hash.capacity() / SiteHash::kSlots), hash.bits - 2};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
