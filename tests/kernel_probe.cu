/// @file kernel_probe.cu
/// @brief The kernels of kernel_probe.hpp.
#include <numeric>

#include "core/cuda/device_array.hpp"
#include "cuda_optimized/rulebook/shared/bit_ranks.cuh"
#include "cuda_optimized/sparse_wgrad/shared/pair_parts.cuh"
#include "cuda_optimized/sparse_wgrad/shared/sum_parts.cuh"
#include "tests/kernel_probe.hpp"

namespace convladder::BACKEND::kernel_probe {
namespace {

using cuda_optimized::sparse_wgrad::BlockWork, cuda_optimized::sparse_wgrad::PairParts;

constexpr int kSumThreads = 64;
constexpr int kTile = 32;  ///< Channels, of which there are fewer.

template <class T>
DeviceArray<T> uploaded(const std::vector<T>& values) {
  DeviceArray<T> array(static_cast<std::int64_t>(values.size()));
  check(cudaMemcpy(array.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return array;
}

template <class T>
std::vector<T> values_of(const DeviceArray<T>& array, std::size_t count) {
  std::vector<T> values(count);
  check(cudaMemcpy(values.data(), array.data(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

__global__ void note_first_thread(int* first) {
  atomicCAS(first, -1, static_cast<int>(threadIdx.x));
}

__global__ void sum_rows(int rows, int columns, int* values, int* totals) {
  cuda_optimized::rulebook::row_exclusive_sums<kSumThreads>(rows, columns, gridDim.x, values,
                                                            totals);
}

/// One warp a part: grid as work_of_block() wants it.
__global__ void sum_parts(PairParts parts, const int* offsets, int columns, int* seen, int* tap,
                          float* sums) {
  BlockWork work;
  if (!cuda_optimized::sparse_wgrad::work_of_block<kTile, kTile>(parts, offsets, 1, &work)) return;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < work.part.count; i += 32) {
    atomicAdd(&seen[work.part.first + i], 1);
    tap[work.part.first + i] = work.part.k;
  }
  for (int column = lane; column < columns; column += 32) {
    float sum = 0;
    for (int i = 0; i < work.part.count; ++i)
      sum += static_cast<float>(work.part.first + i + column);
    sums[std::int64_t{work.slot} * columns + column] = sum;
  }
}

}  // namespace

int first_thread(int threads) {
  const auto first = uploaded<int>({-1});
  launch(note_first_thread, {1, static_cast<unsigned>(threads)}, first.data());
  return values_of(first, 1)[0];
}

RowSums row_sums(int rows, int columns, int blocks, const std::vector<int>& values) {
  const auto table = uploaded(values);
  const DeviceArray<int> totals(rows);
  launch(sum_rows, {static_cast<unsigned>(blocks), kSumThreads}, rows, columns, table.data(),
         totals.data());
  return {values_of(table, values.size()), values_of(totals, static_cast<std::size_t>(rows))};
}

PairSums pair_sums(const std::vector<int>& pairs_of_taps, int wanted, int columns) {
  const auto taps = pairs_of_taps.size();
  std::vector<int> begins(taps + 1);
  std::partial_sum(pairs_of_taps.begin(), pairs_of_taps.end(), begins.begin() + 1);
  SparseConvProblem conv;
  conv.book.KV = static_cast<int>(taps);
  conv.pairs = begins.back();
  const PairParts parts = cuda_optimized::sparse_wgrad::cut_pairs(conv, wanted, 4, 8);

  const auto pairs = static_cast<std::size_t>(conv.pairs);
  const auto offsets = uploaded(begins);
  const auto seen = uploaded(std::vector<int>(pairs)), tap = uploaded(std::vector<int>(pairs, -1));
  const DeviceArray<float> sums(std::int64_t{parts.slabs()} * parts.most_parts * columns);
  const DeviceArray<float> of_taps(static_cast<std::int64_t>(taps) * columns);
  launch(
      sum_parts,
      {dim3(static_cast<unsigned>(parts.most_parts), 1, static_cast<unsigned>(parts.slabs())), 32},
      parts, offsets.data(), columns, seen.data(), tap.data(), sums.data());
  cuda_optimized::sparse_wgrad::launch_sum_pair_parts(parts, offsets.data(), sums.data(), columns,
                                                      of_taps.data());
  return {parts.slabs(), values_of(seen, pairs), values_of(tap, pairs),
          values_of(of_taps, taps * static_cast<std::size_t>(columns))};
}

}  // namespace convladder::BACKEND::kernel_probe
