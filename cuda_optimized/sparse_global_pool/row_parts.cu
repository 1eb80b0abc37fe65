/// @file row_parts.cu
/// @brief sparse_global_pool: segmented reduction; one launch reduces parts of the rows, one joins
/// them.
///
/// - Before: cuda_naive/sparse_global_pool/direct.cu
/// - The same maths: cpu_reference/sparse_global_pool/direct.cpp
///
/// **The idea.** The rows are cut into parts. A block reduces one part for one image and 32
/// channels: each of its eight warps takes every eighth row, and a tree in shared memory joins
/// their eight results. A second kernel joins the results of the parts in their order.
///
///     part 0            part 1            part 2           rows
///     warp 0 1 ... 7    warp 0 1 ... 7    warp 0 1 ... 7   every eighth row each
///         \ tree /          \ tree /          \ tree /     partial[part][n][c], counts[part][n]
///               \               |               /
///                -------  in order of parts ---           y[n][c]
///
/// The number of parts depends on the problem alone, and both joins have a fixed order: the result
/// has the same bits in every run and on every GPU. Atomic additions would not give that.
///
/// **Expect.** Eight warps and all parts share the loop over the rows. The chains of additions
/// become shorter by the same factor, and so do their rounding errors.
/// @expect loads_per_output.features 512, each row once, as before
/// @expect loads_per_output.coords 512, as before
/// @expect lanes.workspace.store 8 * (32 + 1) = 264, sums and a count for each of 8 parts
/// @expect launches 2, parts; then images
/// **Costs.** For N images the batch ids are read N times. Workspace for all partial results.
/// **Try.** Let a block first find the lowest and the highest batch id of its part. How many images
/// remain to be reduced if the rows are sorted by image?
#include <algorithm>

#include "core/arithmetic.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/sparse_global_pool_problem.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::sparse_global_pool {
namespace {

constexpr int kChannels = 32;  ///< Of a block: one warp.
constexpr int kWarps = 8;      ///< Of a block: each takes every eighth row.
constexpr int kThreads = 256;
constexpr std::int64_t kRowsOfPart = 64;      ///< At least, but in the last part.
constexpr std::int64_t kMostBlocks = 4096;    ///< More blocks would only add partial results.
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Upper bound of the grid; blocks stride over more
                                              ///< images.

/// How many parts the rows are cut into: at least one.
std::int64_t parts_of(const SparseGlobalPoolProblem& pool) {
  const std::int64_t tiles = ceil_div(pool.C, kChannels);
  const std::int64_t useful = ceil_div(std::int64_t{pool.grid.sites}, kRowsOfPart);
  return std::max<std::int64_t>(std::min(useful, kMostBlocks / (pool.grid.batch * tiles)), 1);
}

/// features [sites][C], coords [sites][1 + ndim], partial [parts][batch][C], counts [parts][batch].
/// Block (kChannels, kWarps); any grid (parts and images, channels).
__global__ void sparse_global_pool_row_parts_reduce_parts(SparseGlobalPoolProblem pool,
                                                          std::int64_t parts, const float* features,
                                                          const std::int32_t* coords,
                                                          float* partial, std::int32_t* counts) {
  __shared__ float values[kWarps][kChannels];
  __shared__ std::int32_t rows[kWarps];  // per warp: rows that belong to the image
  const std::int64_t C = pool.C, columns = 1 + pool.grid.ndim;
  const std::int64_t length = ceil_div(std::int64_t{pool.grid.sites}, parts);
  const unsigned warp = threadIdx.y;

  for (std::int64_t item = blockIdx.x; item < parts * pool.grid.batch; item += gridDim.x) {
    const std::int64_t part = item / pool.grid.batch, n = item % pool.grid.batch;
    const std::int64_t end = (part + 1) * length, sites = pool.grid.sites;
    const std::int64_t last = end < sites ? end : sites;
    for (std::int64_t tile = blockIdx.y; tile * kChannels < C; tile += gridDim.y) {
      const std::int64_t c = tile * kChannels + threadIdx.x;
      float value = neutral(pool.reduce);
      std::int32_t count = 0;
      for (std::int64_t row = part * length + warp; row < last; row += kWarps) {
        if (coords[row * columns] != n) continue;
        if (c < C) value = combined(pool.reduce, value, features[row * C + c]);
        ++count;
      }
      values[warp][threadIdx.x] = value;
      if (threadIdx.x == 0) rows[warp] = count;
      for (unsigned half = kWarps / 2; half > 0; half /= 2) {
        __syncthreads();  // the values of all warps are stored before they are joined
        if (warp >= half) continue;
        values[warp][threadIdx.x] =
            combined(pool.reduce, values[warp][threadIdx.x], values[warp + half][threadIdx.x]);
        if (threadIdx.x == 0) rows[warp] += rows[warp + half];
      }
      if (warp == 0 && c < C) partial[item * C + c] = values[0][threadIdx.x];
      if (warp == 0 && c == 0) counts[item] = rows[0];
      __syncthreads();  // all results are read before the next values overwrite them
    }
  }
}

/// partial [parts][batch][C], counts [parts][batch], y [batch][C]. Any one-dimensional grid.
__global__ void sparse_global_pool_row_parts_join_parts(SparseGlobalPoolProblem pool,
                                                        std::int64_t parts, const float* partial,
                                                        const std::int32_t* counts, float* y) {
  const std::int64_t C = pool.C, batch = pool.grid.batch;
  for (const std::int64_t i : grid_stride(batch * C)) {
    float value = neutral(pool.reduce);
    int count = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      value = combined(pool.reduce, value, partial[part * batch * C + i]);
      count += counts[part * batch + i / C];
    }
    y[i] = finished(pool.reduce, value, count);
  }
}

std::size_t workspace_bytes(const SparseGlobalPoolProblem& pool) {
  const std::int64_t rows = parts_of(pool) * pool.grid.batch;
  return static_cast<std::size_t>(rows * pool.C) * sizeof(float) +
         static_cast<std::size_t>(rows) * sizeof(std::int32_t);
}

void run(const SparseGlobalPoolProblem& pool, const SparseGlobalPoolArrays& arrays,
         const Context& context) {
  const std::int64_t parts = parts_of(pool), rows = parts * pool.grid.batch;
  float* partial = context.workspace_as<float>();
  auto* counts = reinterpret_cast<std::int32_t*>(partial + rows * pool.C);
  const dim3 grid(blocks_for(rows, 1, kMaxBlocks), blocks_for(pool.C, kChannels, kMaxGridYZ));
  launch(sparse_global_pool_row_parts_reduce_parts, {grid, dim3(kChannels, kWarps)}, pool, parts,
         arrays.features, arrays.coords, partial, counts);
  const std::int64_t outputs = std::int64_t{pool.grid.batch} * pool.C;
  launch(sparse_global_pool_row_parts_join_parts,
         {blocks_for(outputs, kThreads, kMaxBlocks), kThreads}, pool, parts, partial, counts,
         arrays.y);
}

std::string choice_in_words(const SparseGlobalPoolProblem& pool) {
  return text(parts_of(pool) == 1 ? "one part" : "several parts", " of the rows");
}

}  // namespace

extern const Implementation<SparseGlobalPoolArrays> row_parts = {
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_global_pool
