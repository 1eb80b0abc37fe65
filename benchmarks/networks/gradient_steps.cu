#include <algorithm>

#include "benchmarks/networks/gradient_steps.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/half.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::BACKEND {
namespace {

constexpr int kChannels = 32,
              kLanes = 8;      ///< Of a block of through_relu(): a row a lane at a time.
constexpr int kStretch = 256;  ///< Rows that a block adds up, but see kMaxStretches.
constexpr std::int64_t kMaxStretches = 1024;
constexpr int kThreads = 256;  ///< Of a block of all other kernels.
constexpr std::int64_t kMaxBlocks = 1 << 20;

std::int64_t stretches_of(std::int64_t rows) {
  return std::clamp<std::int64_t>(ceil_div<std::int64_t>(rows, kStretch), 1, kMaxStretches);
}

/// dy, and a sum for each channel of each stretch of the rows: parts [stretches][channels]. Grid
/// (stretches, tiles of channels), block (kChannels, kLanes).
template <class T>
__global__ void mask_and_add(std::int64_t rows, int channels, const T* y, T* dy, float* parts) {
  __shared__ float of_lane[kLanes][kChannels];
  const auto column = static_cast<int>(threadIdx.x), lane = static_cast<int>(threadIdx.y);
  const int c = static_cast<int>(blockIdx.y) * kChannels + column;
  const std::int64_t end = rows * (blockIdx.x + 1) / gridDim.x;
  float sum = 0;
  for (std::int64_t row = rows * blockIdx.x / gridDim.x + lane; c < channels && row < end;
       row += kLanes) {
    const std::int64_t i = row * channels + c;
    if (to_float(y[i]) > 0) {
      sum += to_float(dy[i]);
    } else {
      dy[i] = T{};
    }
  }
  of_lane[lane][column] = sum;
  __syncthreads();  // all lanes' sums are there
  if (lane != 0 || c >= channels) return;
  for (int other = 1; other < kLanes; ++other) sum += of_lane[other][column];
  parts[std::int64_t{blockIdx.x} * channels + c] = sum;
}

/// db [channels]: the sums of parts [stretches][channels], as many channels a block as it has
/// columns. Grid (tiles of channels), block (kChannels, kLanes).
__global__ void add_parts(int stretches, int channels, const float* parts, float* db) {
  __shared__ float of_lane[kLanes][kChannels];
  const auto column = static_cast<int>(threadIdx.x), lane = static_cast<int>(threadIdx.y);
  const int c = static_cast<int>(blockIdx.x) * kChannels + column;
  float sum = 0;
  for (int stretch = lane; c < channels && stretch < stretches; stretch += kLanes)
    sum += parts[std::int64_t{stretch} * channels + c];
  of_lane[lane][column] = sum;
  __syncthreads();  // all lanes' sums are there
  if (lane != 0 || c >= channels) return;
  for (int other = 1; other < kLanes; ++other) sum += of_lane[other][column];
  db[c] = sum;
}

void through_relu(DType dtype, std::int64_t rows, int channels, const void* y, void* dy, float* db,
                  float* parts) {
  const auto stretches = static_cast<unsigned>(stretches_of(rows));
  const unsigned tiles = blocks_for(channels, kChannels);
  with_float_type(dtype, [&]<class T>(T) {
    launch(mask_and_add<T>, {dim3(stretches, tiles), dim3(kChannels, kLanes)}, rows, channels,
           static_cast<const T*>(y), static_cast<T*>(dy), parts);
  });
  launch(add_parts, {tiles, dim3(kChannels, kLanes)}, static_cast<int>(stretches), channels, parts,
         db);
}

std::size_t part_bytes(std::int64_t rows, int channels) {
  return sizeof(float) * static_cast<std::size_t>(stretches_of(rows) * channels);
}

/// Any one-dimensional grid.
template <class T>
__global__ void flip(int KV, std::int64_t numbers, const T* weights, T* flipped) {
  for (const std::int64_t i : grid_stride(KV * numbers)) {
    const std::int64_t k = i / numbers;
    flipped[i] = weights[(KV - 1 - k) * numbers + i % numbers];
  }
}

void flip_taps(DType dtype, int KV, std::int64_t numbers, const void* weights, void* flipped) {
  with_float_type(dtype, [&]<class T>(T) {
    launch(flip<T>, {blocks_for(KV * numbers, kThreads, kMaxBlocks), kThreads}, KV, numbers,
           static_cast<const T*>(weights), static_cast<T*>(flipped));
  });
}

/// A thread for each pair, and one past the last: it writes the offsets of all taps that begin
/// there, also of those without pairs. Any one-dimensional grid.
__global__ void mark_taps(std::int64_t count, int KV, const std::int32_t* pairs,
                          std::int32_t* offsets) {
  for (const std::int64_t p : grid_stride(count + 1)) {
    const int before = p > 0 ? pairs[(p - 1) * kPairColumns] : -1;
    const int tap = p < count ? pairs[p * kPairColumns] : KV;
    for (int k = before + 1; k <= tap; ++k) offsets[k] = static_cast<std::int32_t>(p);
  }
}

void find_offsets(std::int64_t count, int KV, const std::int32_t* pairs, std::int32_t* offsets) {
  launch(mark_taps, {blocks_for(count + 1, kThreads, kMaxBlocks), kThreads}, count, KV, pairs,
         offsets);
}

}  // namespace

extern const benchmarks::GradientSteps gradient_steps = {through_relu, part_bytes, flip_taps,
                                                         find_offsets};

}  // namespace convladder::BACKEND
