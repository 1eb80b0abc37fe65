/// @file wgmma_windows.cuh
/// @brief Sums over windows as a matrix product with wgmma: the forward pass and, class by class,
/// the input gradient. cuda_optimized/conv2d/implicit_gemm_wgmma_tf32.cu explains it.
#pragma once

#include <cmath>

#include "cuda_optimized/conv2d/sum_splits.cuh"
#include "cuda_optimized/gemm/repack.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

using gemm::kWgmmaStep;
using gemm::WgmmaItem;
using gemm::WgmmaWork;

using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Two blocks an SM, for small problems.
using Tall = gemm::WgmmaShape<256, 64, 5, 1>;     ///< Many pixels, few filters.
using Medium = gemm::WgmmaShape<128, 128, 6, 1>;  ///< Where Large would have too few tiles.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.

/// out[n, p, q, k] = bias[k] + sum over r, s, c of
///   source[n, first + stride * p + dilation * r, ... q ... s, group(k) * group_c + c] *
///   weights[k][r][s][c]
/// for p < P, q < Q, with zeros outside of the source. The pixel (p, q) of out lies at (out_first +
/// out_stride * p, ...) of an image of out_H x out_W. Sums are stored activated.
struct Windows {
  Layout layout;      ///< of source and out
  int N,              ///< images
      P,              ///< rows of windows in an image
      Q,              ///< windows in a row
      K,              ///< filters, the channels of out
      groups;         ///< of channels; they divide K
  int H, W, group_c;  ///< of source; it has groups * group_c channels
  int R, S;           ///< of weights, which are [K][R][S][group_c] (nchw: [K][group_c][R][S])
  Step first,         ///< where the window (0, 0) begins in the source; negative in the padding
      stride,         ///< pixels of the source from one window to the next
      dilation;       ///< pixels of the source from one tap to the next
  int out_H, out_W;   ///< of the images of out, in pixels
  Step out_first,     ///< where the pixel (0, 0) lies in an image of out
      out_stride;     ///< pixels of that image from one (p, q) to the next
  Activation activation = Activation::none;  ///< of the sums with their bias
  TileMap map = TileMap::row_major;  ///< of tiles; row_major stands for the kernel's own order

  /// Of all images: the rows of the product.
  HOST_DEVICE std::int64_t pixels() const { return std::int64_t{N} * P * Q; }
  /// Filters of a group.
  HOST_DEVICE int group_k() const { return K / groups; }
  /// Steps of kWgmmaStep channels, the last perhaps partial, for each tap.
  HOST_DEVICE int chunks() const { return ceil_div(group_c, kWgmmaStep); }
  /// From one channel of out to the next.
  HOST_DEVICE std::int64_t plane() const {
    return layout == Layout::nchw ? std::int64_t{out_H} * out_W : 1;
  }
  /// Floats of out, including pixels that these windows do not write.
  std::int64_t out_size() const { return std::int64_t{N} * out_H * out_W * K; }
};

/// Which filters belong to a tile. Tiles do not cross groups.
template <class Shape>
struct FilterTiles {
  int group_k, group_tiles;  ///< filters of a group, and tiles of them

  /// Of a group's filters, Shape::N in a tile.
  explicit FilterTiles(const Windows& windows)
      : group_k(windows.group_k()), group_tiles(ceil_div(windows.group_k(), Shape::N)) {}
  /// The group of a tile's filters; tiles are counted through all groups.
  HOST_DEVICE int group(int tile) const { return tile / group_tiles; }
  /// A tile's first filter, of all K.
  HOST_DEVICE int first(int tile) const {
    return group(tile) * group_k + tile % group_tiles * Shape::N;
  }
};

/// The place in the sum: a tap of the filter, and 32 channels of it.
struct Tap {
  int r,  ///< row of the filter
      s,  ///< column of the filter
      c;  ///< the first of the channels, within the group
};
/// The tap of a step: channels change fastest, then s, then r.
__device__ inline Tap tap_at(const Windows& windows, int step) {
  const int place = step / windows.chunks();
  return {place / windows.S, place % windows.S, step % windows.chunks() * kWgmmaStep};
}
/// To the tap of the next step, without divisions.
__device__ inline void advance_tap(const Windows& windows, Tap& tap) {
  if ((tap.c += kWgmmaStep) < windows.group_c) return;
  tap.c = 0;
  if (++tap.s < windows.S) return;
  tap.s = 0;
  ++tap.r;
}

/// source [N][H][W][C] and weights [K][R*S][group_c] through the copy engine.
template <class Shape>
struct Im2colSource {
  static constexpr bool kWholeWarp = false;  ///< one thread starts the copies
  CUtensorMap source,                        ///< im2col, of [N][H][W][C]
      weights;                               ///< tiled, of [K][R*S][group_c]
  Windows windows;                           ///< what there is to compute
  FilterTiles<Shape> filters;                ///< of the tiles' columns

  /// A step of a tile.
  struct Cursor {
    Tap tap;        ///< of the next step
    int n, h, w;    ///< where the window of the tile's first pixel begins
    int c, filter;  ///< the tile's first channel and filter
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    const std::int64_t pixel = item.m * Shape::M, row = pixel / windows.Q;
    const int q = static_cast<int>(pixel % windows.Q), p = static_cast<int>(row % windows.P);
    return {.tap = tap_at(windows, item.first),
            .n = static_cast<int>(row / windows.P),
            .h = p * windows.stride.h + windows.first.h,
            .w = q * windows.stride.w + windows.first.w,
            .c = filters.group(item.n) * windows.group_c,
            .filter = filters.first(item.n)};
  }
  /// Starts the copies of a step: its pixels to a_tile [Shape::M][32], its filters to b_tile
  /// [Shape::N][32], both swizzled. `full` completes once all bytes are there.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const Tap tap = cursor.tap;
    // Whole boxes count, also the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load_im2col(a_tile, &source, full, cursor.c + tap.c, cursor.w, cursor.h, cursor.n,
                         static_cast<unsigned short>(tap.s * windows.dilation.w),
                         static_cast<unsigned short>(tap.r * windows.dilation.h));
    ptx::tma_load<3>(b_tile, &weights, full, {tap.c, tap.r * windows.S + tap.s, cursor.filter});
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { advance_tap(windows, cursor.tap); }
};

/// The same by a warp, element by element, for what the copy engine cannot take.
template <class Shape>
struct GatheredSource {
  static constexpr bool kWholeWarp = true;  ///< each lane brings one of a step's channels
  const float *source,                      ///< in windows.layout
      *weights;                             ///< in weights_layout
  Windows windows;                          ///< with the source's layout in memory
  Layout weights_layout;                    ///< nhwc: [K][R][S][group_c], nchw: [K][group_c][R][S]
  FilterTiles<Shape> filters;               ///< of the tiles' columns

  /// A step of a tile.
  struct Cursor {
    Tap tap;             ///< of the next step
    std::int64_t pixel;  ///< the tile's first one, of windows.pixels()
    int c, filter;       ///< the tile's first channel and filter
  };
  /// Where the item's first step begins.
  __device__ Cursor at(const WgmmaItem& item) const {
    return {.tap = tap_at(windows, item.first),
            .pixel = item.m * Shape::M,
            .c = filters.group(item.n) * windows.group_c,
            .filter = filters.first(item.n)};
  }
  /// Copies a step, rounded to TF32: its pixels to a_tile [Shape::M][32], its filters to b_tile
  /// [Shape::N][32], both swizzled; then one lane arrives at `full`. Called by a whole warp.
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const LayoutIndex4 from{windows.layout, windows.groups * windows.group_c, windows.H, windows.W};
    const LayoutIndex4 weight{weights_layout, windows.group_c, windows.R, windows.S};
    const Tap tap = cursor.tap;
    const int lane = static_cast<int>(threadIdx.x) % 32, c = tap.c + lane;
    for (int i = 0; i < Shape::M; ++i) {
      const std::int64_t pixel = cursor.pixel + i, row = pixel / windows.Q;
      const int n = static_cast<int>(row / windows.P);
      const int h = static_cast<int>(row % windows.P) * windows.stride.h + windows.first.h +
                    tap.r * windows.dilation.h;
      const int w = static_cast<int>(pixel % windows.Q) * windows.stride.w + windows.first.w +
                    tap.s * windows.dilation.w;
      const bool inside = n < windows.N && c < windows.group_c && h >= 0 && h < windows.H &&
                          w >= 0 && w < windows.W;
      a_tile[gemm::swizzled(i, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(source[from(n, cursor.c + c, h, w)])) : 0.0f;
    }
    for (int j = 0; j < Shape::N; ++j) {
      const int filter = cursor.filter + j;
      const bool inside = filter < windows.K && c < windows.group_c;
      b_tile[gemm::swizzled(j, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(weights[weight(filter, c, tap.r, tap.s)])) : 0.0f;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  /// To the next step.
  __device__ void advance(Cursor& cursor) const { advance_tap(windows, cursor.tap); }
};

/// Where the sums go.
template <class Shape, Layout kLayout>
struct Pixels {
  float* out;                  ///< in kLayout; of the first part, if there are several
  const float* bias;           ///< or null
  Windows windows;             ///< what there is to compute
  FilterTiles<Shape> filters;  ///< of the tiles' columns
  std::int64_t part;           ///< floats from the result of one part of the sums to the next
  bool dense;                  ///< pixels of the product follow one another in out
  bool pairs;                  ///< two neighbours can be stored at once

  /// Where a tile's sums go.
  struct Place {
    float* out;         ///< of the tile's first filter
    const float* bias;  ///< of the tile's first filter, or null
    int count;          ///< from there to the group's last one
  };
  /// Where the item's tile goes, in its part.
  __device__ Place place(const WgmmaItem& item) const {
    const int k = filters.first(item.n);
    return {.out = out + item.split * part + k * windows.plane(),
            .bias = bias ? bias + k : nullptr,
            .count = (filters.group(item.n) + 1) * filters.group_k - k};
  }
  /// Where the tile's first filter of a pixel lies, or null past the last pixel.
  __device__ float* row(const Place& place, std::int64_t pixel) const {
    if (pixel >= windows.pixels()) return nullptr;
    if (kLayout == Layout::nhwc && dense) return place.out + pixel * windows.K;
    const std::int64_t row = pixel / windows.Q;
    const int n = static_cast<int>(row / windows.P);
    const int h = windows.out_first.h + windows.out_stride.h * static_cast<int>(row % windows.P);
    const int w = windows.out_first.w + windows.out_stride.w * static_cast<int>(pixel % windows.Q);
    return place.out + LayoutIndex4{kLayout, windows.K, windows.out_H, windows.out_W}(n, 0, h, w);
  }
  /// Two neighbouring filters of a tile.
  struct Pair {
    std::int64_t offset;  ///< of the first one from the row
    int count;            ///< how many of the two there are
    float bias[2];        ///< added to them; 0 if there is none
  };
  /// The tile's filters `first` and `first` + 1.
  __device__ Pair columns(const Place& place, int first) const {
    const int count = place.count - first;
    return {.offset = first * (kLayout == Layout::nhwc ? 1 : windows.plane()),
            .count = count,
            .bias = {place.bias && count > 0 ? place.bias[first] : 0.0f,
                     place.bias && count > 1 ? place.bias[first + 1] : 0.0f}};
  }
  /// Whether store_whole may write the tile: nhwc, in pairs, with all of its filters and pixels.
  __device__ bool whole(const Place& place, const WgmmaItem& item) const {
    return kLayout == Layout::nhwc && pairs && place.count >= Shape::N &&
           (item.m + 1) * Shape::M <= windows.pixels();
  }
  /// A sum with its bias, as it is stored.
  __device__ float result(float sum, float added) const {
    return activated(windows.activation, sum + added);
  }
  /// Writes two sums with their bias, as one float2.
  __device__ void store_whole(const Pair& pair, float* row, float v0, float v1) const {
    *reinterpret_cast<float2*>(row + pair.offset) = {result(v0, pair.bias[0]),
                                                     result(v1, pair.bias[1])};
  }
  /// Writes those of two sums that are in out, with their bias; none if `row` is null.
  __device__ void store(const Pair& pair, float* row, float v0, float v1) const {
    if (row == nullptr || pair.count <= 0) return;
    row += pair.offset;
    v0 = result(v0, pair.bias[0]);
    v1 = result(v1, pair.bias[1]);
    if (kLayout == Layout::nhwc && pairs) {
      *reinterpret_cast<float2*>(row) = {v0, v1};
    } else {
      row[0] = v0;
      if (pair.count > 1) row[kLayout == Layout::nhwc ? 1 : windows.plane()] = v1;
    }
  }
};

/// Whether the copy engine's fields can hold the windows; else a warp gathers.
inline bool fits_the_copy_engine(const Windows& windows) {
  const auto fits = [](int size, int outputs, int taps, int first, int stride, int dilation) {
    const std::int64_t last = first + (outputs - 1) * std::int64_t{stride} + 1 - size;
    return stride <= 8 && first >= -128 && first <= 127 && last >= -128 && last <= 127 &&
           (taps - 1) * std::int64_t{dilation} <= 255;
  };
  return fits(windows.H, windows.P, windows.R, windows.first.h, windows.stride.h,
              windows.dilation.h) &&
         fits(windows.W, windows.Q, windows.S, windows.first.w, windows.stride.w,
              windows.dilation.w);
}

/// Whether the copy engine can read arrays of these layouts, if they are aligned to 16 bytes.
inline bool takes_the_copy_engine(const Windows& windows, Layout source, Layout weights) {
  return fits_the_copy_engine(windows) && windows.group_c % 4 == 0 && source == Layout::nhwc &&
         weights == Layout::nhwc;
}

/// Why the shape does not suit the kernel, if so: pixels of an image are counted by an int; and a
/// step is 32 channels of one tap, however few there are, so that a filter of one channel that is
/// as large as an image would spend minutes on products with zeros.
inline Declined why_no_windows(const Conv2dProblem& conv) {
  const std::int64_t pixels =
      std::max(std::int64_t{conv.H} * conv.W, std::int64_t{conv.P} * conv.Q);
  if (pixels > INT32_MAX) return text("images of ", pixels, " pixels: at most ", INT32_MAX);
  constexpr std::int64_t kMaxTaps = 1024;
  const std::int64_t taps = std::int64_t{conv.R} * conv.S;
  if (taps <= kMaxTaps) return {};
  return text("filters of ", taps, " taps, each a step of ", kWgmmaStep, " channels: at most ",
              kMaxTaps);
}

/// Channels rounded up to a multiple of 4, 16 bytes, as the copy engine needs.
inline int padded_channels(int channels) { return ceil_div(channels, 4) * 4; }

/// Floats of the source with its channels innermost, a multiple of 4 in each group; and so many
/// that what follows in the workspace is aligned.
inline std::int64_t packed_source_floats(const Windows& windows) {
  const std::int64_t pixels = std::int64_t{windows.N} * windows.H * windows.W;
  return ceil_div(pixels * windows.groups * padded_channels(windows.group_c), std::int64_t{64}) *
         64;
}

/// Copies an nchw source into that form.
inline void pack_source(const Windows& windows, const float* source, float* packed) {
  const int padded = padded_channels(windows.group_c), image = windows.H * windows.W;
  const std::int64_t pixel = std::int64_t{windows.groups} * padded;
  const std::int64_t group = std::int64_t{windows.group_c} * image;
  gemm::launch_transpose(
      {.axes = {{.count = windows.N, .from = windows.groups * group, .to = image * pixel},
                {.count = windows.groups, .from = group, .to = padded},
                {}},
       .rows = windows.group_c,
       .columns = image,
       .from_row = image,
       .from_column = 1,
       .to_row = pixel,
       .padded = padded},
      source, packed);
}

inline constexpr int kMaxSplits = 8;  ///< Parts of the sums.

/// A kernel's shape, and in how many parts it computes the sums.
struct Plan {
  enum { narrow, tall, medium, large } shape;  ///< Narrow, Tall, Medium or Large
  int splits;                                  ///< parts of each sum, >= 1
};

/// The tiles of Shape that cover pixels by filters, and the steps: 32 channels of one tap each.
template <class Shape>
WgmmaWork work_of(const Windows& windows, int splits) {
  return {.tiles_m = ceil_div(windows.pixels(), std::int64_t{Shape::M}),
          .tiles_n = windows.groups * ceil_div(windows.group_k(), Shape::N),
          .splits = splits,
          .steps = windows.R * windows.S * windows.chunks(),
          .products = windows.groups,
          .map = windows.map};
}

/// The largest number of tiles for which the map must have a grid: that of the smallest tiles.
inline TileMapProblem smallest_tiles(const Windows& windows) {
  const WgmmaWork work = work_of<Narrow>(windows, 1);
  return {.map = windows.map,
          .tiles_m = static_cast<int>(std::min<std::int64_t>(work.tiles_m, 0x7fffffff)),
          .tiles_n = work.tiles_n / work.products,
          .batch = work.products * kMaxSplits};
}

/// Estimated cycles: rounds of blocks, in each the steps and the stores, and what adding up the
/// parts costs. A step's cycles and the bytes a cycle are fitted to an H200.
template <class Shape>
double cycles(const Windows& windows, int splits, double step_cycles) {
  constexpr double kStoredBytes = 19, kAddedBytes = 1800;  // a cycle: of an SM, of all
  constexpr double kLaunch = 5000;
  const WgmmaWork work = work_of<Shape>(windows, splits);
  // Two blocks of an SM share its tensor cores: they take as long as one after the other.
  const double rounds = std::ceil(static_cast<double>(work.items()) / multiprocessors());
  const double item = step_cycles * work.steps / splits + Shape::M * Shape::N * 4 / kStoredBytes;
  const double bytes = 4.0 * static_cast<double>(windows.out_size()) * (splits + 1);
  return rounds * item + (splits > 1 ? kLaunch + bytes / kAddedBytes : 0);
}

/// The fastest by that estimate. Only results that follow one another are computed in parts; under
/// the map split_k, all of them are.
inline Plan plan_of(const Windows& windows) {
  constexpr int kLeastSteps = 8;  // of a part
  const int steps = work_of<Narrow>(windows, 1).steps;
  const bool whole = windows.out_stride.h == 1 && windows.out_stride.w == 1;
  const int fewest = windows.map == TileMap::split_k ? std::min(kDefaultSplits, steps) : 1;
  Plan best = {Plan::narrow, fewest};
  double least = cycles<Narrow>(windows, fewest, 600);
  for (int splits = fewest;
       splits == fewest || (whole && splits <= kMaxSplits && splits * kLeastSteps <= steps);
       ++splits) {
    const auto consider = [&](decltype(Plan::shape) shape, double estimate) {
      if (estimate >= least) return;
      best = {shape, splits};
      least = estimate;
    };
    consider(Plan::tall, cycles<Tall>(windows, splits, 1150));
    consider(Plan::medium, cycles<Medium>(windows, splits, 620));
    consider(Plan::large, cycles<Large>(windows, splits, 1050));
  }
  return best;
}

/// Floats of the workspace in which the parts of the sums lie.
inline std::int64_t part_floats(const Windows& windows) {
  const int splits = plan_of(windows).splits;
  return splits > 1 ? splits * windows.out_size() : 0;
}

/// Whether two neighbouring filters are stored at once, if the output begins at a multiple of 8
/// bytes and lies in nhwc.
inline bool filters_in_pairs(const Windows& windows) { return windows.group_k() % 2 == 0; }

/// For a rung's choice: how launch_windows() computes them.
inline std::string in_words(const Windows& windows, Layout source, Layout weights) {
  if (windows.pixels() == 0) return "nothing to do";
  const Plan plan = plan_of(windows);
  const bool engine = takes_the_copy_engine(windows, source, weights);
  const char* const shape = !engine || plan.shape == Plan::narrow ? "128 x 64"
                            : plan.shape == Plan::tall            ? "256 x 64"
                            : plan.shape == Plan::medium          ? "128 x 128"
                                                                  : "128 x 256";
  return text(
      shape, ", ", how_many(plan.splits, "part"), engine ? ", by the copy engine" : ", by a warp",
      windows.layout == Layout::nhwc && filters_in_pairs(windows) ? ", filters in pairs" : "");
}

/// The arrays of a product of windows.
struct WindowArrays {
  const float *source, *weights, *bias;  ///< bias or null
  Layout source_layout,                  ///< of source in memory, which may have been repacked
      weights_layout;                    ///< nhwc: [K][R][S][group_c], nchw: [K][group_c][R][S]
  float *out, *parts;                    ///< parts: of part_floats()
};

/// Computes out, of kLayout, with tiles of Shape and sums in `splits` parts; with Narrow ones where
/// the copy engine cannot read the arrays. Returns without waiting.
template <class Shape, Layout kLayout>
void launch_windows_as(const Windows& windows, int splits, const WindowArrays& arrays) {
  const WgmmaWork work = work_of<Shape>(windows, splits);
  const FilterTiles<Shape> filters(windows);
  float* to = splits > 1 ? arrays.parts : arrays.out;
  Windows stored = windows;  // parts wait until they are added up
  if (splits > 1) stored.activation = Activation::none;
  const Pixels<Shape, kLayout> result = {
      .out = to,
      .bias = splits > 1 ? nullptr : arrays.bias,
      .windows = stored,
      .filters = filters,
      .part = windows.out_size(),
      .dense = windows.P == windows.out_H && windows.Q == windows.out_W,
      .pairs = filters_in_pairs(windows) && reinterpret_cast<std::uintptr_t>(to) % 8 == 0};
  const auto is_aligned = [](const float* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  if (takes_the_copy_engine(windows, arrays.source_layout, arrays.weights_layout) &&
      is_aligned(arrays.source) && is_aligned(arrays.weights)) {
    const std::int64_t taps = std::int64_t{windows.R} * windows.S, channels = windows.group_c;
    const Im2colMap map = {
        .N = windows.N,
        .H = windows.H,
        .W = windows.W,
        .C = windows.groups * windows.group_c,
        .lower_h = windows.first.h,
        .lower_w = windows.first.w,
        // The box ends one beyond where the last windows begin.
        .upper_h = windows.first.h + (windows.P - 1) * windows.stride.h + 1 - windows.H,
        .upper_w = windows.first.w + (windows.Q - 1) * windows.stride.w + 1 - windows.W,
        .stride_h = windows.stride.h,
        .stride_w = windows.stride.w,
        .pixels = Shape::M};
    const TiledMap weights = {.rank = 3,
                              .extents = {channels, taps, windows.K},
                              .strides = {1, channels, taps * channels},
                              .box = {kWgmmaStep, 1, Shape::N}};
    gemm::launch_wgmma<Shape>(Im2colSource<Shape>{.source = tensor_map(map, arrays.source),
                                                  .weights = tensor_map(weights, arrays.weights),
                                                  .windows = windows,
                                                  .filters = filters},
                              work, result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    Windows in_memory = windows;
    in_memory.layout = arrays.source_layout;
    gemm::launch_wgmma<Shape>(GatheredSource<Shape>{.source = arrays.source,
                                                    .weights = arrays.weights,
                                                    .windows = in_memory,
                                                    .weights_layout = arrays.weights_layout,
                                                    .filters = filters},
                              work, result);
  } else {
    launch_windows_as<Narrow, kLayout>(windows, splits, arrays);
    return;  // parts are added up there
  }
  if (splits > 1) {
    launch_sum_splits(arrays.parts, splits, windows.out_size(), arrays.bias, windows.plane(),
                      windows.K, windows.activation, arrays.out);
  }
}

/// Computes out; returns without waiting.
inline void launch_windows(const Windows& windows, const WindowArrays& arrays) {
  if (windows.pixels() == 0) return;
  const auto with = [&]<class Shape>(Shape, int splits) {
    if (windows.layout == Layout::nchw) {
      launch_windows_as<Shape, Layout::nchw>(windows, splits, arrays);
    } else {
      launch_windows_as<Shape, Layout::nhwc>(windows, splits, arrays);
    }
  };
  const Plan plan = plan_of(windows);
  switch (plan.shape) {
    case Plan::narrow: with(Narrow{}, plan.splits); break;
    case Plan::tall: with(Tall{}, plan.splits); break;
    case Plan::medium: with(Medium{}, plan.splits); break;
    case Plan::large: with(Large{}, plan.splits); break;
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
