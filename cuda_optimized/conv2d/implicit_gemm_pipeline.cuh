/// @file implicit_gemm_pipeline.cuh
/// @brief The implicit matrix product with copies in flight, forward and backward;
/// cuda_optimized/conv2d/implicit_gemm_cp_async.cu explains it.
#pragma once

#include "core/cuda/ptx.hpp"
#include "cuda_optimized/conv2d/gathered_product.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A block's tile, and how its threads copy it.
/// @tparam kStages_ tiles of each factor in shared memory
/// @tparam kBlocks_ blocks that an SM must hold at once
template <int kBlockM, int kBlockN, int kBlockK, int kThreadM, int kThreadN, int kLanesM,
          int kStages_, int kBlocks_>
struct PipelineTile : gemm::ThreadTile<kBlockM, kBlockN, kBlockK, kThreadM, kThreadN, kLanesM> {
  /// The tile without the copies.
  using Base = gemm::ThreadTile<kBlockM, kBlockN, kBlockK, kThreadM, kThreadN, kLanesM>;
  using Base::Base;
  using Base::kThreads;
  static constexpr int kStages = kStages_,  ///< tiles of each factor in shared memory
      kBlocks = kBlocks_;                   ///< that an SM must hold at once

  /// A thread gathers for kPixels pixels, kThreads apart, every kRowStep-th row of a tile.
  static constexpr int kPixels = kBlockN > kThreads ? kBlockN / kThreads : 1;
  /// From a row that a thread gathers to its next one.
  static constexpr int kRowStep = kBlockN > kThreads ? 1 : kThreads / kBlockN;
  static constexpr int kRows = kBlockK / kRowStep;  ///< of a tile, for which a thread gathers
  static_assert(kBlockN > kThreads ? kBlockN % kThreads == 0 : kThreads % kBlockN == 0);
  static_assert(kBlockK % kRowStep == 0);

  static constexpr int kFloatsA = kBlockK * kBlockM, kFloatsB = kBlockK * kBlockN;  ///< of a stage
  static constexpr int kFloats = kStages * (kFloatsA + kFloatsB);  ///< of all stages
  static_assert(kThreads * kThreadN <= kFloats, "for_each_in_order() has room");
};

/// One k = (c, r, s), where the steps are not taken tap by tap.
struct TapOffset {
  unsigned offset;  ///< bytes from the window's corner, modulo 2^32
  unsigned bits;    ///< bit r, and bit taps_h + s
};
/// Rows of the table of offsets in shared memory: 16 KB.
inline constexpr int kMaxTableRows = 2048;

/// Whether the steps along k are (c, r, s) with a table, rather than (r, s, c): where whole tiles
/// of channels would be mostly padding.
inline bool takes_table(const GatheredProduct& product, int block_k) {
  return product.group_c % block_k != 0 && product.taps_h + product.taps_w <= 31 &&
         std::int64_t{product.group_c} * product.taps_h * product.taps_w <=
             kMaxTableRows - block_k &&
         std::int64_t{product.group_c} * product.in_h * product.in_w < 0x40000000;
}

/// Why a kernel's offsets of 32 bits do not reach all that a block gathers.
inline Declined why_no_gather(const GatheredProduct& product) {
  constexpr int kMostPixels = 512;  // of a tile
  const std::int64_t images = kMostPixels / std::max(1, product.image_pixels()) + 2;
  const std::int64_t plane = std::int64_t{product.in_h} * product.in_w;
  const std::int64_t image = plane * product.groups * product.group_c;
  if (image > 0x3fffffff / images) {
    return text("a block may gather from ", images, " images of ", image,
                " elements, together 2^30 or more");
  }
  return why_no_padded_product(product.group_c, std::int64_t{product.taps_h} * product.taps_w);
}

/// What a thread gathers: elements of its pixels, for its rows of each tile.
///
/// From a row to the next, an address moves on by a channel. Offsets are 32 bits as far as they go
/// (see why_no_gather()).
template <class T, bool kTable>
class Gather {
 public:
  /// @param group the group's first channel in the image of the block's first pixel
  /// @param first_image that image
  /// @param first_pixel of the block's tile
  /// @param first_step where the block begins along k; there must be one
  __device__ Gather(const GatheredProduct& product, const float* group, int first_image,
                    int first_pixel, int first_step)
      : group_(reinterpret_cast<const char*>(group)),
        plane_(static_cast<unsigned>(product.in_h) * static_cast<unsigned>(product.in_w) * kBytes) {
    const int thread = static_cast<int>(threadIdx.x);
    pixel_ = T::kPixels > 1 ? thread : thread % T::kBlockN;
    row_ = T::kPixels > 1 ? 0 : thread / T::kBlockN;
    const unsigned image_bytes = static_cast<unsigned>(product.groups * product.group_c) * plane_;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const int j = first_pixel + pixel_ + i * T::kThreads;
      const bool exists = j < product.pixels();
      const int image = exists ? product.by_image.quotient(j) : first_image;
      const int in_image = exists ? product.by_image.remainder(j, image) : 0;
      const int row = product.by_row.quotient(in_image);
      const int h = row * product.step_h + product.start_h;
      const int w = product.by_row.remainder(in_image, row) * product.step_w + product.start_w;
      corner_[i] = static_cast<unsigned>(image - first_image) * image_bytes +
                   static_cast<unsigned>(h * product.in_w + w) * kBytes;
      if constexpr (kTable) {
        missing_[i] = exists ? missing_taps(product, h, w) : ~0u;
      } else {
        h_[i] = exists ? h : kNowhere;
        w_[i] = w;
      }
    }
    if constexpr (!kTable) {
      const int tiles_c = product.padded_c / T::kBlockK, tap = first_step / tiles_c;
      c_ = first_step % tiles_c * T::kBlockK;
      r_ = tap / product.taps_w;
      s_ = tap % product.taps_w;
      find_tap(product);
    }
  }

  /// Starts the copies of the next tile [kBlockK][kBlockN].
  /// @param taps the tile's rows of the table, if there is one
  __device__ void copy(const GatheredProduct& product, const TapOffset* taps, float* tile) {
    float* const to = tile + row_ * T::kBlockN + pixel_;
    if constexpr (kTable) {
      // Entries are read several at a time: a copy does not begin before its entry is there.
      constexpr int kAtOnce = T::kRows < 8 ? T::kRows : 8;
      static_assert(T::kRows % kAtOnce == 0);
#pragma unroll
      for (int j0 = 0; j0 < T::kRows; j0 += kAtOnce) {
        TapOffset tap[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) tap[j] = taps[row_ + (j0 + j) * T::kRowStep];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
          for (int i = 0; i < T::kPixels; ++i) {
            const bool inside = (tap[j].bits & missing_[i]) == 0;
            const unsigned offset = inside ? corner_[i] + tap[j].offset : 0;
            ptx::cp_async<kBytes>(to + (j0 + j) * T::kRowStep * T::kBlockN + i * T::kThreads,
                                  group_ + offset, inside ? kBytes : 0);
          }
        }
      }
      return;
    }
    if (c_ + T::kBlockK <= product.group_c) {
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          ptx::cp_async<kBytes>(to + j * T::kRowStep * T::kBlockN + i * T::kThreads,
                                reinterpret_cast<const char*>(from_[i]), inside_[i] ? kBytes : 0);
          from_[i] += T::kRowStep * std::uint64_t{plane_};
        }
      }
    } else {  // Channels behind the last one meet weights of zero, but must be numbers.
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          const bool exists = c_ + row_ + j * T::kRowStep < product.group_c;
          ptx::cp_async<kBytes>(
              to + j * T::kRowStep * T::kBlockN + i * T::kThreads,
              exists ? reinterpret_cast<const char*>(
                           from_[i] + static_cast<std::uint64_t>(j * T::kRowStep) * plane_)
                     : group_,
              exists && inside_[i] ? kBytes : 0);
        }
      }
    }
    c_ += T::kBlockK;
    if (c_ >= product.group_c) {  // on to the next tap
      c_ = 0;
      if (++s_ == product.taps_w) {
        s_ = 0;
        ++r_;
      }
      find_tap(product);
    }
  }

 private:
  static constexpr int kBytes = sizeof(float);
  static constexpr int kNowhere = -0x40000000;  ///< The row of a pixel that does not exist.

  __device__ static bool is_inside(int at, int extent) {
    return static_cast<unsigned>(at) < static_cast<unsigned>(extent);
  }

  __device__ static unsigned missing_taps(const GatheredProduct& product, int h, int w) {
    unsigned missing = ~0u;
    for (int r = 0; r < product.taps_h; ++r) {
      if (is_inside(h + r * product.tap_h, product.in_h)) missing &= ~(1u << r);
    }
    for (int s = 0; s < product.taps_w; ++s) {
      if (is_inside(w + s * product.tap_w, product.in_w)) {
        missing &= ~(1u << (product.taps_h + s));
      }
    }
    return missing;
  }

  /// Finds where tap (r_, s_) of the pixels lies.
  __device__ void find_tap(const GatheredProduct& product) {
    const int down = r_ * product.tap_h, across = s_ * product.tap_w;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const bool inside =
          is_inside(h_[i] + down, product.in_h) && is_inside(w_[i] + across, product.in_w);
      inside_[i] = inside;
      // Where the tap lies in the padding, nothing is read.
      from_[i] =
          reinterpret_cast<std::uintptr_t>(group_) +
          static_cast<std::uint64_t>(c_ + row_) * plane_ +
          (inside ? corner_[i] + static_cast<unsigned>(down * product.in_w + across) * kBytes : 0);
    }
  }

  const char* group_;
  unsigned plane_;               ///< bytes of a channel of an image
  int pixel_, row_;              ///< this thread's first element of a tile
  unsigned corner_[T::kPixels];  ///< bytes from group_ to the window's corner, modulo 2^32

  // With a table:
  unsigned missing_[T::kPixels];  ///< bit r: row r of taps is not inside; bit taps_h + s

  // Tap by tap:
  int h_[T::kPixels], w_[T::kPixels];  ///< the window's corner
  int c_, r_, s_;                      ///< the next tile's first channel, and its tap
  /// Address of the thread's first element of that tile. A number, not a pointer: behind the last
  /// channel it lies outside of the array, and is not used.
  std::uintptr_t from_[T::kPixels];
  bool inside_[T::kPixels];  ///< whether the tap is not in the padding
};

/// Several products with the same channels, in one grid. A product with fewer tiles leaves some
/// blocks without work.
template <int kMost>
struct Products {
  GatheredProduct of[kMost];         ///< the products, of which the first `count` are used
  int count = 1;                     ///< products, at most kMost
  int splits = 1;                    ///< blocks that share the steps of a tile
  TileMap map = TileMap::row_major;  ///< of the tiles of a product

  /// Tiles along the pixels, of the product that has most.
  HOST_DEVICE int n_tiles() const {
    int most = 0;
    for (int i = 0; i < kMost; ++i) {
      if (i < count && of[i].n_tiles > most) most = of[i].n_tiles;
    }
    return most;
  }
  /// The tiles of the product that has most, as maps count them: pixels down, channels across. By
  /// the map row_major, blocks with the same pixels are neighbours, so that what they gather is
  /// still in the L2 cache.
  TileMapProblem tiles() const {
    return {.map = map,
            .tiles_m = n_tiles(),
            .tiles_n = of[0].m_tiles,
            .k_steps = of[0].steps,
            .splits = splits,
            .batch = of[0].groups * count};
  }
};

/// packed: for each product [groups][k_rows][padded_m], one after the other.
/// Grid walk.plane * products.splits * groups * products.count, block T::kThreads.
/// @param walk of products.tiles()
template <class T, bool kTable, int kMost, class Store>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    gathered_products(Products<kMost> products, tile_map::Walk walk, Store store, const float* in,
                      const float* packed) {
  float* const a_tiles = dynamic_shared<float>();             // [stage][k][m]
  float* const b_tiles = a_tiles + T::kStages * T::kFloatsA;  // [stage][k][n]
  auto* const table = reinterpret_cast<TapOffset*>(a_tiles + T::kFloats);

  tile_map::Tile at;
  if (!walk.tile_at(blockIdx.x % walk.plane, &at)) return;  // the whole block, at once
  // The order of planes: splits, groups, products.
  unsigned block = blockIdx.x / walk.plane;
  const auto take = [&block](int extent) {
    const auto divisor = static_cast<unsigned>(extent);
    const auto digit = static_cast<int>(block % divisor);
    block /= divisor;
    return digit;
  };
  BlockPlace place{};
  place.m = at.n * T::kBlockM;
  place.split = take(products.splits);
  place.group = take(products.of[0].groups);
  const int index = kMost == 1 ? 0 : static_cast<int>(block);
  const GatheredProduct& product = products.of[index];
  if (at.m >= product.n_tiles) return;  // the whole block, at once
  place.n = at.m * T::kBlockN;
  for (int i = 0; i < index; ++i) {
    packed += std::int64_t{product.groups} * products.of[i].k_rows * product.padded_m;
  }

  const int thread = static_cast<int>(threadIdx.x);
  const auto step_of = [&](int split) {
    return static_cast<int>(std::int64_t{product.steps} * split / products.splits);
  };
  const int begin = step_of(place.split), end = step_of(place.split + 1);
  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  if (begin < end) {
    if constexpr (kTable) {
      const int taps = product.taps_h * product.taps_w;
      for (int row = thread; row < product.k_rows; row += T::kThreads) {
        const int c = row / taps, r = row % taps / product.taps_w, s = row % product.taps_w;
        const int offset =
            (c * product.in_h + r * product.tap_h) * product.in_w + s * product.tap_w;
        // Rows behind the last channel: no pixel has that tap.
        table[row] = c < product.group_c ? TapOffset{static_cast<unsigned>(offset) * 4,
                                                     1u << r | 1u << (product.taps_h + s)}
                                         : TapOffset{0, ~0u};
      }
      __syncthreads();  // separates these stores from all loads of the table
    }
    const int image = product.by_image.quotient(place.n);
    const std::int64_t first_channel =
        (std::int64_t{image} * product.groups + place.group) * product.group_c;
    Gather<T, kTable> gather(product, in + first_channel * product.in_h * product.in_w, image,
                             place.n, begin);

    constexpr int kFoursM = T::kBlockM / 4, kFours = T::kFloatsA / 4;  // of a row, of a tile
    static_assert(T::kThreads % kFoursM == 0);
    const float* weights =
        packed +
        (std::int64_t{place.group} * product.k_rows + begin * T::kBlockK + thread / kFoursM) *
            product.padded_m +
        place.m + thread % kFoursM * 4;
    int next = begin;  // the step that is copied next
    const auto copy_next = [&](int stage) {
      if (next < end) {
        float* const a_tile = a_tiles + stage * T::kFloatsA;
#pragma unroll
        for (int i = 0; i < ceil_div(kFours, T::kThreads); ++i) {
          const int four = thread + i * T::kThreads;
          if (kFours % T::kThreads == 0 || four < kFours) {
            ptx::cp_async<16>(
                a_tile + four * 4,
                weights + std::int64_t{i * (T::kThreads / kFoursM)} * product.padded_m);
          }
        }
        weights += std::int64_t{T::kBlockK} * product.padded_m;
        gather.copy(product, table + next * T::kBlockK, b_tiles + stage * T::kFloatsB);
        ++next;
      }
      ptx::cp_async_commit_group();  // also without copies, so that groups are counted as steps
    };

    for (int stage = 0; stage < T::kStages - 1; ++stage) copy_next(stage);
    int stage = 0, free_stage = T::kStages - 1;
    for (int step = begin; step < end; ++step) {
      ptx::cp_async_wait_group<T::kStages - 2>();  // this step's copies by this thread have landed
      // Separates the copies of all threads from the loads below, and the last step's loads from
      // the copies into the stage that it has left.
      __syncthreads();
      copy_next(free_stage);
      tile.template multiply<T::kBlockM, T::kBlockN>(a_tiles + stage * T::kFloatsA,
                                                     b_tiles + stage * T::kFloatsB, sums);
      free_stage = stage;
      stage = stage + 1 == T::kStages ? 0 : stage + 1;
    }
    __syncthreads();  // separates the last loads from the stores of store()
  }
  store.store(product, place, tile, sums, a_tiles);
}

/// Launches the kernel for planned products.
template <class T, int kMost, class Store>
void launch_gathered(const Products<kMost>& products, const Store& store, const float* in,
                     const float* packed) {
  int table_rows = 0;
  for (int i = 0; i < products.count; ++i) {
    if (products.of[i].table) table_rows = std::max(table_rows, products.of[i].k_rows);
  }
  const std::size_t bytes =
      T::kFloats * sizeof(float) + static_cast<std::size_t>(table_rows) * sizeof(TapOffset);
  const TileMapProblem tiles = products.tiles();
  const tile_map::Walk walk(tiles);
  const std::int64_t blocks = std::int64_t{walk.plane} * tiles.splits * tiles.batch;
  launch(products.of[0].table ? gathered_products<T, true, kMost, Store>
                              : gathered_products<T, false, kMost, Store>,
         {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), bytes}, products, walk, store, in,
         packed);
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
