/// @file algorithms.cu
/// @brief Device-wide algorithms: compiled by nvcc with CUB, and for cuda_on_cpu with std.
#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "core/cuda/algorithms.hpp"
#include "core/cuda/device_array.hpp"
#include "core/text.hpp"

#ifdef __CUDACC__
#include <cub/cub.cuh>
#endif

namespace convladder::BACKEND {
namespace {

void require_countable(std::int64_t count) {
  if (count > std::numeric_limits<int>::max())
    throw std::logic_error(text("algorithms.hpp takes fewer than 2^31 items, not ", count));
}

#ifdef __CUDACC__

/// CUB's functions are called twice: to query the size of their temporary memory, and to run.
template <class Call>
void with_temporary(Call call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes));
  // Never null, which would only repeat the query.
  const DeviceArray<char> temporary(static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
  check(call(temporary.data(), bytes));
}

/// The sum is in 64 bits, whatever the element type.
struct Plus {
  __host__ __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return a + b;
  }
};

/// sums [count + 1]: computes the last one from the one before. One thread.
__global__ void add_last(const std::int32_t* counts, std::int64_t* sums, std::int64_t count) {
  sums[count] = sums[count - 1] + counts[count - 1];
}

#else

// One thread per item.

__global__ void sort_keys_kernel(const std::int64_t* keys, std::int64_t* sorted, std::int64_t count,
                                 std::int64_t low_bits) {
  std::copy_n(keys, count, sorted);
  std::stable_sort(sorted, sorted + count,
                   [=](std::int64_t a, std::int64_t b) { return (a & low_bits) < (b & low_bits); });
}

/// order [count]: scratch.
template <class Key>
__global__ void sort_pairs_kernel(const Key* keys, const std::int32_t* values, Key* sorted_keys,
                                  std::int32_t* sorted_values, std::int64_t* order,
                                  std::int64_t count, std::int64_t low_bits) {
  for (std::int64_t i = 0; i < count; ++i) order[i] = i;
  std::stable_sort(order, order + count, [=](std::int64_t a, std::int64_t b) {
    return (keys[a] & low_bits) < (keys[b] & low_bits);
  });
  for (std::int64_t i = 0; i < count; ++i) {
    sorted_keys[i] = keys[order[i]];
    sorted_values[i] = values[order[i]];
  }
}

__global__ void exclusive_sum_kernel(const std::int32_t* counts, std::int64_t* sums,
                                     std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] = sum;
    sum += counts[i];
  }
  sums[count] = sum;
}

__global__ void unique_kernel(const std::int64_t* sorted, std::int64_t* distinct,
                              std::int64_t* distinct_count, std::int64_t count) {
  *distinct_count = std::unique_copy(sorted, sorted + count, distinct) - distinct;
}

constexpr std::int64_t low_bits(int bits) { return (std::int64_t{1} << bits) - 1; }

#endif

}  // namespace

int key_bits(std::int64_t largest) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest))));
}

void sort_keys(const std::int64_t* keys, std::int64_t* sorted, std::int64_t count, int bits) {
  require_countable(count);
  if (count == 0) return;
#ifdef __CUDACC__
  with_temporary([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, sorted, static_cast<int>(count),
                                          0, bits, current_stream());
  });
#else
  launch(sort_keys_kernel, {dim3(1), dim3(1)}, keys, sorted, count, low_bits(bits));
#endif
}

namespace {

template <class Key>
void sort_pairs_of(const Key* keys, const std::int32_t* values, Key* sorted_keys,
                   std::int32_t* sorted_values, std::int64_t count, int bits) {
  require_countable(count);
  if (count == 0) return;
#ifdef __CUDACC__
  with_temporary([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, values,
                                           sorted_values, static_cast<int>(count), 0, bits,
                                           current_stream());
  });
#else
  const DeviceArray<std::int64_t> order(count);
  launch(sort_pairs_kernel<Key>, {dim3(1), dim3(1)}, keys, values, sorted_keys, sorted_values,
         order.data(), count, low_bits(bits));
#endif
}

}  // namespace

void sort_pairs(const std::int64_t* keys, const std::int32_t* values, std::int64_t* sorted_keys,
                std::int32_t* sorted_values, std::int64_t count, int bits) {
  sort_pairs_of(keys, values, sorted_keys, sorted_values, count, bits);
}

void sort_pairs(const std::uint32_t* keys, const std::int32_t* values, std::uint32_t* sorted_keys,
                std::int32_t* sorted_values, std::int64_t count, int bits) {
  sort_pairs_of(keys, values, sorted_keys, sorted_values, count, bits);
}

void exclusive_sum(const std::int32_t* counts, std::int64_t* sums, std::int64_t count) {
  require_countable(count);
#ifdef __CUDACC__
  if (count == 0) {
    check(cudaMemsetAsync(sums, 0, sizeof *sums, current_stream()));
    return;
  }
  with_temporary([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(temporary, bytes, counts, sums, Plus{}, std::int64_t{0},
                                          static_cast<int>(count), current_stream());
  });
  launch(add_last, {dim3(1), dim3(1)}, counts, sums, count);
#else
  launch(exclusive_sum_kernel, {dim3(1), dim3(1)}, counts, sums, count);
#endif
}

void unique(const std::int64_t* sorted, std::int64_t* distinct, std::int64_t* distinct_count,
            std::int64_t count) {
  require_countable(count);
#ifdef __CUDACC__
  if (count == 0) {
    check(cudaMemsetAsync(distinct_count, 0, sizeof *distinct_count, current_stream()));
    return;
  }
  with_temporary([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceSelect::Unique(temporary, bytes, sorted, distinct, distinct_count,
                                     static_cast<int>(count), current_stream());
  });
#else
  launch(unique_kernel, {dim3(1), dim3(1)}, sorted, distinct, distinct_count, count);
#endif
}

}  // namespace convladder::BACKEND
