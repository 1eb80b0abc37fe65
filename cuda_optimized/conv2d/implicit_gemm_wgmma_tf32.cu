/// @file implicit_gemm_wgmma_tf32.cu
/// @brief conv2d with Hopper's own instructions: the copy engine finds the windows, wgmma
/// multiplies.
#include <cmath>

#include "core/rung.hpp"
#include "cuda_optimized/gemm/repack.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

using gemm::kWgmmaStep;
using gemm::WgmmaItem;
using gemm::WgmmaWork;

using Narrow = gemm::WgmmaShape<128, 64, 4, 2>;   ///< Two blocks an SM, for small problems.
using Tall = gemm::WgmmaShape<256, 64, 5, 1>;     ///< Many pixels, few filters.
using Medium = gemm::WgmmaShape<128, 128, 6, 1>;  ///< Where Large would have too few tiles.
using Large = gemm::WgmmaShape<128, 256, 4, 1>;   ///< The fewest bytes for each product.

/// Which pixels and filters belong to a tile. Tiles do not cross groups.
struct Tiles {
  int group_k;      ///< filters of a group
  int group_tiles;  ///< tiles of a group's filters

  HOST_DEVICE int group(int tile_n) const { return tile_n / group_tiles; }
  template <class Shape>
  HOST_DEVICE int filter(int tile_n) const {  ///< the tile's first one
    return group(tile_n) * group_k + tile_n % group_tiles * Shape::N;
  }
};

/// The place in the sum: a tap of the filter, and 32 channels of it.
struct Tap {
  int r, s, c;
};

/// What both sources share: how the sum is walked along.
struct Walk {
  Conv2dProblem conv;
  Tiles tiles;
  int group_c;  ///< Channels of a group, in memory.
  int chunks;   ///< ceil(group_c / 32)

  __device__ Tap tap_at(int step) const {
    const int place = step / chunks;
    return {place / conv.S, place % conv.S, step % chunks * kWgmmaStep};
  }
  __device__ void advance(Tap& tap) const {
    if ((tap.c += kWgmmaStep) < group_c) return;
    tap.c = 0;
    if (++tap.s < conv.S) return;
    tap.s = 0;
    ++tap.r;
  }
};

/// x [N][H][W][C] and weights [K][R*S][C/groups] through the copy engine.
template <class Shape>
struct Im2colSource {
  static constexpr bool kWholeWarp = false;
  CUtensorMap x, weights;
  Walk walk;

  struct Cursor {
    Tap tap;
    int n, h, w;    ///< where the window of the tile's first pixel begins
    int c, filter;  ///< the tile's first channel and filter
  };
  __device__ Cursor at(const WgmmaItem& item) const {
    const Conv2dProblem& conv = walk.conv;
    const std::int64_t pixel = item.m * Shape::M, row = pixel / conv.Q;
    const int q = static_cast<int>(pixel % conv.Q), p = static_cast<int>(row % conv.P);
    return {.tap = walk.tap_at(item.first),
            .n = static_cast<int>(row / conv.P),
            .h = p * conv.stride.h - conv.pad.top,
            .w = q * conv.stride.w - conv.pad.left,
            .c = walk.tiles.group(item.n) * walk.group_c,
            .filter = walk.tiles.filter<Shape>(item.n)};
  }
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const Tap tap = cursor.tap;
    // Whole boxes count, also the zeros of the padding and past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load_im2col(a_tile, &x, full, cursor.c + tap.c, cursor.w, cursor.h, cursor.n,
                         static_cast<unsigned short>(tap.s * walk.conv.dilation.w),
                         static_cast<unsigned short>(tap.r * walk.conv.dilation.h));
    ptx::tma_load<3>(b_tile, &weights, full,
                     {tap.c, tap.r * walk.conv.S + tap.s, cursor.filter});
  }
  __device__ void advance(Cursor& cursor) const { walk.advance(cursor.tap); }
};

/// The same by a warp, element by element, for what the copy engine cannot take.
template <class Shape>
struct GatheredSource {
  static constexpr bool kWholeWarp = true;
  const float *x, *weights;
  Walk walk;

  struct Cursor {
    Tap tap;
    std::int64_t pixel;
    int c, filter;  ///< the tile's first channel and filter
  };
  __device__ Cursor at(const WgmmaItem& item) const {
    return {.tap = walk.tap_at(item.first),
            .pixel = item.m * Shape::M,
            .c = walk.tiles.group(item.n) * walk.group_c,
            .filter = walk.tiles.filter<Shape>(item.n)};
  }
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const Conv2dProblem& conv = walk.conv;
    const LayoutIndex4 x_at{conv.layout, conv.C, conv.H, conv.W};
    const LayoutIndex4 w_at{conv.layout, walk.group_c, conv.R, conv.S};
    const Tap tap = cursor.tap;
    const int lane = static_cast<int>(threadIdx.x) % 32, c = tap.c + lane;
    for (int i = 0; i < Shape::M; ++i) {
      const std::int64_t pixel = cursor.pixel + i, row = pixel / conv.Q;
      const std::int64_t n = row / conv.P;
      const int h = static_cast<int>(row % conv.P) * conv.stride.h - conv.pad.top +
                    tap.r * conv.dilation.h;
      const int w = static_cast<int>(pixel % conv.Q) * conv.stride.w - conv.pad.left +
                    tap.s * conv.dilation.w;
      const bool inside =
          n < conv.N && c < walk.group_c && h >= 0 && h < conv.H && w >= 0 && w < conv.W;
      a_tile[gemm::swizzled(i, lane)] =
          inside ? __uint_as_float(
                       ptx::to_tf32(x[x_at(static_cast<int>(n), cursor.c + c, h, w)]))
                 : 0.0f;
    }
    for (int j = 0; j < Shape::N; ++j) {
      const int filter = cursor.filter + j;
      const bool inside = filter < conv.K && c < walk.group_c;
      b_tile[gemm::swizzled(j, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(weights[w_at(filter, c, tap.r, tap.s)])) : 0.0f;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  __device__ void advance(Cursor& cursor) const { walk.advance(cursor.tap); }
};

/// y, in either layout.
template <class Shape, Layout kLayout>
struct Pixels {
  float* y;
  const float* bias;   ///< or null
  std::int64_t count;  ///< of pixels, N * P * Q
  std::int64_t split;  ///< floats from one part's y to the next
  int plane;           ///< from a channel to the next in an image of y: P * Q, or 1 with nhwc
  int K;
  Tiles tiles;
  bool pairs;  ///< two neighbours can be stored at once

  struct Place {
    float* y;           ///< of the tile's first filter
    const float* bias;  ///< of the tile's first filter, or null
    int filters;        ///< from there to the group's last one
  };
  __device__ Place place(const WgmmaItem& item) const {
    const int k = tiles.filter<Shape>(item.n);
    return {.y = y + item.split * split + std::int64_t{k} * plane,
            .bias = bias ? bias + k : nullptr,
            .filters = (tiles.group(item.n) + 1) * tiles.group_k - k};
  }
  __device__ float* row(const Place& place, std::int64_t pixel) const {
    if (pixel >= count) return nullptr;
    if constexpr (kLayout == Layout::nhwc) return place.y + pixel * K;
    return place.y + pixel / plane * plane * K + pixel % plane;
  }
  struct Pair {
    std::int64_t offset;  ///< of the first one from the row
    int count;            ///< how many of the two there are
    float bias[2];
  };
  __device__ Pair columns(const Place& place, int first) const {
    const int count = place.filters - first;
    return {.offset = std::int64_t{first} * (kLayout == Layout::nhwc ? 1 : plane),
            .count = count,
            .bias = {place.bias && count > 0 ? place.bias[first] : 0.0f,
                     place.bias && count > 1 ? place.bias[first + 1] : 0.0f}};
  }
  __device__ void store(const Pair& pair, float* row, float v0, float v1) const {
    if (row == nullptr || pair.count <= 0) return;
    row += pair.offset;
    v0 += pair.bias[0];
    v1 += pair.bias[1];
    if (kLayout == Layout::nhwc && pairs) {
      *reinterpret_cast<float2*>(row) = {v0, v1};
    } else {
      row[0] = v0;
      if (pair.count > 1) row[kLayout == Layout::nhwc ? 1 : plane] = v1;
    }
  }
};

/// What the copy engine's fields can hold; else a warp gathers.
bool fits_the_copy_engine(const Conv2dProblem& conv) {
  const std::int64_t reach_h = (conv.R - 1) * std::int64_t{conv.dilation.h};
  const std::int64_t reach_w = (conv.S - 1) * std::int64_t{conv.dilation.w};
  return conv.stride.h <= 8 && conv.stride.w <= 8 && conv.pad.top <= 128 && conv.pad.left <= 128 &&
         reach_h <= 255 && reach_w <= 255 && conv.pad.bottom - reach_h <= 127 &&
         conv.pad.right - reach_w <= 127 && conv.pad.bottom - reach_h >= -128 &&
         conv.pad.right - reach_w >= -128;
}

/// Whether x and weights are copied into the workspace, with the channels innermost and a multiple
/// of 4 in each group.
bool repacks(const Conv2dProblem& conv) {
  return conv.layout == Layout::nchw && fits_the_copy_engine(conv);
}

std::int64_t padded_group_c(const Conv2dProblem& conv) {
  return ceil_div(conv.C / conv.groups, 4) * std::int64_t{4};
}
std::int64_t floats_of_x(const Conv2dProblem& conv) {
  return ceil_div(conv.N * std::int64_t{conv.H} * conv.W * conv.groups * padded_group_c(conv),
                  std::int64_t{64}) * 64;
}
std::int64_t floats_of_weights(const Conv2dProblem& conv) {
  return ceil_div(conv.K * std::int64_t{conv.R} * conv.S * padded_group_c(conv), std::int64_t{64}) *
         64;
}
std::int64_t pixels_of(const Conv2dProblem& conv) {
  return conv.N * std::int64_t{conv.P} * conv.Q;
}

/// A kernel's shape, and in how many parts it computes the sums.
struct Plan {
  enum { narrow, tall, medium, large } shape;
  int splits;
};

template <class Shape>
WgmmaWork work_of(const Conv2dProblem& conv, int splits) {
  const int chunks = ceil_div(conv.C / conv.groups, kWgmmaStep);
  return {.tiles_m = ceil_div(pixels_of(conv), std::int64_t{Shape::M}),
          .tiles_n = conv.groups * ceil_div(conv.K / conv.groups, Shape::N),
          .splits = splits,
          .steps = conv.R * conv.S * chunks};
}

/// Estimated cycles: rounds of blocks, in each the steps and the stores, and what adding up the
/// parts costs. A step's cycles and the bytes a cycle are measured.
template <class Shape>
double cycles(const Conv2dProblem& conv, int splits, double step_cycles) {
  constexpr double kStoredBytes = 19, kAddedBytes = 1800, kLaunch = 5000;  // a cycle of an SM, of all
  const WgmmaWork work = work_of<Shape>(conv, splits);
  const double rounds = std::ceil(static_cast<double>(work.items()) /
                                  (gemm::multiprocessors() * Shape::kBlocks)) * Shape::kBlocks;
  const double item = step_cycles * work.steps / splits + Shape::M * Shape::N * 4 / kStoredBytes;
  const double bytes = 4.0 * static_cast<double>(pixels_of(conv)) * conv.K * (splits + 1);
  return rounds * item + (splits > 1 ? kLaunch + bytes / kAddedBytes : 0);
}

/// The fastest by that estimate.
Plan plan_of(const Conv2dProblem& conv) {
  constexpr int kMaxSplits = 8, kLeastSteps = 8;  // of a part
  const int steps = work_of<Narrow>(conv, 1).steps;
  Plan best = {Plan::narrow, 1};
  double least = cycles<Narrow>(conv, 1, 600);
  for (int splits = 1; splits == 1 || (splits <= kMaxSplits && splits * kLeastSteps <= steps);
       ++splits) {
    const auto consider = [&](decltype(Plan::shape) shape, double estimate) {
      if (estimate >= least) return;
      best = {shape, splits};
      least = estimate;
    };
    consider(Plan::tall, cycles<Tall>(conv, splits, 1150));
    consider(Plan::medium, cycles<Medium>(conv, splits, 620));
    consider(Plan::large, cycles<Large>(conv, splits, 1050));
  }
  return best;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  return gemm::why_no_wgmma();
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  std::int64_t floats = repacks(conv) ? floats_of_x(conv) + floats_of_weights(conv) : 0;
  const int splits = plan_of(conv).splits;
  if (splits > 1) floats += splits * pixels_of(conv) * conv.K;
  return static_cast<std::size_t>(floats) * sizeof(float);
}

bool is_aligned(const float* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

template <class Shape, Layout kLayout>
void run_with(const Conv2dProblem& conv, int splits, const Arguments& arrays) {
  const float *x = arrays.in<float>("x"), *weights = arrays.in<float>("weights");
  const float* bias = arrays.in_or_null<float>("bias");
  float *y = arrays.out<float>("y"), *workspace = arrays.workspace<float>();
  const std::int64_t count = pixels_of(conv);
  const int plane = conv.layout == Layout::nchw ? conv.P * conv.Q : 1;
  if (count == 0) return;
  const int group_c = conv.C / conv.groups;
  Walk walk = {.conv = conv,
               .tiles = {.group_k = conv.K / conv.groups,
                         .group_tiles = ceil_div(conv.K / conv.groups, Shape::N)},
               .group_c = group_c,
               .chunks = ceil_div(group_c, kWgmmaStep)};
  bool copied = fits_the_copy_engine(conv) && group_c % 4 == 0 && is_aligned(x) &&
                is_aligned(weights) && conv.layout == Layout::nhwc;
  if (repacks(conv)) {
    const int padded = static_cast<int>(padded_group_c(conv));
    const int image = conv.H * conv.W, taps = conv.R * conv.S;
    const std::int64_t pixel = std::int64_t{conv.groups} * padded;
    float *packed_x = workspace, *packed_weights = packed_x + floats_of_x(conv);
    workspace = packed_weights + floats_of_weights(conv);
    gemm::launch_transpose({.batch = std::int64_t{conv.N} * conv.groups,
                            .rows = group_c,
                            .columns = image,
                            .source_batch = std::int64_t{group_c} * image,
                            .target_row = pixel,
                            .target_batch = image * pixel,
                            .target_inner = padded,
                            .inner = conv.groups,
                            .padded = padded},
                           x, packed_x);
    gemm::launch_transpose({.batch = conv.K,
                            .rows = group_c,
                            .columns = taps,
                            .source_batch = std::int64_t{group_c} * taps,
                            .target_row = padded,
                            .target_batch = std::int64_t{taps} * padded,
                            .target_inner = 0,
                            .padded = padded},
                           weights, packed_weights);
    x = packed_x;
    weights = packed_weights;
    walk.group_c = padded;
    copied = true;
  }
  const WgmmaWork work = work_of<Shape>(conv, splits);
  float* to = splits > 1 ? workspace : y;
  const Pixels<Shape, kLayout> result = {
      .y = to,
      .bias = splits > 1 ? nullptr : bias,
      .count = count,
      .split = count * conv.K,
      .plane = plane,
      .K = conv.K,
      .tiles = walk.tiles,
      .pairs = conv.layout == Layout::nhwc && walk.tiles.group_k % 2 == 0 &&
               reinterpret_cast<std::uintptr_t>(to) % 8 == 0};
  if (copied) {
    const std::int64_t taps = std::int64_t{conv.R} * conv.S, channels = walk.group_c;
    gemm::launch_wgmma<Shape>(
        Im2colSource<Shape>{
            .x = tensor_map(
                Im2colMap{.N = conv.N,
                          .H = conv.H,
                          .W = conv.W,
                          .C = conv.groups * walk.group_c,
                          .lower_h = -conv.pad.top,
                          .lower_w = -conv.pad.left,
                          .upper_h = conv.pad.bottom - (conv.R - 1) * conv.dilation.h,
                          .upper_w = conv.pad.right - (conv.S - 1) * conv.dilation.w,
                          .stride_h = conv.stride.h,
                          .stride_w = conv.stride.w,
                          .pixels = Shape::M},
                x),
            .weights = tensor_map(TiledMap{3,
                                           {channels, taps, conv.K},
                                           {1, channels, taps * channels},
                                           {kWgmmaStep, 1, Shape::N}},
                                  weights),
            .walk = walk},
        work, result);
  } else {
    gemm::launch_wgmma<Shape>(GatheredSource<Shape>{x, weights, walk}, work, result);
  }
  if (splits > 1) {
    gemm::launch_sum_splits(workspace, splits, count * conv.K, bias,
                            plane, conv.K, y);
  }
}

template <class Shape>
void run_in(const Conv2dProblem& conv, int splits, const Arguments& arrays) {
  if (conv.layout == Layout::nchw) {
    run_with<Shape, Layout::nchw>(conv, splits, arrays);
  } else {
    run_with<Shape, Layout::nhwc>(conv, splits, arrays);
  }
}

void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const Plan plan = plan_of(conv);
  switch (plan.shape) {
    case Plan::narrow: run_in<Narrow>(conv, plan.splits, arrays); break;
    case Plan::tall: run_in<Tall>(conv, plan.splits, arrays); break;
    case Plan::medium: run_in<Medium>(conv, plan.splits, arrays); break;
    case Plan::large: run_in<Large>(conv, plan.splits, arrays); break;
  }
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_wgmma_tf32() {
  return {.supports = supports, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
