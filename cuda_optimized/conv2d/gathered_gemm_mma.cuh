/// @file gathered_gemm_mma.cuh
/// @brief The matrix product inside of an NHWC convolution on the tensor cores, as a building block
/// of the forward pass and of the input gradient; implicit_gemm_mma_tf32.cu explains it.
#pragma once

#include "core/conv2d_problem.hpp"
#include "core/cuda/compute_capability.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/gemm/mma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kMmaStep;
using gemm::TileOrder;

/// Divides ints from 0 to 2^31 - 1 by a multiplication and a shift (Granlund and Montgomery, 1994).
struct FastDivision {
  unsigned divisor = 1, factor = 1;  ///< n / divisor = (n * factor / 2^32 + n) >> shift
  int shift = 0;                     ///< the least with 2^shift >= divisor

  FastDivision() = default;
  /// @param by the divisor, at least 1
  explicit FastDivision(int by) : divisor(static_cast<unsigned>(by)) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    const std::uint64_t power = std::uint64_t{1} << 32;
    factor = static_cast<unsigned>(power * ((std::uint64_t{1} << shift) - divisor) / divisor + 1);
  }
  /// The quotient; `*remainder` is what is left.
  __device__ int divide(int value, int* remainder) const {
    const auto n = static_cast<unsigned>(value);
    const unsigned quotient = (__umulhi(n, factor) + n) >> shift;
    *remainder = static_cast<int>(n - quotient * divisor);
    return static_cast<int>(quotient);
  }
};

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
  std::int64_t weights_r, weights_s, weights_c, weights_f;  ///< steps along each axis
  FastDivision by_channels, by_taps_across;                 ///< by `channels`, by S
  Activation activation = Activation::none;                 ///< of the sums with their bias

  /// The pixels of all images: the rows of the product.
  std::int64_t pixels() const { return std::int64_t{N} * rows * columns; }
};

/// Products of a sum that an int can count, with a step to spare.
constexpr std::int64_t kMaxDepth = 2147483647 - 8 * kMmaStep;

/// A row of a: the first pixel of a pixel's window, which may lie in the padding.
struct alignas(16) PixelRow {
  std::int64_t source;  ///< Its offset.
  int h, w;             ///< Its coordinates.
};

/// The sizes of a kernel: a block's tile and a warp's (pixels x filters), stages of cp.async,
/// blocks that shall fit an SM, and how a tile of weights lies in shared memory.
template <int kM, int kN, int kWarpM, int kWarpN, int kStages, int kBlocksPerSm, TileOrder kOrder>
struct GatheredShape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;  ///< of block; of warp
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;     ///< of a block
  static constexpr int kBlocks = kBlocksPerSm;                          ///< that shall fit an SM
  static constexpr TileOrder kWeightsOrder = kOrder;                    ///< of a tile of weights
  /// A stage: M pixels and N filters, kMmaStep steps of k each.
  using Stages = gemm::MmaStages<TileOrder::along_k, kM, kOrder, kN, kStages>;
  /// Shared memory of a block: the stages, and of each pixel its PixelRow and output offset.
  static constexpr std::size_t kSharedBytes =
      kStages * Stages::kFloats * sizeof(float) + kM * (sizeof(PixelRow) + sizeof(std::int64_t));
};

/// Where the taps of k lie.
struct Tap {
  int h, w;             ///< in the source, from the window's first pixel
  std::int64_t source;  ///< the same as an offset, and the channel's
  std::int64_t weight;  ///< offset in the weights of filter 0
};

/// The tap and channel of step k of the sums.
__device__ inline Tap tap_at(const GatheredGemm& product, int k) {
  int c, s;
  const int r = product.by_taps_across.divide(product.by_channels.divide(k, &c), &s);
  const int h = r * product.tap.h, w = s * product.tap.w;
  return {h, w, (std::int64_t{h} * product.W + w) * product.source_channels + c,
          r * product.weights_r + s * product.weights_s + c * product.weights_c};
}

/// Asks for one stage: steps k0 ... of the pixels in `pixels` and of the filters from n0 on; zeros
/// for the padding and past the edges. Copies kBytes at a time: channels, or filters where those
/// run fastest in the weights, come in such pieces.
template <class S, int kBytes>
__device__ void copy_tiles(const GatheredGemm& product, const float* source, const float* weights,
                           const PixelRow* pixels, int n0, int k0, int depth, float* a_tile,
                           float* b_tile) {
  constexpr int kWidth = kBytes / 4, kPieces = kMmaStep / kWidth;
  // All copies of 4 bytes at once would need more registers than there are.
  [[maybe_unused]] constexpr int kUnroll = kBytes == 16 ? 8 : 2;
  const int thread = static_cast<int>(threadIdx.x);
  const int k = thread % kPieces * kWidth;
  const Tap tap = tap_at(product, k0 + k < depth ? k0 + k : 0);
  constexpr int kRows = S::kThreads / kPieces;  // at a time
#pragma unroll kUnroll
  for (int j = 0; j < S::M / kRows; ++j) {
    const int i = thread / kPieces + j * kRows;
    const PixelRow pixel = pixels[i];
    // Negative coordinates turn into huge unsigned ones, so that one comparison checks both ends.
    const bool inside = k0 + k < depth &&
                        static_cast<unsigned>(pixel.h + tap.h) < static_cast<unsigned>(product.H) &&
                        static_cast<unsigned>(pixel.w + tap.w) < static_cast<unsigned>(product.W);
    ptx::cp_async<kBytes>(a_tile + S::Stages::A::at(i, k),
                          source + (inside ? pixel.source + tap.source : 0), inside ? kBytes : 0);
  }
  if constexpr (S::kWeightsOrder == TileOrder::along_k) {
    const std::int64_t first = (n0 + thread / kPieces) * product.weights_f + tap.weight;
#pragma unroll kUnroll
    for (int j = 0; j < S::N / kRows; ++j) {
      const int n = thread / kPieces + j * kRows;
      const bool inside = k0 + k < depth && n0 + n < product.filters;
      ptx::cp_async<kBytes>(b_tile + S::Stages::B::at(n, k),
                            weights + (inside ? first + j * kRows * product.weights_f : 0),
                            inside ? kBytes : 0);
    }
  } else {
    constexpr int kPiecesB = S::N / kWidth, kRowsB = S::kThreads / kPiecesB;
    const int n = thread % kPiecesB * kWidth;
#pragma unroll kUnroll
    for (int j = 0; j < kMmaStep / kRowsB; ++j) {
      const int row = thread / kPiecesB + j * kRowsB;
      const bool inside = k0 + row < depth && n0 + n < product.filters;
      const std::int64_t at =
          inside ? (n0 + n) * product.weights_f + tap_at(product, k0 + row).weight : 0;
      ptx::cp_async<kBytes>(b_tile + S::Stages::B::at(n, row), weights + at, inside ? kBytes : 0);
    }
  }
}

/// What the rows m0 ... of a tile are. Rows past the last pixel have windows that begin outside of
/// the source, on the side to which the taps lead.
/// @param found [S::M], out
/// @param outs [S::M], out: the offset of each pixel's first output channel; -1 past the last pixel
template <class S>
__device__ void find_pixels(const GatheredGemm& product, std::int64_t m0, std::int64_t pixels,
                            int group, PixelRow* found, std::int64_t* outs) {
  for (int i = static_cast<int>(threadIdx.x); i < S::M; i += S::kThreads) {
    PixelRow pixel{0, product.tap.h < 0 ? -1 : product.H, product.tap.w < 0 ? -1 : product.W};
    std::int64_t out = -1;
    if (m0 + i < pixels) {
      const int column = static_cast<int>((m0 + i) % product.columns);
      const std::int64_t rest = (m0 + i) / product.columns;
      const int row = static_cast<int>(rest % product.rows);
      const std::int64_t n = rest / product.rows;
      pixel.h = product.first.h + row * product.stride.h;
      pixel.w = product.first.w + column * product.stride.w;
      pixel.source = ((n * product.H + pixel.h) * product.W + pixel.w) * product.source_channels +
                     std::int64_t{group} * product.channels;
      out =
          ((n * product.out_H + product.out_first.h + row * product.out_stride.h) * product.out_W +
           product.out_first.w + column * product.out_stride.w) *
              product.out_channels +
          std::int64_t{group} * product.filters;
    }
    found[i] = pixel;
    outs[i] = out;
  }
}

/// Steps of k, from `begin` up to `end`.
struct Depth {
  int begin, end;  ///< indices k of the sums
};

/// The k of those filter rows that meet the source for any of the `count` pixels from m0 on; the
/// others lie in the padding, above or below. Filters almost as large as the image have many.
__device__ inline Depth depth_of(const GatheredGemm& product, std::int64_t m0, int count) {
  const std::int64_t row = m0 / product.columns, last_row = (m0 + count - 1) / product.columns;
  const std::int64_t image_row = row % product.rows;
  const bool one_image = image_row + (last_row - row) < product.rows;
  const auto source_row = [&](std::int64_t of) { return product.first.h + of * product.stride.h; };
  const std::int64_t top = source_row(one_image ? image_row : 0);
  const std::int64_t bottom =
      source_row(one_image ? image_row + (last_row - row) : product.rows - 1);
  const int step = product.tap.h;  // never 0; r * step must lie in [-bottom, H - 1 - top]
  const std::int64_t r_begin =
      step > 0 ? -floor_div(bottom, step) : -floor_div(product.H - 1 - top, -step);
  const std::int64_t r_end =
      1 + (step > 0 ? floor_div(product.H - 1 - top, step) : floor_div(bottom, -step));
  const int row_depth = product.S * product.channels;
  const int begin = static_cast<int>(r_begin < 0 ? 0 : r_begin < product.R ? r_begin : product.R);
  const int end = static_cast<int>(r_end < begin ? begin : r_end < product.R ? r_end : product.R);
  return {begin * row_depth, end * row_depth};
}

/// Grid (tiles, <= groups), tiles of filters fastest. Block (S::kThreads). bias [groups * filters]
/// or null.
template <class S, int kBytes>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    gathered_gemm(GatheredGemm product, int tiles_n, std::int64_t pixel_count, const float* source,
                  const float* weights, const float* bias, float* out) {
  float* const tiles = dynamic_shared<float>();
  auto* const pixels =
      reinterpret_cast<PixelRow*>(tiles + S::Stages::kStages * S::Stages::kFloats);  // [S::M]
  auto* const outs = reinterpret_cast<std::int64_t*>(pixels + S::M);                 // [S::M]
  const std::int64_t m0 = std::int64_t{blockIdx.x / static_cast<unsigned>(tiles_n)} * S::M;
  const int n0 = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles_n)) * S::N;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  const int rows = static_cast<int>(pixel_count - m0 < S::M ? pixel_count - m0 : S::M);
  const Depth depth = depth_of(product, m0, rows);
  const bool in_pairs = product.out_channels % 2 == 0 && product.filters % 2 == 0 &&
                        reinterpret_cast<std::uintptr_t>(out) % 8 == 0;

  for (int group = static_cast<int>(blockIdx.y); group < product.groups;
       group += static_cast<int>(gridDim.y)) {
    const float* const group_weights =
        weights + group * product.weights_group + product.weights_first;
    find_pixels<S>(product, m0, pixel_count, group, pixels, outs);
    __syncthreads();  // separates these stores from the loads in copy_tiles()

    gemm::MmaSums<S::WarpM / 16, S::WarpN / 8> sums;
    S::Stages::multiply(
        ceil_div(depth.end - depth.begin, kMmaStep), tiles, warp_m, warp_n,
        [&](int step, float* a_tile, float* b_tile) {
          copy_tiles<S, kBytes>(product, source, group_weights, pixels, n0,
                                depth.begin + step * kMmaStep, depth.end, a_tile, b_tile);
        },
        &sums);

    sums.for_each_pair([&](int row, int column, float first, float second) {
      const std::int64_t at = outs[warp_m + row];
      const int f = n0 + warp_n + column;
      if (at < 0 || f >= product.filters) return;
      const bool both = f + 1 < product.filters;
      if (bias != nullptr) {
        first += bias[group * product.filters + f];
        if (both) second += bias[group * product.filters + f + 1];
      }
      first = activated(product.activation, first);
      second = activated(product.activation, second);
      if (in_pairs) {
        *reinterpret_cast<float2*>(out + at + f) = {first, second};
      } else {
        out[at + f] = first;
        if (both) out[at + f + 1] = second;
      }
    });
    __syncthreads();  // separates the last loads from the next group's stores
  }
}

/// Computes the product with the kernel of shape S.
/// @param in_fours copies 16 bytes at a time, else 4
/// @param bias [groups * filters], or null
template <class S>
void launch_shape(const GatheredGemm& product, bool in_fours, const float* source,
                  const float* weights, const float* bias, float* out) {
  const int tiles_n = ceil_div(product.filters, S::N);
  const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), S::M) * tiles_n;
  const dim3 grid(blocks_for(tiles, 1), blocks_for(product.groups, 1, kMaxGridYZ));
  launch(in_fours ? gathered_gemm<S, 16> : gathered_gemm<S, 4>,
         {grid, S::kThreads, S::kSharedBytes}, product, tiles_n, product.pixels(), source, weights,
         bias, out);
}

/// The value of an attribute of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

/// The kernels for one order of weights.
template <TileOrder kOrder>
struct GatheredShapes {
  using Large = GatheredShape<128, 128, 64, 64, 3, 2, kOrder>;  ///< For many pixels and filters.
  using Narrow = GatheredShape<128, 64, 64, 32, 3, 3, kOrder>;  ///< For at most 64 filters.
  using Small = GatheredShape<64, 64, 32, 32, 3, 3, kOrder>;    ///< For few pixels.
  using Thin = GatheredShape<128, 16, 32, 16, 3, 3, kOrder>;    ///< For at most 16 filters.

  /// Whether tiles of this shape keep all multiprocessors busy, and fit one.
  template <class S>
  static bool suits(const GatheredGemm& product) {
    const std::int64_t tiles = ceil_div<std::int64_t>(product.pixels(), S::M) *
                               ceil_div(product.filters, S::N) * product.groups;
    return tiles >= device_attribute(cudaDevAttrMultiProcessorCount) &&
           S::kSharedBytes <=
               static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  }
  /// Whether one tile of shape Thin holds all filters of a group.
  static bool takes_thin(const GatheredGemm& product) { return product.filters <= Thin::N; }
  /// Whether Large suits, and a tile of shape Narrow would not hold all filters of a group.
  static bool takes_large(const GatheredGemm& product) {
    return product.filters > Narrow::N && suits<Large>(product);
  }

  /// The pixels and filters of a block.
  static OutputTile tile(const GatheredGemm& product) {
    if (takes_thin(product)) return {Thin::M, Thin::N};
    if (takes_large(product)) return {Large::M, Large::N};
    if (suits<Narrow>(product)) return {Narrow::M, Narrow::N};
    return {Small::M, Small::N};
  }

  /// Computes the product.
  /// @param in_fours what is copied comes in aligned pieces of four floats
  static void launch(const GatheredGemm& product, bool in_fours, const float* source,
                     const float* weights, const float* bias, float* out) {
    const auto shape = takes_thin(product)      ? launch_shape<Thin>
                       : takes_large(product)   ? launch_shape<Large>
                       : suits<Narrow>(product) ? launch_shape<Narrow>
                                                : launch_shape<Small>;
    shape(product, in_fours, source, weights, bias, out);
  }
};

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
