/// @file algorithms.hpp
/// @brief Device-wide sort, prefix sum and removal of duplicates: CUB on a GPU, the standard
/// library's algorithms in a kernel of one thread under cuda_on_cpu.
///
/// All arrays are in device memory and do not overlap. All work is in the run's stream, and the
/// functions may return before it is complete. Temporary memory is allocated internally: about as
/// much as the arrays for a sort, little for the other functions. Fewer than 2^31 items: older
/// versions of CUB use int.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// The number of low bits in keys from 0 to `largest`; at least 1. A radix sort makes one pass per
/// 8 bits or so: 29 bits take half the time of 64.
int key_bits(std::int64_t largest);

/// Sorts keys in ascending order of their low bits.
/// @param keys [count], at least 0
/// @param sorted [count], out
/// @param count items, less than 2^31
/// @param bits number of low bits to sort by, 1 to 63; see key_bits()
void sort_keys(const std::int64_t* keys, std::int64_t* sorted, std::int64_t count, int bits);

/// Sorts keys like sort_keys(), each with its value. The sort is stable.
/// @param keys [count], at least 0
/// @param values [count]
/// @param sorted_keys [count], out
/// @param sorted_values [count], out
/// @param count items, less than 2^31
/// @param bits number of low bits to sort by, 1 to 63; see key_bits()
void sort_pairs(const std::int64_t* keys, const std::int32_t* values, std::int64_t* sorted_keys,
                std::int32_t* sorted_values, std::int64_t count, int bits);

/// The same for 32-bit keys, which move half as many bytes. @param bits 1 to 32
void sort_pairs(const std::uint32_t* keys, const std::int32_t* values, std::uint32_t* sorted_keys,
                std::int32_t* sorted_values, std::int64_t count, int bits);

/// The exclusive prefix sum of the counts in 64 bits, followed by the total.
/// @param counts [count]
/// @param sums [count + 1], out
/// @param count items, less than 2^31
void exclusive_sum(const std::int32_t* counts, std::int64_t* sums, std::int64_t count);

/// Copies each distinct key of a sorted list once, in order.
/// @param sorted [count], ascending
/// @param distinct [count], out; only the first *distinct_count are written
/// @param distinct_count one element, out
/// @param count items, less than 2^31
void unique(const std::int64_t* sorted, std::int64_t* distinct, std::int64_t* distinct_count,
            std::int64_t count);

}  // namespace convladder::BACKEND
