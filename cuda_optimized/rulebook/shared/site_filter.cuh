/// @file site_filter.cuh
/// @brief A bit for each cell, hashed: whether there may be a site. submanifold/filtered_hash.cu
/// explains it.
#pragma once

#include "cuda_optimized/rulebook/shared/site_hash.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Words for lines of 32 cells, hashed, and without keys. The bit of each site's cell is set.
/// Several lines may share a word, so a bit may be set where there is no site; but none is clear
/// where there is one.
struct SiteFilter {
  std::uint32_t* words;  ///< [2^bits]
  int bits;              ///< log2 of the number of words

  /// How many words there are.
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
