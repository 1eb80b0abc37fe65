/// @file key_table.cuh
/// @brief A hash table with linear probing: keys of sites in one array, their rows in another.
///
/// submanifold/linear_probing.cu explains it.
#pragma once

#include "core/cuda/algorithms.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// The table, at most half full: each search comes to an empty slot.
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

  /// How many slots there are.
  HOST_DEVICE std::int64_t capacity() const { return std::int64_t{1} << bits; }

  /// The slot where the search for a key begins: Knuth's multiplicative hash.
  __device__ std::uint64_t home_of(std::uint64_t key) const {
    return key * 0x9e3779b97f4a7c15u >> (64 - bits);
  }

  /// The slot behind one; behind the last comes the first.
  __device__ std::uint64_t after(std::uint64_t slot) const {
    return (slot + 1) & static_cast<std::uint64_t>(capacity() - 1);
  }

  /// Empties a slot.
  __device__ void empty(std::int64_t slot) const {
    keys[slot] = kEmpty;
    rows[slot] = kNoRow;
  }

  /// Puts a site in. Of rows that have the same key the lowest stays.
  __device__ void insert(std::uint64_t key, std::int32_t row) const {
    std::uint64_t slot = home_of(key);
    while (true) {
      // Compared and exchanged at once: of two threads that find it empty, one finds the other.
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

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
