/// @file gathered_gemm_mma.cuh
/// @brief The matrix product inside of an NHWC convolution on the tensor cores, as a building block
/// of the forward pass and of the input gradient; implicit_gemm_mma_tf32.cu explains it.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/fast_division.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/conv2d/sum_splits.cuh"
#include "cuda_optimized/gemm/mma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kMmaStep;
using gemm::TileOrder;

/// out[pixel][f] = bias[f] + sum over taps (r, s) and channels c of
///     source[row(pixel) + r * tap.h][column(pixel) + s * tap.w][c] * weight(r, s, c, f)
/// for pixels of a grid in each image, and for each group, activated. The sums' index k runs over
/// r, s and c, c fastest.
struct GatheredGemm {
  int N;                          ///< images
  int rows, columns;              ///< pixels of an image
  Step first, stride;             ///< source row: first.h + row of the pixel * stride.h
  int H, W;                       ///< of the source; zeros around it
  int channels, source_channels;  ///< of a group, of all groups
  int R, S;                       ///< taps
  Step tap;                       ///< from a tap to the next, in the source; may be negative
  int filters, out_channels;      ///< of a group, of all groups
  int out_H, out_W;               ///< of the output
  Step out_first, out_stride;     ///< output row: out_first.h + row of the pixel * out_stride.h
  int groups;                     ///< Filter f of group g is output channel g * filters + f.
  std::int64_t weights_group;     ///< from a group's first weight to the next one's
  std::int64_t weights_first;     ///< of a group: that of tap (0, 0), channel 0, filter 0
  std::int64_t weights_r, weights_s, weights_f;  ///< steps along each axis; channels side by side
  FastDivision by_channels, by_taps_across;      ///< by `channels`, by S
  FastDivision by_columns, by_rows;              ///< by `columns`, by `rows`
  Activation activation = Activation::none;      ///< of the sums with their bias

  /// The pixels of all images: the rows of the product.
  std::int64_t pixels() const { return std::int64_t{N} * rows * columns; }
  /// Whether FourAtATime can take it: a row's taps fit 31 bits, and offsets from the first image of
  /// a tile of `tile_pixels`, as well as those in a group's weights, fit an int.
  bool fits_ints(int tile_pixels) const;
};

inline bool GatheredGemm::fits_ints(int tile_pixels) const {
  const std::int64_t images =
      std::min<std::int64_t>(N, 2 + tile_pixels / (std::int64_t{rows} * columns));
  const auto reach = [](std::int64_t from, std::int64_t pixels, int step, int size, int taps,
                        int tap_step) {
    return std::abs(from) + pixels * step + size + std::int64_t{taps} * std::abs(tap_step);
  };
  // In double, because products of the sizes of an absurd padding may not even fit 64 bits.
  const auto lines = static_cast<double>(images * H + reach(first.h, rows, stride.h, H, R, tap.h));
  const auto across = static_cast<double>(reach(first.w, columns, stride.w, W, S, tap.w));
  const auto weights = static_cast<double>(filters + tile_pixels) * static_cast<double>(weights_f) +
                       static_cast<double>(R) * static_cast<double>(weights_r) +
                       static_cast<double>(S) * static_cast<double>(weights_s);
  constexpr double kMaxInt = 2147483647;
  return R + S <= 31 && (lines + 1) * (across + W) * source_channels < kMaxInt && weights < kMaxInt;
}

/// Products of a sum that an int can count, with a step to spare.
constexpr std::int64_t kMaxDepth = 2147483647 - 8 * kMmaStep;

/// The sizes of a kernel: a block's tile and a warp's (pixels x filters), stages of cp.async, and
/// blocks that an SM must hold at once.
template <int kM, int kN, int kWarpM, int kWarpN, int kStages, int kBlocksPerSm>
struct GatheredShape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;  ///< of block; of warp
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;     ///< of a block
  static constexpr int kBlocks = kBlocksPerSm;                          ///< that an SM must hold
  /// A stage: M pixels and N filters, kMmaStep steps of k each.
  using Stages = gemm::MmaStages<TileOrder::along_k, kM, TileOrder::along_k, kN, kStages>;
  /// Bytes of a row of the table of windows.
  static constexpr std::size_t kRowBytes = 16;
  /// Shared memory of a block: the stages, and of each pixel its window and output offset.
  static constexpr std::size_t kSharedBytes =
      kStages * Stages::kFloats * sizeof(float) + kM * (kRowBytes + sizeof(std::int64_t));
};

/// Where a row of the product lies among the pixels.
struct Place {
  std::int64_t n;   ///< image
  int row, column;  ///< pixel
};

/// The place of pixel number `index`. The fast divisions take what fits an int.
__device__ inline Place place_of(const GatheredGemm& product, std::int64_t index) {
  if (index <= 2147483647) {
    const auto pixel = static_cast<int>(index);
    const int line = product.by_columns.quotient(pixel), n = product.by_rows.quotient(line);
    return {n, product.by_rows.remainder(line, n), product.by_columns.remainder(pixel, line)};
  }
  const std::int64_t line = index / product.columns, n = line / product.rows;
  return {n, static_cast<int>(line - n * product.rows),
          static_cast<int>(index - line * product.columns)};
}

/// A pixel of the output, a row of the product.
struct Pixel {
  std::int64_t n;    ///< its image
  int h, w;          ///< where its window begins in the source: it may be in the padding
  std::int64_t out;  ///< offset of its first output channel
};

/// Pixel number `index`, less than product.pixels().
__device__ inline Pixel pixel_at(const GatheredGemm& product, std::int64_t index) {
  const Place at = place_of(product, index);
  const int out_row = product.out_first.h + at.row * product.out_stride.h;
  const int out_column = product.out_first.w + at.column * product.out_stride.w;
  return {at.n, product.first.h + at.row * product.stride.h,
          product.first.w + at.column * product.stride.w,
          ((at.n * product.out_H + out_row) * product.out_W + out_column) * product.out_channels};
}

/// What a step k of the sums stands for.
struct Tap {
  int r, s, c;  ///< Row and column in the filter; channel of the group.
};

/// The tap and channel of step k.
__device__ inline Tap tap_at(const GatheredGemm& product, int k) {
  const int tap = product.by_channels.quotient(k), r = product.by_taps_across.quotient(tap);
  return {r, product.by_taps_across.remainder(tap, r), product.by_channels.remainder(k, tap)};
}

/// The address that lane 0 has. All lanes have it; but the compiler does not know what it is made
/// of, so that it adds an int to it in one instruction, and not in four to its parts.
__device__ inline const float* kept_whole(const float* address) {
  return reinterpret_cast<const float*>(
      __shfl_sync(0xFFFFFFFF, reinterpret_cast<std::uintptr_t>(address), 0));
}

/// Where a block's tile lies.
struct GatheredTile {
  std::int64_t m0, pixels;  ///< its first pixel; the end of all
  int n0, group;            ///< its first filter, in this group
  int end;                  ///< of the steps of k
};

/// Copies tiles 16 bytes at a time: channels come in fours, and product.fits_ints().
///
/// A thread copies the same 4 steps of k of every kRows-th pixel and filter. All that depends on
/// the pixel is found once, before the first stage, and kept in two registers a pixel: where its
/// window begins, from the tile's first image on, and a bit for each row and each column of taps
/// that lies inside of the source. In each stage, a thread decodes its k once; then a copy is a
/// test of two bits, an addition, and cp.async itself.
template <class S>
class FourAtATime {
 public:
  /// All threads of the block take part, and meet at a barrier.
  /// @param table [S::M] rows of S::kRowBytes in shared memory
  __device__ FourAtATime(const GatheredGemm& product, const GatheredTile& tile, const float* source,
                         const float* weights, void* table)
      : product_(product), end_(tile.end) {
    auto* const rows = static_cast<Row*>(table);
    const std::int64_t image = place_of(product, tile.m0).n;
    for (int i = static_cast<int>(threadIdx.x); i < S::M; i += S::kThreads) {
      Row row{0, 0};  // past the last pixel, every tap is outside
      if (tile.m0 + i < tile.pixels) {
        const Pixel pixel = pixel_at(product, tile.m0 + i);
        row.source =
            ((static_cast<int>(pixel.n - image) * product.H + pixel.h) * product.W + pixel.w) *
            product.source_channels;
        for (int r = 0; r < product.R; ++r) {
          const auto h = static_cast<unsigned>(pixel.h + r * product.tap.h);
          row.inside |= static_cast<unsigned>(h < static_cast<unsigned>(product.H)) << r;
        }
        for (int s = 0; s < product.S; ++s) {
          const auto w = static_cast<unsigned>(pixel.w + s * product.tap.w);
          row.inside |= static_cast<unsigned>(w < static_cast<unsigned>(product.W))
                        << (product.R + s);
        }
      }
      rows[i] = row;
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int j = 0; j < kRowsA; ++j) rows_[j] = rows[first_row() + j * kRows];
    source_ = kept_whole(source + image * product.H * product.W * product.source_channels +
                         std::int64_t{tile.group} * product.channels);
    weights_ = kept_whole(weights + tile.group * product.weights_group + product.weights_first);
    filter_ = static_cast<int>((tile.n0 + first_row()) * product.weights_f);
    filters_ = product.filters - tile.n0 - first_row();
  }

  /// Asks for steps k0 ... of the tile's pixels and filters; zeros for the padding and past the
  /// edges.
  __device__ void operator()(int k0, float* a_tile, float* b_tile) const {
    const int k = static_cast<int>(threadIdx.x) % kPieces * 4;
    const bool any = k0 + k < end_;
    const Tap tap = tap_at(product_, any ? k0 + k : 0);
    const int shift =
        (tap.r * product_.tap.h * product_.W + tap.s * product_.tap.w) * product_.source_channels +
        tap.c;
    // Without steps, a bit that no row has.
    const unsigned needed = any ? 1u << tap.r | 1u << (product_.R + tap.s) : 1u << 31;
    float* const a = a_tile + S::Stages::A::at(first_row(), k);
#pragma unroll
    for (int j = 0; j < kRowsA; ++j) {
      const bool inside = (needed & ~rows_[j].inside) == 0;
      ptx::cp_async<16>(a + j * kRows * kMmaStep, source_ + (inside ? rows_[j].source + shift : 0),
                        inside ? 16 : 0);
    }
    const int filters = any ? filters_ : 0;
    const int weight =
        filter_ + static_cast<int>(tap.r * product_.weights_r + tap.s * product_.weights_s + tap.c);
    const int next = kRows * static_cast<int>(product_.weights_f);
    float* const b = b_tile + S::Stages::B::at(first_row(), k);
#pragma unroll
    for (int j = 0; j < kRowsB; ++j) {
      const bool inside = j * kRows < filters;
      ptx::cp_async<16>(b + j * kRows * kMmaStep, weights_ + (inside ? weight + j * next : 0),
                        inside ? 16 : 0);
    }
  }

 private:
  struct Row {
    int source;       ///< offset where its window begins
    unsigned inside;  ///< bit r: row r of taps lies in the source; bit R + s: column s
  };
  static constexpr int kPieces = kMmaStep / 4;                        ///< copies of a row
  static constexpr int kRows = S::kThreads / kPieces;                 ///< rows at a time
  static constexpr int kRowsA = S::M / kRows, kRowsB = S::N / kRows;  ///< rows of a thread
  static_assert(kRows % 8 == 0, "the permutation of MmaTile must repeat from row to row");

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kPieces; }

  const GatheredGemm& product_;
  int end_, filter_, filters_;
  const float *source_, *weights_;
  Row rows_[kRowsA];
};

/// Copies tiles a float at a time: takes every problem, and finds most things anew in each stage.
template <class S>
class OneAtATime {
 public:
  /// All threads of the block take part, and meet at a barrier.
  /// @param table [S::M] rows of S::kRowBytes in shared memory
  __device__ OneAtATime(const GatheredGemm& product, const GatheredTile& tile, const float* source,
                        const float* weights, void* table)
      : product_(product), tile_(tile), rows_(static_cast<Row*>(table)), source_(source),
        weights_(weights + tile.group * product.weights_group + product.weights_first) {
    for (int i = static_cast<int>(threadIdx.x); i < S::M; i += S::kThreads) {
      // Past the last pixel: outside of the source, on the side to which the taps lead.
      Row row{0, product.tap.h < 0 ? -1 : product.H, product.tap.w < 0 ? -1 : product.W};
      if (tile.m0 + i < tile.pixels) {
        const Pixel pixel = pixel_at(product, tile.m0 + i);
        row = {((pixel.n * product.H + pixel.h) * product.W + pixel.w) * product.source_channels +
                   std::int64_t{tile.group} * product.channels,
               pixel.h, pixel.w};
      }
      rows_[i] = row;
    }
    __syncthreads();  // separates these stores from the loads of other threads
  }

  /// Asks for steps k0 ... of the tile's pixels and filters; zeros for the padding and past the
  /// edges.
  __device__ void operator()(int k0, float* a_tile, float* b_tile) const {
    const int k = gemm::lane_of_warp(), warp = static_cast<int>(threadIdx.x) / 32;
    const bool any = k0 + k < tile_.end;
    const Tap tap = tap_at(product_, any ? k0 + k : 0);
    const int h = tap.r * product_.tap.h, w = tap.s * product_.tap.w;
    const std::int64_t shift =
        (std::int64_t{h} * product_.W + w) * product_.source_channels + tap.c;
#pragma unroll 2
    for (int i = warp; i < S::M; i += S::kThreads / 32) {
      const Row row = rows_[i];
      // Negative coordinates turn into huge unsigned ones, so that one comparison checks both ends.
      const bool inside = any &&
                          static_cast<unsigned>(row.h + h) < static_cast<unsigned>(product_.H) &&
                          static_cast<unsigned>(row.w + w) < static_cast<unsigned>(product_.W);
      ptx::cp_async<4>(a_tile + S::Stages::A::at(i, k), source_ + (inside ? row.source + shift : 0),
                       inside ? 4 : 0);
    }
    const std::int64_t weight = tap.r * product_.weights_r + tap.s * product_.weights_s + tap.c;
#pragma unroll 2
    for (int n = warp; n < S::N; n += S::kThreads / 32) {
      const bool inside = any && tile_.n0 + n < product_.filters;
      ptx::cp_async<4>(b_tile + S::Stages::B::at(n, k),
                       weights_ + (inside ? weight + (tile_.n0 + n) * product_.weights_f : 0),
                       inside ? 4 : 0);
    }
  }

 private:
  /// The first pixel of a window, which may lie in the padding.
  struct alignas(16) Row {
    std::int64_t source;  ///< Its offset.
    int h, w;             ///< Its coordinates.
  };

  const GatheredGemm& product_;
  GatheredTile tile_;
  Row* rows_;
  const float *source_, *weights_;
};

/// Steps of k, from `begin` up to `end`.
struct Depth {
  int begin, end;  ///< indices k of the sums
};

/// The k of those filter rows that meet the source for any of the `count` pixels from m0 on; the
/// others lie in the padding, above or below. Filters almost as large as the image have many.
__device__ inline Depth depth_of(const GatheredGemm& product, std::int64_t m0, int count) {
  const int row_depth = product.S * product.channels;
  const Place from = place_of(product, m0), to = place_of(product, m0 + count - 1);
  const auto source_row = [&](int of) {
    return product.first.h + std::int64_t{of} * product.stride.h;
  };
  const std::int64_t top = source_row(from.n == to.n ? from.row : 0);
  const std::int64_t bottom = source_row(from.n == to.n ? to.row : product.rows - 1);
  const int step = product.tap.h;  // never 0; r * step must lie in [-bottom, H - 1 - top]
  const std::int64_t reach = std::int64_t{product.R - 1} * step;
  if (top >= 0 && top + reach >= 0 && bottom < product.H && bottom + reach < product.H) {
    return {0, product.R * row_depth};  // no division, which takes some hundred instructions
  }
  const std::int64_t r_begin =
      step > 0 ? -floor_div(bottom, step) : -floor_div(product.H - 1 - top, -step);
  const std::int64_t r_end =
      1 + (step > 0 ? floor_div(product.H - 1 - top, step) : floor_div(bottom, -step));
  const int begin = static_cast<int>(r_begin < 0 ? 0 : r_begin < product.R ? r_begin : product.R);
  const int end = static_cast<int>(r_end < begin ? begin : r_end < product.R ? r_end : product.R);
  return {begin * row_depth, end * row_depth};
}

/// The share of one of several splits of the steps, in whole stages.
__device__ inline Depth share_of(Depth depth, int split, int splits) {
  const int share = ceil_div(ceil_div(depth.end - depth.begin, kMmaStep), splits) * kMmaStep;
  const int begin = min(depth.begin + split * share, depth.end);
  return {begin, min(begin + share, depth.end)};
}

/// Grid (tiles, <= groups, splits), tiles of filters fastest. Block (S::kThreads). A split sums up
/// its share of the steps and writes it to out + split * split_size. bias [groups * filters] or
/// null. The weights are rounded to TF32.
template <class S, class Copy>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    gathered_gemm(GatheredGemm product, int tiles_n, std::int64_t pixel_count,
                  std::int64_t split_size, const float* source, const float* weights,
                  const float* bias, float* out) {
  float* const tiles = dynamic_shared<float>();
  float* const table = tiles + S::Stages::kStages * S::Stages::kFloats;
  auto* const outs = reinterpret_cast<std::int64_t*>(table + S::M * S::kRowBytes / 4);  // [S::M]
  const std::int64_t m0 = std::int64_t{blockIdx.x / static_cast<unsigned>(tiles_n)} * S::M;
  const int n0 = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles_n)) * S::N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  const int rows = static_cast<int>(pixel_count - m0 < S::M ? pixel_count - m0 : S::M);
  const Depth depth = share_of(depth_of(product, m0, rows), static_cast<int>(blockIdx.z),
                               static_cast<int>(gridDim.z));
  out += blockIdx.z * split_size;
  const bool in_pairs = product.out_channels % 2 == 0 && product.filters % 2 == 0 &&
                        reinterpret_cast<std::uintptr_t>(out) % 8 == 0;

  // The constructor of Copy has the barrier between these stores and the loads below.
  for (int i = static_cast<int>(threadIdx.x); i < S::M; i += S::kThreads) {
    outs[i] = i < rows ? pixel_at(product, m0 + i).out : -1;
  }
  for (int group = static_cast<int>(blockIdx.y); group < product.groups;
       group += static_cast<int>(gridDim.y)) {
    const Copy copy(product, {m0, pixel_count, n0, group, depth.end}, source, weights, table);
    gemm::MmaSums<S::WarpM / 16, S::WarpN / 8, true, false> sums;
    S::Stages::multiply_ahead(
        ceil_div(depth.end - depth.begin, kMmaStep), tiles, warp_m, warp_n,
        [&](int step, float* a_tile, float* b_tile) {
          copy(depth.begin + step * kMmaStep, a_tile, b_tile);
        },
        &sums);

    sums.for_each_pair([&](int row, int column, float first, float second) {
      const std::int64_t at = outs[warp_m + row];
      const int f = n0 + warp_n + column;
      if (at < 0 || f >= product.filters) return;
      const int channel = group * product.filters + f;
      const bool both = f + 1 < product.filters;
      if (bias != nullptr) {
        first += bias[channel];
        if (both) second += bias[channel + 1];
      }
      first = activated(product.activation, first);
      second = activated(product.activation, second);
      if (in_pairs) {
        *reinterpret_cast<float2*>(out + at + channel) = {first, second};
      } else {
        out[at + channel] = first;
        if (both) out[at + channel + 1] = second;
      }
    });
  }
}

using LargeGathered = GatheredShape<128, 256, 64, 64, 4, 1>;   ///< For many pixels and filters.
using MediumGathered = GatheredShape<128, 128, 64, 64, 3, 2>;  ///< For at most 128 filters.
using NarrowGathered = GatheredShape<128, 64, 64, 32, 3, 3>;   ///< For at most 64 filters.
using SmallGathered = GatheredShape<64, 64, 32, 32, 3, 3>;     ///< For few pixels.
using ThinGathered = GatheredShape<128, 16, 32, 16, 3, 3>;     ///< For at most 16 filters.

/// Computes the product with the kernel of shape S.
/// @param in_fours source and weights come in aligned pieces of four floats
/// @param bias [groups * filters], or null
/// @param out [splits][split_size]
template <class S>
void launch_shape(const GatheredGemm& product, bool in_fours, int splits, std::int64_t split_size,
                  const float* source, const float* weights, const float* bias, float* out) {
  const int tiles_n = ceil_div(product.filters, S::N);
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), S::M) * tiles_n;
  const dim3 grid(blocks_for(tiles, 1), blocks_for(product.groups, 1, kMaxGridYZ),
                  static_cast<unsigned>(splits));
  launch(in_fours && product.fits_ints(S::M) ? gathered_gemm<S, FourAtATime<S>>
                                             : gathered_gemm<S, OneAtATime<S>>,
         {grid, S::kThreads, S::kSharedBytes}, product, tiles_n, product.pixels(), split_size,
         source, weights, bias, out);
}

/// How a product is computed.
struct GatheredPlan {
  decltype(&launch_shape<SmallGathered>) launch;  ///< the shape
  int pixels, filters;                            ///< of a tile
  int splits;                                     ///< parts of each sum
  double seconds;                                 ///< estimated
};

/// What the model of plan_gathered() knows of a GPU: numbers fitted to an H200. Another GPU has
/// others, but the choice depends on their ratios only.
struct GatheredModel {
  static constexpr double kSmProducts = 110e12 / 132;  ///< a second: a busy SM, large tiles
  static constexpr double kBytes = 3.5e12;  ///< a second, written or read, through the L2
  static constexpr double kBlock = 3e-6;    ///< before and after the stages of a block
  static constexpr double kLaunch = 2e-6;   ///< of the kernel that adds the parts
};

/// The best plan with tiles of shape S, by the model.
/// @param most_splits as many parts at most
/// @param efficiency a busy SM's products, compared with the large tiles
template <class S>
GatheredPlan plan_shape(const GatheredGemm& product, int most_splits, double efficiency) {
  using Model = GatheredModel;
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), S::M) *
                             ceil_div(product.filters, S::N) * product.groups;
  const int steps = ceil_div(product.R * product.S * product.channels, kMmaStep);
  const int sms = multiprocessors();
  GatheredPlan best{launch_shape<S>, S::M, S::N, 1, 1e300};
  for (int splits = 1; splits <= std::max(1, std::min(most_splits, steps)); ++splits) {
    // Blocks of the busiest SM. When fewer are left than fit at a time, they go a little faster;
    // when several fit, one stores its sums while others multiply.
    const std::int64_t blocks = ceil_div<std::int64_t>(tiles * splits, sms);
    const double rounds = static_cast<double>(blocks / S::kBlocks) +
                          std::pow(static_cast<double>(blocks % S::kBlocks) / S::kBlocks, 0.8);
    const double step = static_cast<double>(S::M * S::N * kMmaStep * S::kBlocks) /
                        (Model::kSmProducts * efficiency);
    const double ends = Model::kBlock * (0.5 + 0.5 / S::kBlocks);
    double seconds = rounds * (ceil_div(steps, splits) * step + ends);
    if (splits > 1) {
      const double sums = static_cast<double>(product.pixels()) * product.out_channels;
      seconds += (2.0 * splits + 1) * sums * sizeof(float) / Model::kBytes + Model::kLaunch;
    }
    if (seconds < best.seconds) best = {launch_shape<S>, S::M, S::N, splits, seconds};
  }
  return best;
}

/// The best plan, by a model of the time.
/// @param may_split whether several blocks may share the sums of a tile
inline GatheredPlan plan_gathered(const GatheredGemm& product, bool may_split) {
  const int most_splits = may_split ? 32 : 1;
  if (product.filters <= ThinGathered::N) return plan_shape<ThinGathered>(product, most_splits, 1);
  const std::size_t shared = max_shared_bytes();
  GatheredPlan best = plan_shape<SmallGathered>(product, most_splits, 0.6);
  const auto consider = [&]<class S>(S, double efficiency) {
    if (S::kSharedBytes > shared) return;
    const GatheredPlan plan = plan_shape<S>(product, most_splits, efficiency);
    if (plan.seconds < best.seconds) best = plan;
  };
  consider(NarrowGathered{}, 0.7);
  consider(MediumGathered{}, 0.95);
  consider(LargeGathered{}, 1);
  return best;
}

/// Whether channels are copied in fours, if the source begins at a multiple of 16 bytes.
inline bool channels_in_fours(const GatheredGemm& product) { return product.channels % 4 == 0; }

/// For a rung's choice.
inline std::string in_words(const GatheredGemm& product, const GatheredPlan& plan) {
  return text(
      plan.pixels, " x ", plan.filters, ", ", how_many(plan.splits, "part"),
      channels_in_fours(product) && product.fits_ints(plan.pixels) ? ", channels in fours" : "");
}

/// Computes the product as planned.
/// @param in_fours source comes in aligned pieces of four floats, and weights too
/// @param weights rounded to TF32
/// @param parts [plan.splits] outputs, if there are several splits
/// @param count elements of the output, [...][out_channels]; with splits, the product writes all
inline void launch_gathered(const GatheredGemm& product, const GatheredPlan& plan, bool in_fours,
                            const float* source, const float* weights, const float* bias,
                            float* parts, std::int64_t count, float* out) {
  if (plan.splits == 1) {
    plan.launch(product, in_fours, 1, 0, source, weights, bias, out);
    return;
  }
  GatheredGemm partial = product;
  partial.activation = Activation::none;  // of a part, it would not add up
  plan.launch(partial, in_fours, plan.splits, count, source, weights, nullptr, parts);
  launch_sum_splits(parts, plan.splits, count, bias, 1, product.out_channels, product.activation,
                    out);
}

/// Why the kernels cannot take a problem whose sums have `products` products.
inline Declined why_not_gathered(const Conv2dProblem& conv, std::int64_t products) {
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (compute_capability() < 80) {
    return "tensor cores take TF32 from compute capability 8.0 on, and this device has less";
  }
  if (products > kMaxDepth) return "sums of 2^31 products and more";
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
