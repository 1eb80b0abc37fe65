/// @file site_filter.cuh
/// @brief A bit for each cell, hashed: whether there may be a site. filtered_hash.cu explains it.
#pragma once

#include "cuda_optimized/rulebook/site_hash.cuh"

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

/// A filter with a word for each bucket of the table for a problem's inputs; null to learn its
/// size.
inline SiteFilter site_filter_at(const RulebookProblem& book, char* begin) {
  return {reinterpret_cast<std::uint32_t*>(begin), site_hash_at(book, nullptr).bits - 2};
}

/// Bytes that it takes.
inline std::size_t site_filter_bytes(const RulebookProblem& book) {
  return sizeof(std::uint32_t) << site_filter_at(book, nullptr).bits;
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
