/// @file depthwise_parts.cuh
/// @brief How a filter's images are cut into parts that fit shared memory, several of them in
/// flight, and how a block copies one.
#pragma once

#include <algorithm>
#include <optional>

#include "core/conv2d_problem.hpp"
#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/depthwise/flat_copy.cuh"
#include "cuda_optimized/conv2d/shared/depthwise/plane_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

using conv2d::flat_load;
using conv2d::flat_room;
using conv2d::kSegment;

inline constexpr int kDepthwiseThreads = 224;  ///< Of a block, at most: 16 images of 14 rows.
inline constexpr int kDepthwiseStages = 2;     ///< Parts of the images in flight.
inline constexpr int kMaxSegments = 16;        ///< Threads along a row; longer rows go round.
inline constexpr std::int64_t kBlockBytes = 51 * 1024;  ///< Of shared memory: 4 blocks of an SM.
inline constexpr std::int64_t kEnoughBlocks = 528;      ///< With fewer filters, images are split.
inline constexpr int kDeclaredBytes = 1024;             ///< Of __shared__ variables, at most.

/// How the outputs of a filter are cut into parts.
struct DepthwisePlan {
  int images;      ///< Of a part, as whole planes; more than one only if `rows` is P.
  int rows;        ///< Rows of dy in a part.
  int x_floats;    ///< Room for an image's x, a multiple of 4.
  int dy_floats;   ///< Room for its dy.
  int parts;       ///< Of a filter: bands of all images, or groups of whole images.
  int splits;      ///< Blocks that share a filter, each with a run of parts_each parts.
  int parts_each;  ///< See `splits`.
  int columns;     ///< Sums of a filter: R * S and the bias.
  int segments;    ///< Threads along a row; the block is [images][rows][segments] threads.
  FastDivision by_segments, by_rows;     ///< For a thread's place.
  FastDivision by_bands, by_multiplier;  ///< For a part's and a filter's.
  int x_vectors = 0,   ///< Vectors of a plane of x, if whole planes are copied and all are aligned
                       ///< to 16 bytes; 0 if not.
      dy_vectors = 0;  ///< The same of dy.
  FastDivision by_x_vectors = {}, by_dy_vectors = {};  ///< For a vector's plane.

  /// Threads of a block.
  int threads() const { return ceil_div(images * rows * segments, 32) * 32; }
  /// Room for a part.
  HOST_DEVICE int part_floats() const { return images * (x_floats + dy_floats); }
  /// Bytes of a block's shared memory.
  std::int64_t bytes() const {
    return std::int64_t{kDepthwiseStages} * part_floats() * std::int64_t{sizeof(float)};
  }
};

/// Room for whole images, or for a band of rows of one; nothing if it takes more than `most_bytes`.
inline std::optional<DepthwisePlan> plan_with(const Conv2dProblem& conv, int images, int rows,
                                              std::int64_t most_bytes = kBlockBytes) {
  const std::int64_t x_rows =
      images > 1 ? conv.H
                 : std::min<std::int64_t>(conv.H, (rows - 1) * std::int64_t{conv.stride.h} +
                                                      window_extent(conv.R, conv.dilation.h));
  const auto floats = [](std::int64_t a, std::int64_t b) {
    // Both values are clamped to the size of shared memory before the multiplication: no overflow.
    constexpr std::int64_t kTooLarge = kMaxSharedBytes;
    return static_cast<int>(
        flat_room(std::min(std::min(a, kTooLarge) * std::min(b, kTooLarge), kTooLarge)));
  };
  DepthwisePlan plan{
      .images = images,
      .rows = rows,
      .x_floats = floats(x_rows, conv.W),
      .dy_floats = floats(rows, conv.Q),
      .parts = 0,
      .splits = 1,
      .parts_each = 1,
      .columns = conv.R * conv.S + 1,
      .segments = std::min(ceil_div(conv.Q, kSegment / std::min(conv.stride.w, 2)), kMaxSegments),
      .by_segments = {},
      .by_rows = FastDivision(rows),
      .by_bands = FastDivision(ceil_div(conv.P, rows)),
      .by_multiplier = FastDivision(conv.K / conv.C)};
  plan.by_segments = FastDivision(plan.segments);
  if (images * rows * plan.segments > kDepthwiseThreads) return {};
  if (plan.bytes() > most_bytes) return {};
  plan.parts = images > 1 ? ceil_div(conv.N, images) : conv.N * ceil_div(conv.P, rows);
  plan.splits = std::clamp(static_cast<int>(kEnoughBlocks / conv.K), 1, std::max(1, plan.parts));
  plan.parts_each = ceil_div(std::max(1, plan.parts), plan.splits);
  plan.splits = std::max(1, ceil_div(plan.parts, plan.parts_each));
  return plan;
}

/// As many whole images as fit, or else as many rows as fit, at least one.
inline std::optional<DepthwisePlan> plan_of(const Conv2dProblem& conv) {
  // As few parts as fit kDepthwiseStages, as images of equal number.
  for (int images = std::min(64, std::max(1, ceil_div(conv.N, kDepthwiseStages))); images > 0;
       --images) {
    if (const auto plan = plan_with(conv, images, conv.P)) return plan;
  }
  for (int rows = std::min(conv.P, kDepthwiseThreads); rows > 1; --rows) {
    if (const auto plan = plan_with(conv, 1, rows)) return plan;
  }
  return plan_with(conv, 1, 1, kMaxSharedBytes - kDeclaredBytes);
}

/// Whether whole planes are copied in vectors, at most one vector a thread; they are aligned if x
/// and dy are.
inline bool planes_of_vectors(const Conv2dProblem& conv, const DepthwisePlan& plan, int threads) {
  const std::int64_t x_floats = std::int64_t{conv.H} * conv.W;
  const std::int64_t dy_floats = std::int64_t{conv.P} * conv.Q;
  return plan.rows == conv.P && x_floats <= plan.x_floats && x_floats % 4 == 0 &&
         dy_floats % 4 == 0 && std::max(x_floats, dy_floats) <= 4 * threads;
}

/// A part of the batch: images n ... n + images - 1, all of their rows or some.
struct ImagePart {
  int n, images;  ///< the first one, and how many
  int p, rows;    ///< the first row of dy, and how many
  int h, x_rows;  ///< the same of x
};

/// Part `index` of the batch: some images, or some rows of one image.
__device__ inline ImagePart part_at(const Conv2dProblem& conv, const DepthwisePlan& plan,
                                    int index) {
  if (plan.images > 1) {
    const int n = index * plan.images;
    return {n, min(plan.images, conv.N - n), 0, conv.P, 0, conv.H};
  }
  const int n = plan.by_bands.quotient(index);
  const int p = plan.by_bands.remainder(index, n) * plan.rows, rows = min(plan.rows, conv.P - p);
  const int first = p * conv.stride.h - conv.pad.top;
  const int last = first + (rows - 1) * conv.stride.h + (conv.R - 1) * conv.dilation.h;
  const int h = min(max(first, 0), conv.H);
  return {n, 1, p, rows, h, min(max(last + 1, h), conv.H) - h};
}

/// Where an image's piece of the part begins.
__device__ inline const float* x_of(const Conv2dProblem& conv, const ImagePart& part, int image,
                                    int c, const float* x) {
  return x + ((std::int64_t{part.n + image} * conv.C + c) * conv.H + part.h) * conv.W;
}

/// The same in dy.
__device__ inline const float* dy_of(const Conv2dProblem& conv, const ImagePart& part, int image,
                                     int k, const float* dy) {
  return dy + ((std::int64_t{part.n + image} * conv.K + k) * conv.P + part.p) * conv.Q;
}

/// The block begins to copy planes, one of each image, to places `room` floats apart. by_vectors
/// divides by the vectors of a plane. A thread keeps its vector, and goes from image to image: an
/// addition a copy, where its place in each image would cost ten instructions.
__device__ inline void load_planes(const float* from, std::int64_t image_size, int images,
                                   const FastDivision& by_vectors, float* to, int room) {
  const int thread = static_cast<int>(threadIdx.x);
  const int at_once = by_vectors.quotient(static_cast<int>(blockDim.x));
  const int first = by_vectors.quotient(thread);
  const int place = 4 * by_vectors.remainder(thread, first);
  if (first >= at_once) return;
  from += first * image_size + place;
  to += first * room + place;
  for (int image = first; image < images; image += at_once) {
    ptx::cp_async<16>(to, from);
    from += at_once * image_size;
    to += at_once * room;
  }
}

/// The block begins to copy a part to `to`: x and dy of each image.
__device__ inline void load_part(const Conv2dProblem& conv, const DepthwisePlan& plan,
                                 const ImagePart& part, int c, int k, const float* x,
                                 const float* dy, float* to) {
  const int room = plan.x_floats + plan.dy_floats;
  if (plan.x_vectors > 0) {
    load_planes(x_of(conv, part, 0, c, x), std::int64_t{conv.C} * conv.H * conv.W, part.images,
                plan.by_x_vectors, to, room);
    load_planes(dy_of(conv, part, 0, k, dy), std::int64_t{conv.K} * conv.P * conv.Q, part.images,
                plan.by_dy_vectors, to + plan.x_floats, room);
    return;
  }
  // Planes may begin anywhere: a warp copies one after the other.
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = warp; i < 2 * part.images; i += static_cast<int>(blockDim.x) / 32) {
    float* image = to + i / 2 * room;
    if (i % 2 == 0) {
      flat_load(image, x_of(conv, part, i / 2, c, x), part.x_rows * conv.W, lane, 32);
    } else {
      flat_load(image + plan.x_floats, dy_of(conv, part, i / 2, k, dy), part.rows * conv.Q, lane,
                32);
    }
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
