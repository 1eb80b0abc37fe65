/// @file algorithms.hpp
/// @brief Device-wide sort, running sum and removal of repeats: CUB on a GPU, the standard
/// library's algorithms in a kernel of one thread under cuda_on_cpu.
///
/// All arrays are device memory and do not overlap. Everything runs in the run's stream, and may
/// return before it is done. Temporary memory is allocated inside: about as much as the arrays for
/// a sort, little for the others. Fewer than 2^31 items: older versions of CUB count in int.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// How many low bits keys from 0 to `largest` have; at least 1. A radix sort passes over the keys
/// once for each 8 bits or so: 29 bits cost half of what 64 do.
int key_bits(std::int64_t largest);

/// Sorts keys, ascending, by their low bits alone.
/// @param keys [count], at least 0
/// @param sorted [count], out
/// @param count items, less than 2^31
/// @param bits how many low bits count, 1 to 63; see key_bits()
void sort_keys(const std::int64_t* keys, std::int64_t* sorted, std::int64_t count, int bits);

/// Sorts keys as sort_keys() does, each with its value. Equal keys keep their order.
/// @param keys [count], at least 0
/// @param values [count]
/// @param sorted_keys [count], out
/// @param sorted_values [count], out
/// @param count items, less than 2^31
/// @param bits how many low bits count, 1 to 63; see key_bits()
void sort_pairs(const std::int64_t* keys, const std::int32_t* values, std::int64_t* sorted_keys,
                std::int32_t* sorted_values, std::int64_t count, int bits);

/// The same for keys of 32 bits, which move half as many bytes. @param bits 1 to 32
void sort_pairs(const std::uint32_t* keys, const std::int32_t* values, std::uint32_t* sorted_keys,
                std::int32_t* sorted_values, std::int64_t count, int bits);

/// The sum of all counts before each, in 64 bits, and after the last one the sum of all.
/// @param counts [count]
/// @param sums [count + 1], out
/// @param count items, less than 2^31
void exclusive_sum(const std::int32_t* counts, std::int64_t* sums, std::int64_t count);

/// Copies each run of equal keys once, in order.
/// @param sorted [count], ascending
/// @param distinct [count], out; only the first *distinct_count are written
/// @param distinct_count one element, out
/// @param count items, less than 2^31
void unique(const std::int64_t* sorted, std::int64_t* distinct, std::int64_t* distinct_count,
            std::int64_t count);

}  // namespace convladder::BACKEND
