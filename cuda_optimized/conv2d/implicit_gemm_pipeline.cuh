/// @file implicit_gemm_pipeline.cuh
/// @brief The implicit matrix product with copies in flight: forward and input gradient share it;
/// cuda_optimized/conv2d/implicit_gemm_cp_async.cu explains it.
///
/// A kernel of a rung is one call of launch_gathered_products(). Its sums go where `Store` puts
/// them.
#pragma once

#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "cuda_optimized/conv2d/implicit_gemm.cuh"
#include "cuda_optimized/gemm/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// A convolution as the kernel sees it, forward or backward: for each pixel (i, j) of `rows` x
/// `columns` of each image, and each output channel m of a group,
///   out[m, i, j] = sum over c, r, s of packed[m, (r, s, c)] * in[c, start_h + i * step_h + r *
///   tap_h, start_w + j * step_w + s * tap_w]
/// with zeros outside of `in`.
struct GatheredProduct {
  int images, groups;
  int group_c, in_h, in_w;               ///< of the array that is read; channels of a group
  int group_m;                           ///< channels of a group of the array that is written
  int rows, columns;                     ///< pixels that are computed, of an image
  int taps_h, taps_w;                    ///< taps that are added up
  int step_h, step_w, start_h, start_w;  ///< where a pixel's window begins
  int tap_h, tap_w;                      ///< from a tap to the next; may be negative

  // Filled in by plan():
  int m_tiles, n_tiles;           ///< blocks along the channels and along the pixels
  int steps;                      ///< of T::kBlockK products each; 0 where there are no taps
  int padded_m, padded_c;         ///< group_m and group_c, rounded up to whole tiles
  std::int64_t first_packed = 0;  ///< where this product's weights begin in the packed ones
  FastDivision by_image, by_row;  ///< by rows * columns, by columns

  HOST_DEVICE int image_pixels() const { return rows * columns; }
  HOST_DEVICE int pixels() const { return images * rows * columns; }
};

/// The forward pass as a gathered product.
inline GatheredProduct forward_product(const Conv2dProblem& conv) {
  GatheredProduct product{};
  product.images = conv.N;
  product.groups = conv.groups;
  product.group_c = conv.C / conv.groups;
  product.in_h = conv.H;
  product.in_w = conv.W;
  product.group_m = conv.K / conv.groups;
  product.rows = conv.P;
  product.columns = conv.Q;
  product.taps_h = conv.R;
  product.taps_w = conv.S;
  product.step_h = conv.stride.h;
  product.step_w = conv.stride.w;
  product.start_h = -conv.pad.top;
  product.start_w = -conv.pad.left;
  product.tap_h = conv.dilation.h;
  product.tap_w = conv.dilation.w;
  return product;
}

/// A block's tile, and how its threads copy it. kStages tiles of each operand are in shared memory.
template <int kBlockM, int kBlockN, int kBlockK, int kThreadM, int kThreadN, int kLanesM,
          int kStages_, int kBlocks_, bool kPipe_ = false>
struct PipelineTile
    : gemm::ThreadTile<kBlockM, kBlockN, kBlockK, kThreadM, kThreadN, kLanesM> {
  using Base = gemm::ThreadTile<kBlockM, kBlockN, kBlockK, kThreadM, kThreadN, kLanesM>;
  using Base::Base;
  using Base::kThreads;
  static constexpr int kStages = kStages_;
  static constexpr int kBlocks = kBlocks_;  ///< that shall fit an SM
  static constexpr bool kPipe = kPipe_;
  /// A thread gathers kPixels pixels, kThreads apart, and of each every kRowStep-th row of a tile.
  static constexpr int kPixels = kBlockN > kThreads ? kBlockN / kThreads : 1;
  static constexpr int kRowStep = kBlockN > kThreads ? 1 : kThreads / kBlockN;
  static constexpr int kRows = kBlockK / kRowStep;
  static_assert(kBlockN > kThreads ? kBlockN % kThreads == 0 : kThreads % kBlockN == 0);
  static_assert(kBlockK % kRowStep == 0);
  static constexpr int kFloats = kStages * kBlockK * (kBlockM + kBlockN);  ///< shared memory
  static_assert(kThreads / 32 * 8 * 32 * 4 <= kFloats * 4, "the stores' buffers fit");
};

/// One k = (c, r, s) where taps are not taken one after the other.
struct TapOffset {
  int offset;     ///< in `in`, from the window's corner
  unsigned bits;  ///< bit r, and bit taps_h + s
};
inline constexpr int kMaxTableRows = 2048;  ///< 16 KB of shared memory

/// Whether the rows of k are (c, r, s) with a table of offsets, instead of (r, s, c).
inline bool takes_table(const GatheredProduct& product, int block_k) {
  return product.group_c % block_k != 0 && product.taps_h + product.taps_w <= 32 &&
         std::int64_t{product.group_c} * product.taps_h * product.taps_w <= kMaxTableRows &&
         std::int64_t{product.group_c} * product.in_h * product.in_w < 0x40000000;
}

/// What a thread gathers: the elements of its pixels for the rows of k of its own.
template <class T, bool kTable>
class Gather {
 public:
  __device__ Gather(const GatheredProduct& product, const float* group, int thread, int n_tile,
                    int first_step)
      : group_(group), plane_(std::int64_t{product.in_h} * product.in_w),
        pixel_(T::kPixels > 1 ? thread : thread % T::kBlockN),
        row_(T::kPixels > 1 ? 0 : thread / T::kBlockN) {
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      int j = n_tile * T::kBlockN + pixel_ + i * T::kThreads;
      const bool exists = j < product.pixels();
      if (!exists) j = 0;
      const int n = product.by_image.quotient(j), in_image = product.by_image.remainder(j, n);
      const int row = product.by_row.quotient(in_image);
      h_[i] = row * product.step_h + product.start_h;
      w_[i] = product.by_row.remainder(in_image, row) * product.step_w + product.start_w;
      offset_[i] = std::int64_t{n} * product.groups * product.group_c * plane_ +
                   std::int64_t{h_[i]} * product.in_w + w_[i];
      if constexpr (kTable) {
        unsigned inside = 0;
        for (int r = 0; r < product.taps_h; ++r) {
          if (is_inside(h_[i] + r * product.tap_h, product.in_h)) inside |= 1u << r;
        }
        for (int s = 0; s < product.taps_w; ++s) {
          if (is_inside(w_[i] + s * product.tap_w, product.in_w)) {
            inside |= 1u << (product.taps_h + s);
          }
        }
        missing_[i] = exists ? ~inside : ~0u;
      } else if (!exists) {
        h_[i] = kNowhere;
      }
    }
    if constexpr (!kTable) {
      const int channel_steps = product.padded_c / T::kBlockK, tap = first_step / channel_steps;
      c_ = first_step % channel_steps * T::kBlockK;
      r_ = tap / product.taps_w;
      s_ = tap % product.taps_w;
      find_tap(product);
    }
  }

  /// Starts the copies of a tile [kBlockK][kBlockN] of the columns: the next one, or, with a table,
  /// the one whose rows begin at `taps`.
  __device__ void copy(const GatheredProduct& product, const TapOffset* taps, float* tile) {
    float* const to = tile + row_ * T::kBlockN + pixel_;
    if constexpr (kTable) {
#pragma unroll
      for (int j = 0; j < T::kRows; ++j) {
        const TapOffset tap = taps[row_ + j * T::kRowStep];
#pragma unroll
        for (int i = 0; i < T::kPixels; ++i) {
          const bool inside = (tap.bits & missing_[i]) == 0;
          ptx::cp_async<4>(to + j * T::kRowStep * T::kBlockN + i * T::kThreads,
                           group_ + (inside ? offset_[i] + tap.offset : 0), inside ? 4 : 0);
        }
      }
    } else {
      const bool whole = c_ + T::kBlockK <= product.group_c;
#pragma unroll
      for (int i = 0; i < T::kPixels; ++i) {
#pragma unroll
        for (int j = 0; j < T::kRows; ++j) {
          // Channels behind the last one meet weights of zero, but must be numbers.
          const bool exists = whole || c_ + row_ + j * T::kRowStep < product.group_c;
          ptx::cp_async<4>(to + j * T::kRowStep * T::kBlockN + i * T::kThreads,
                           exists ? from_[i] + j * T::kRowStep * plane_ : group_,
                           exists ? bytes_[i] : 0);
        }
        from_[i] += T::kBlockK * plane_;
      }
      c_ += T::kBlockK;
      if (c_ >= product.group_c) {
        c_ = 0;
        if (++s_ == product.taps_w) {
          s_ = 0;
          ++r_;
        }
        find_tap(product);
      }
    }
  }

 private:
  static constexpr int kNowhere = -0x40000000;  ///< The row of pixels that do not exist.

  __device__ static bool is_inside(int at, int extent) {
    return static_cast<unsigned>(at) < static_cast<unsigned>(extent);
  }

  /// Where tap (r_, s_) of the pixels lies.
  __device__ void find_tap(const GatheredProduct& product) {
    const int down = r_ * product.tap_h, across = s_ * product.tap_w;
#pragma unroll
    for (int i = 0; i < T::kPixels; ++i) {
      const bool inside = is_inside(h_[i] + down, product.in_h) &&
                          is_inside(w_[i] + across, product.in_w);
      bytes_[i] = inside ? 4 : 0;
      // Padding points to where something lies, as pointers must not leave their array.
      from_[i] = group_ + (c_ + row_) * plane_ +
                 (inside ? offset_[i] + std::int64_t{down} * product.in_w + across : 0);
    }
  }

  const float* group_;  ///< the group's first channel in the first image
  std::int64_t plane_;  ///< H * W
  int pixel_, row_;     ///< this thread's first element of a tile
  std::int64_t offset_[T::kPixels];  ///< of the window's corner
  int h_[T::kPixels], w_[T::kPixels];
  // With a table:
  unsigned missing_[T::kPixels];  ///< bit r: row r of taps is not inside; bit taps_h + s
  // Without: the tap, the first channel of the next tile, and where it is read.
  int c_, r_, s_;
  const float* from_[T::kPixels];
  int bytes_[T::kPixels];
};

/// The kernel. packed: [products' groups][steps * kBlockK][padded_m].
/// Grid: m_tiles * n_tiles * splits * groups, with `Store::kProducts` products times as much.
template <class T, bool kTable, class Store>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    gathered_product(typename Store::Products products, Store store, const float* in,
                     const float* packed) {
  float* const shared = dynamic_shared<float>();
  float* const a_tiles = shared;                                            // [stage][k][m]
  float* const b_tiles = shared + T::kStages * T::kBlockK * T::kBlockM;     // [stage][k][n]
  TapOffset* const table = reinterpret_cast<TapOffset*>(shared + T::kFloats);

  const auto thread = static_cast<int>(threadIdx.x);
  const auto [product, m_tile, n_tile, group, split] = products.of_block(blockIdx.x);
  if (n_tile >= product.n_tiles) return;  // the whole block, at once
  const auto [begin, end] = store.steps_of(product, split);

  if constexpr (kTable) {
    const int taps = product.taps_h * product.taps_w;
    for (int row = thread; row < product.steps * T::kBlockK; row += T::kThreads) {
      const int c = row / taps, r = row % taps / product.taps_w, s = row % product.taps_w;
      table[row] = c < product.group_c
                       ? TapOffset{(c * product.in_h + r * product.tap_h) * product.in_w +
                                       s * product.tap_w,
                                   1u << r | 1u << (product.taps_h + s)}
                       : TapOffset{0, ~0u};
    }
    __syncthreads();  // separates these stores from all loads of the table
  }
  const std::int64_t group_floats =
      std::int64_t{product.group_c} * product.in_h * product.in_w;
  Gather<T, kTable> gather(product, in + group * group_floats, thread, n_tile, begin);

  constexpr int kVectorsM = T::kBlockM / 4;               // of a row of weights
  constexpr int kVectors = T::kBlockK * kVectorsM;        // of a tile
  constexpr int kCopies = ceil_div(kVectors, T::kThreads);  // a thread's
  static_assert(T::kThreads % kVectorsM == 0);
  const float* a_from = packed + product.first_packed +
                        (std::int64_t{group} * product.steps + begin) * T::kBlockK * product.padded_m +
                        std::int64_t{thread / kVectorsM} * product.padded_m + m_tile * T::kBlockM +
                        thread % kVectorsM * 4;
  int next = begin;  // the step that is copied next
  const auto copy_next = [&](int stage) {
    if (next < end) {
      float* const a_tile = a_tiles + stage * T::kBlockK * T::kBlockM;
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int vector = thread + i * T::kThreads;
        if (kVectors % T::kThreads == 0 || vector < kVectors) {
          ptx::cp_async<16>(a_tile + vector * 4,
                            a_from + std::int64_t{i * (T::kThreads / kVectorsM)} * product.padded_m);
        }
      }
      a_from += std::int64_t{T::kBlockK} * product.padded_m;
      gather.copy(product, table + next * T::kBlockK, b_tiles + stage * T::kBlockK * T::kBlockN);
      ++next;
    }
    ptx::cp_async_commit_group();  // empty ones too: the count of groups is the count of steps
  };

  const T tile(threadIdx.x);
  float sums[T::kThreadM][T::kThreadN] = {};
  for (int stage = 0; stage < T::kStages - 1; ++stage) copy_next(stage);
  if constexpr (!T::kPipe) {
    int stage = 0, free_stage = T::kStages - 1;
    for (int step = begin; step < end; ++step) {
      ptx::cp_async_wait_group<T::kStages - 2>();
      // Separates the copies of this step, by all threads, from the loads below; and the loads of
      // the step before from the copies into the same stage.
      __syncthreads();
      copy_next(free_stage);
      tile.template multiply<T::kBlockM, T::kBlockN>(a_tiles + stage * T::kBlockK * T::kBlockM,
                                                     b_tiles + stage * T::kBlockK * T::kBlockN,
                                                     sums);
      free_stage = stage;
      stage = stage + 1 == T::kStages ? 0 : stage + 1;
    }
  } else {
    typename T::Operands operands[2];
    ptx::cp_async_wait_group<T::kStages - 2>();
    __syncthreads();
    int stage = 0, free_stage = T::kStages - 1;
    tile.template load<T::kBlockM, T::kBlockN>(a_tiles, b_tiles, 0, operands[0]);
    for (int step = begin; step < end; ++step) {
      const int next_stage = stage + 1 == T::kStages ? 0 : stage + 1;
#pragma unroll
      for (int k = 0; k < T::kBlockK; ++k) {
        if (k == T::kBlockK - 1) {
          ptx::cp_async_wait_group<T::kStages - 2>();
          __syncthreads();
          tile.template load<T::kBlockM, T::kBlockN>(a_tiles + next_stage * T::kBlockK * T::kBlockM, b_tiles + next_stage * T::kBlockK * T::kBlockN, 0, operands[(k + 1) % 2]);
        } else {
          tile.template load<T::kBlockM, T::kBlockN>(a_tiles + stage * T::kBlockK * T::kBlockM, b_tiles + stage * T::kBlockK * T::kBlockN, k + 1, operands[(k + 1) % 2]);
        }
        if (k == 0) copy_next(free_stage);
        T::add_products(operands[k % 2], sums);
      }
      free_stage = stage;
      stage = next_stage;
    }
  }
  ptx::cp_async_wait_group<0>();
  __syncthreads();  // separates the last loads from the stores' use of shared memory
  store.template store<T>(product, tile, sums, m_tile, n_tile, group, split, shared);
}

/// Which part of the product a block computes.
struct BlockTask {
  const GatheredProduct& product;
  int m_tile, n_tile, group, split;
};

/// One product for all blocks.
struct OneProduct {
  GatheredProduct product;
  int splits;

  __device__ BlockTask of_block(unsigned block) const {
    const int m_tile = static_cast<int>(block % static_cast<unsigned>(product.m_tiles));
    block /= static_cast<unsigned>(product.m_tiles);
    const int n_tile = static_cast<int>(block % static_cast<unsigned>(product.n_tiles));
    block /= static_cast<unsigned>(product.n_tiles);
    return {product, m_tile, n_tile, static_cast<int>(block / static_cast<unsigned>(splits)),
            static_cast<int>(block % static_cast<unsigned>(splits))};
  }
};

/// A range of steps.
struct Steps {
  int begin, end;
};

/// A thread's sums as rows of whole warps, which are written without gaps: through shared memory,
/// a row of every thread at a time. Calls body(m, n, sum) with m and n in the block's tile; m
/// and n are the same for all rows of a lane, but for the row.
template <class T, class Body>
__device__ void for_each_in_order(const T& tile, const float (&sums)[T::kThreadM][T::kThreadN],
                                  float* shared, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  float* const rows = shared + warp * T::kLanesM * T::kWarpN;  // [kLanesM][kWarpN], this warp's own
  const int warp_m = tile.m / T::kWarpM * T::kWarpM, warp_n = tile.n / T::kWarpN * T::kWarpN;
  const int lane_m = tile.m % T::kWarpM / 4, lane_n = tile.n % T::kWarpN;
#pragma unroll
  for (int i = 0; i < T::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < T::kThreadN; j += 4) {
      *reinterpret_cast<float4*>(rows + lane_m * T::kWarpN + lane_n + T::column(j)) =
          float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
    }
    __syncwarp();  // separates these stores from the loads below
#pragma unroll
    for (int row = 0; row < T::kLanesM; ++row) {
#pragma unroll
      for (int n = 0; n < T::kWarpN; n += 32) {
        body(warp_m + row * 4 + T::row(i), warp_n + n + lane, rows[row * T::kWarpN + n + lane]);
      }
    }
    __syncwarp();  // separates these loads from the next row's stores
  }
}

/// Writes whole sums to out [images][groups * group_m][rows][columns], with a bias added.
struct StoreImages {
  using Products = OneProduct;
  float* out;
  const float* bias;  ///< [groups * group_m] or null
  bool vectors;       ///< whether four neighbouring pixels of a tile can be written at once

  __device__ static Steps steps_of(const GatheredProduct& product, int) {
    return {0, product.steps};
  }

  template <class T>
  __device__ void store(const GatheredProduct& product, const T& tile,
                        const float (&sums)[T::kThreadM][T::kThreadN], int m_tile, int n_tile,
                        int group, int, float* shared) const {
    const int channels = product.groups * product.group_m;
    if (vectors) {
#pragma unroll
      for (int j = 0; j < T::kThreadN; j += 4) {
        const int pixel = n_tile * T::kBlockN + tile.n + T::column(j);
        if (pixel >= product.pixels()) continue;
        const int n = product.by_image.quotient(pixel);
        float* const to = out + std::int64_t{n} * channels * product.image_pixels() +
                          product.by_image.remainder(pixel, n);
#pragma unroll
        for (int i = 0; i < T::kThreadM; ++i) {
          const int m = m_tile * T::kBlockM + tile.m + T::row(i);
          if (m >= product.group_m) continue;
          const int channel = group * product.group_m + m;
          const float start = bias ? bias[channel] : 0.0f;
          *reinterpret_cast<float4*>(to + std::int64_t{channel} * product.image_pixels()) =
              float4{start + sums[i][j], start + sums[i][j + 1], start + sums[i][j + 2],
                     start + sums[i][j + 3]};
        }
      }
    } else {
      for_each_in_order(tile, sums, shared, [&](int m, int n, float sum) {
        m += m_tile * T::kBlockM;
        const int pixel = n_tile * T::kBlockN + n;
        if (m >= product.group_m || pixel >= product.pixels()) return;
        const int channel = group * product.group_m + m, image = product.by_image.quotient(pixel);
        out[(std::int64_t{image} * channels + channel) * product.image_pixels() +
            product.by_image.remainder(pixel, image)] = (bias ? bias[channel] : 0.0f) + sum;
      });
    }
  }
};

/// Writes the parts of split sums to parts [splits][groups][group_m][pixels, rounded up to 4].
struct StoreParts {
  using Products = OneProduct;
  float* parts;
  int splits;

  HOST_DEVICE static int pitch(const GatheredProduct& product) {
    return (product.pixels() + 3) / 4 * 4;
  }

  __device__ Steps steps_of(const GatheredProduct& product, int split) const {
    return {static_cast<int>(std::int64_t{product.steps} * split / splits),
            static_cast<int>(std::int64_t{product.steps} * (split + 1) / splits)};
  }

  template <class T>
  __device__ void store(const GatheredProduct& product, const T& tile,
                        const float (&sums)[T::kThreadM][T::kThreadN], int m_tile, int n_tile,
                        int group, int split, float*) const {
    tile.for_each_four(sums, [&](int m, int n, float4 four) {
      m += m_tile * T::kBlockM;
      n += n_tile * T::kBlockN;
      if (m >= product.group_m || n >= pitch(product)) return;
      *reinterpret_cast<float4*>(
          parts + ((std::int64_t{split} * product.groups + group) * product.group_m + m) * pitch(product) +
          n) = four;
    });
  }
};

/// Where the weights of a product come from.
struct WeightView {
  std::int64_t group_stride, m_stride, c_stride;  ///< in floats
  int first_r = 0, step_r = 1;                    ///< rows of taps
  int first_s = 0, step_s = 1;                    ///< columns of taps
  int S = 1;                                      ///< taps of a row in memory
};

/// weights to packed [groups][steps * block_k][padded_m], with zeros where there is no weight. A
/// thread takes all taps of one m and c: a warp then writes rows of 32 neighbours.
/// Grid <= ceil(groups * channels * padded_m / 256), block 256.
static __global__ void pack_weights(GatheredProduct product, WeightView view, bool tap_major,
                                    int channels, int k_rows, const float* weights, float* packed) {
  const std::int64_t count = std::int64_t{product.groups} * channels * product.padded_m;
  const int taps = product.taps_h * product.taps_w;
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * 256) {
    const int m = static_cast<int>(i % product.padded_m);
    const int c = static_cast<int>(i / product.padded_m % channels);
    const std::int64_t group = i / product.padded_m / channels;
    const bool exists = m < product.group_m && c < product.group_c;
    const std::int64_t from = group * view.group_stride + m * view.m_stride + c * view.c_stride;
    float* const to = packed + product.first_packed + group * k_rows * product.padded_m + m;
    for (int tap = 0; tap < taps; ++tap) {
      const std::int64_t row =
          tap_major ? std::int64_t{tap} * product.padded_c + c : std::int64_t{c} * taps + tap;
      if (row >= k_rows) break;
      const int r = view.first_r + tap / product.taps_w * view.step_r;
      const int s = view.first_s + tap % product.taps_w * view.step_s;
      to[row * product.padded_m] = exists ? weights[from + r * view.S + s] : 0.0f;
    }
  }
}

/// Fills in the tiles of a product.
template <class T>
GatheredProduct planned(GatheredProduct product) {
  product.m_tiles = ceil_div(product.group_m, T::kBlockM);
  product.n_tiles = ceil_div(product.pixels(), T::kBlockN);
  product.padded_m = product.m_tiles * T::kBlockM;
  product.padded_c = ceil_div(product.group_c, T::kBlockK) * T::kBlockK;
  const int taps = product.taps_h * product.taps_w;
  product.steps = takes_table(product, T::kBlockK) ? ceil_div(product.group_c * taps, T::kBlockK)
                                                   : product.padded_c / T::kBlockK * taps;
  product.by_image = FastDivision(std::max(1, product.image_pixels()));
  product.by_row = FastDivision(std::max(1, product.columns));
  return product;
}

/// Floats of the packed weights of a planned product.
template <class T>
std::int64_t packed_floats(const GatheredProduct& product) {
  return std::int64_t{product.groups} * product.steps * T::kBlockK * product.padded_m;
}

/// Packs the weights of a planned product.
template <class T>
void launch_pack(const GatheredProduct& product, const WeightView& view, const float* weights,
                 float* packed) {
  if (product.steps == 0) return;
  const int taps = product.taps_h * product.taps_w, k_rows = product.steps * T::kBlockK;
  const bool table = takes_table(product, T::kBlockK);
  const int channels = table ? ceil_div(k_rows, taps) : product.padded_c;
  const std::int64_t count = std::int64_t{product.groups} * channels * product.padded_m;
  launch(pack_weights, {dim3(blocks_for(count, 256, kMaxGridX - 1)), dim3(256)}, product, view,
         !table, channels, k_rows, weights, packed);
}

/// Launches the kernel.
template <class T, class Store>
void launch_gathered(const GatheredProduct& product, int splits, const Store& store,
                     const float* in, const float* packed) {
  const bool table = takes_table(product, T::kBlockK);
  const std::int64_t blocks =
      std::int64_t{product.m_tiles} * product.n_tiles * splits * product.groups;
  const std::size_t bytes =
      T::kFloats * sizeof(float) +
      (table ? static_cast<std::size_t>(product.steps) * T::kBlockK * sizeof(TapOffset) : 0);
  launch(table ? gathered_product<T, true, Store> : gathered_product<T, false, Store>,
         {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), bytes},
         typename Store::Products{product, splits}, store, in, packed);
}

/// The view of a forward pass's weights.
inline WeightView forward_view(const Conv2dProblem& conv) {
  const std::int64_t taps = std::int64_t{conv.R} * conv.S, filter = conv.C / conv.groups * taps;
  return {.group_stride = conv.K / conv.groups * filter, .m_stride = filter, .c_stride = taps, .S = conv.S};
}

/// y = bias + parts, in the order of the splits. Grid x: <= ceil(pixels/256), y: channels; block 256.
static __global__ void add_parts(GatheredProduct product, int splits, const float* parts,
                                 const float* bias, float* out) {
  const int pitch = StoreParts::pitch(product), channels = product.groups * product.group_m;
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < std::int64_t{channels} * pitch;
       i += std::int64_t{gridDim.x} * 256) {
    const int channel = static_cast<int>(i / pitch), pixel = static_cast<int>(i % pitch);
    if (pixel >= product.pixels()) continue;
    float sum = bias ? bias[channel] : 0.0f;
    for (int split = 0; split < splits; ++split) sum += parts[split * std::int64_t{channels} * pitch + i];
    const int image = product.by_image.quotient(pixel);
    out[(std::int64_t{image} * channels + channel) * product.image_pixels() + product.by_image.remainder(pixel, image)] = sum;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
