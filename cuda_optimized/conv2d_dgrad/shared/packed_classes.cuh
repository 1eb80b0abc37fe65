/// @file packed_classes.cuh
/// @brief The residue classes of an input gradient that one grid computes, and their packed
/// weights; conv2d_dgrad/implicit_gemm/cp_async.cu explains them.
#pragma once

#include <algorithm>

#include "core/cuda/grid_stride.hpp"
#include "core/cuda/launch.hpp"
#include "cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {

inline constexpr int kClasses = 4;  ///< Of a grid, at most: all that stride 2 has.

/// The classes that a grid computes. In a class with fewer tiles than the largest one, some blocks
/// have no work.
struct ClassesOfGrid {
  conv2d::GatheredProduct of[kClasses];  ///< planned; the first `count` are used
  int count = 0;                         ///< classes
  int n_tiles = 0;                       ///< of the class that has most

  /// Appends a class.
  void add(const conv2d::GatheredProduct& product) {
    of[count++] = product;
    n_tiles = std::max(n_tiles, product.n_tiles);
  }
  /// Removes all classes.
  void clear() { count = n_tiles = 0; }
  /// Blocks of the grid, if `splits` of them share a tile.
  std::int64_t blocks(int splits = 1) const {
    return std::int64_t{of[0].m_tiles} * n_tiles * splits * of[0].groups * count;
  }
  /// Bytes of the largest table in shared memory.
  std::size_t table_bytes() const {
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes = std::max(bytes, conv2d::table_bytes(of[i]));
    return bytes;
  }
};

inline constexpr int kPackThreads = 256;  ///< Of a block that packs weights.

/// weights [K][C/groups][R][S] to packed [groups][k_rows][padded_m], the taps of one class, with
/// zeros where there is no weight. A thread copies all taps of a filter and channel: a warp writes
/// neighbours, and reads the rest of its cache lines before they are evicted.
/// Grid <= ceil(groups * filters * padded_m / 256), block 256.
/// @param filters of a group, rounded up so that all rows are written
static __global__ void __launch_bounds__(kPackThreads)
    conv2d_dgrad_pack_class(Conv2dProblem conv, ResidueClass residue,
                            conv2d::GatheredProduct product, int filters, const float* weights,
                            float* packed) {
  const int taps = product.R * product.S;
  const std::int64_t count = std::int64_t{product.groups} * filters * product.padded_m;
  for (const std::int64_t i : grid_stride<kPackThreads>(count)) {
    const auto m = static_cast<int>(i % product.padded_m);
    const auto k = static_cast<int>(i / product.padded_m % filters);
    const std::int64_t group = i / product.padded_m / filters;
    const bool exists = m < product.filters && k < product.channels;
    const float* from =
        exists ? weights + ((group * product.channels + k) * product.filters + m) * conv.R * conv.S
               : nullptr;
    for (int tap = 0; tap < taps; ++tap) {
      const std::int64_t row = conv2d::packed_row(product, k, tap);
      if (row >= product.k_rows) break;
      const int r = residue.h.first_tap + tap / product.S * residue.h.tap_step;
      const int s = residue.w.first_tap + tap % product.S * residue.w.tap_step;
      packed[(group * product.k_rows + row) * product.padded_m + m] =
          exists ? from[std::int64_t{r} * conv.S + s] : 0.0f;
    }
  }
}

/// Packs the weights of a class; of one without taps there are none.
inline void launch_pack_class(const Conv2dProblem& conv, const ResidueClass& residue,
                              const conv2d::GatheredProduct& product, const float* weights,
                              float* packed) {
  if (product.k_rows == 0) return;
  const int filters = conv2d::packed_channels(product);
  const std::int64_t count = std::int64_t{product.groups} * filters * product.padded_m;
  launch(conv2d_dgrad_pack_class,
         {dim3(blocks_for(count, kPackThreads, kMaxGridX - 1)), dim3(kPackThreads)}, conv, residue,
         product, filters, weights, packed);
}

/// Whether all classes take a table, which one kernel then uses for all of them.
template <class T>
bool all_take_table(const Conv2dProblem& conv) {
  bool all = true;
  for_each_class(conv, [&](const ResidueClass&, const conv2d::WindowProduct& product) {
    all = all && conv2d::takes_table(product, T::kBlockK);
  });
  return all;
}

/// The class that has most pixels, for the choice of tiles.
inline conv2d::WindowProduct largest_class(const Conv2dProblem& conv) {
  return ResidueClass(conv, 0, 0).product(conv, 0, 0);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
