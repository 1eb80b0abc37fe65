/// @file split_k.cuh
/// @brief The GEMM of a weight gradient in NCHW: its sizes, split-K (implicit_gemm/split_k.cu
/// explains it), and the taps of a window outside of x as bits (implicit_gemm/cp_async.cu).
///
/// Bits of a window: rows of taps from bit 0 on, columns from bit 31 down, and between them bit R,
/// which is always set.
///
///     window:  0 1 1 0 ... 0 1 0 0 1      tap (r, s):  0 1 0 ... 0 0 1 0
///              columns    R   rows                       s         r
#pragma once

#include <algorithm>
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// A tile of dw that a block computes; a thread has 8 x 8 accumulators of it.
struct TileShape {
  int filters, columns;  ///< Rows and columns of the tile.
  int resident;          ///< Blocks that an SM holds.
  int lanes_m = 4;       ///< Threads of a warp that lie below each other.

  /// Threads of the block that computes the tile.
  constexpr int threads() const { return filters * columns / 64; }
};

/// For few filters.
inline constexpr TileShape kSmallTile{.filters = 64, .columns = 64, .resident = 6};
/// For few columns.
inline constexpr TileShape kTallTile{.filters = 128, .columns = 64, .resident = 3};
/// The fewest loads for each product.
inline constexpr TileShape kLargeTile{.filters = 128, .columns = 128, .resident = 2};
/// For 64 filters and many columns.
inline constexpr TileShape kWideTile{.filters = 64, .columns = 192, .resident = 2};
/// For a first layer: 147 columns of 3 channels and 7 x 7 taps.
inline constexpr TileShape kFirstLayerTile{
    .filters = 64, .columns = 160, .resident = 3, .lanes_m = 8};

/// The same as types: host code of nvcc 13.0 has no kernels whose template arguments are values of
/// a class.
struct SmallTile {
  static constexpr TileShape kShape = kSmallTile;  ///< see there
};
struct TallTile {
  static constexpr TileShape kShape = kTallTile;  ///< see there
};
struct LargeTile {
  static constexpr TileShape kShape = kLargeTile;  ///< see there
};
struct WideTile {
  static constexpr TileShape kShape = kWideTile;  ///< see there
};
struct FirstLayerTile {
  static constexpr TileShape kShape = kFirstLayerTile;  ///< see there
};

/// For a rung's choice.
inline std::string in_words(const TileShape& shape) {
  return text(shape.filters, " x ", shape.columns);
}

/// The product dw = dy * col^T of each group, and how it is assigned to blocks.
struct SplitProduct {
  Conv2dProblem conv;            ///< The convolution whose weight gradient it is.
  int group_k = 0, group_c = 0;  ///< Filters and channels of a group.
  int columns = 0;               ///< C/G * R * S
  int pixels = 0;                ///< N * P * Q: the length of each sum.
  int tiles_m = 0, tiles_n = 0;  ///< Tiles of a group's dw.
  int split_pixels = 0;  ///< Summed up by one block, a multiple of the step; the last has the rest.
  int splits = 1;        ///< Blocks that share a tile.
  FastDivision plane, row;  ///< Division of a pixel's number by P * Q, of its place by Q.
  FastDivision by_dilation_h, by_dilation_w;  ///< For the bits of taps.

  /// Weights, all groups together.
  HOST_DEVICE constexpr std::int64_t weights() const { return std::int64_t{conv.K} * columns; }
};

/// Where a block's tile lies.
struct SplitTile {
  int group, m, n;             ///< Group, tile's row and column in there.
  int split;                   ///< Part of the sum: pixels pixel_begin ... pixel_end - 1.
  int pixel_begin, pixel_end;  ///< See `split`.
};

/// Tile `number` of all groups; which part of it is up to the caller.
__device__ inline SplitTile tile_at(const SplitProduct& product, int number) {
  SplitTile tile{};
  tile.n = number % product.tiles_n;
  tile.m = number / product.tiles_n % product.tiles_m;
  tile.group = number / product.tiles_n / product.tiles_m;
  return tile;
}

/// Why a product has extents that ints do not hold.
inline Declined too_large_for_ints(const Conv2dProblem& conv) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
  if (plane > kMax / std::max(1, conv.N) - 64) return "2^31 or more pixels (n * p * q) to sum over";
  if (std::int64_t{conv.C} / conv.groups * conv.H * conv.W > kMax) {
    return "2^31 or more inputs an image and group (c/groups * h * w)";
  }
  if (std::int64_t{conv.C} / conv.groups * conv.R * conv.S > kMax - 1024) {
    return "2^31 or more columns (c/groups * r * s)";
  }
  return {};
}

/// An H200, for estimates. The number of parts depends on the problem alone, not on the GPU: then
/// so do the bits of dw.
inline constexpr int kSms = 132;
inline constexpr double kPartBytes = 4e6;            ///< Of parts moved in a microsecond.
inline constexpr double kReductionMicroseconds = 3;  ///< A launch, and the latency of its loads.
inline constexpr int kStartSteps = 6;    ///< What a block's first loads and last stores take.
inline constexpr int kMaxSplits = 1024;  ///< Parts of a sum, at most.

/// The product in parts of `shape`, and an estimate of its time in microseconds.
struct Plan {
  SplitProduct product;  ///< With its splits and split_pixels.
  double microseconds;   ///< The estimate, adding up the parts included.
};

/// As many parts as take the least time: with few, SMs are idle in the last wave of blocks (or in
/// the only one); with many, the parts' traffic and the blocks' beginnings cost more than that.
/// @param teraflops what the kernel reaches on an H200 where only the products counts
/// @param step pixels that a block multiplies at a time
inline Plan plan_for(const Conv2dProblem& conv, const TileShape& shape, double teraflops, int step,
                     int most_splits) {
  SplitProduct product;
  product.conv = conv;
  product.group_k = conv.K / conv.groups;
  product.group_c = conv.C / conv.groups;
  product.columns = product.group_c * conv.R * conv.S;
  product.pixels = conv.N * conv.P * conv.Q;
  product.tiles_m = ceil_div(product.group_k, shape.filters);
  product.tiles_n = ceil_div(product.columns, shape.columns);
  product.plane = FastDivision(conv.P * conv.Q);
  product.row = FastDivision(conv.Q);
  product.by_dilation_h = FastDivision(conv.dilation.h);
  product.by_dilation_w = FastDivision(conv.dilation.w);
  const std::int64_t tiles = std::int64_t{product.tiles_m} * product.tiles_n * conv.groups;
  const int steps = std::max(1, ceil_div(product.pixels, step));
  // Of all blocks that an SM holds, in microseconds.
  const double step_time =
      2.0 * shape.filters * shape.columns * step * shape.resident / (teraflops * 1e6 / kSms);
  const auto part_bytes = 2.0 * static_cast<double>(product.weights()) * sizeof(float);

  Plan best{product, std::numeric_limits<double>::infinity()};
  for (int splits = 1; splits <= std::min(most_splits, steps); ++splits) {
    const int split_steps = ceil_div(steps, splits);
    if (ceil_div(steps, split_steps) != splits) continue;  // some part would be empty
    const auto waves =
        static_cast<double>(ceil_div(tiles * splits, std::int64_t{kSms} * shape.resident));
    double time = waves * (split_steps + kStartSteps) * step_time;
    if (splits > 1) {
      time += kReductionMicroseconds + splits * part_bytes / kPartBytes;
    }
    if (time < best.microseconds) {
      best.microseconds = time;
      best.product.splits = splits;
      best.product.split_pixels = split_steps * step;
    }
  }
  return best;
}

/// Even shares: all tiles' steps in a row, cut into as many equal pieces as there are blocks,
/// whether or not a tile ends there. Every block of an SM is busy to the end, however many tiles
/// there are.
///
///       tile 0               tile 1               tile 2
///     | . . . . . . . . . |  . . . . . . . . . |  . . . . . . . . . |
///       block 0         block 1       block 2         block 3
///
/// A tile has as many parts as blocks take part in it; SplitProduct::splits is the most that any
/// has.
struct EvenShares {
  int steps = 0;   ///< Of a tile.
  int blocks = 0;  ///< That share all of them.
  int across = 1;  ///< So many neighbouring blocks have the same part of different tiles' sums.
  std::int64_t all_steps = 0;  ///< Of all tiles.

  /// Which share a block gets: blocks that run at the same time should read the same pixels.
  HOST_DEVICE constexpr int share_of(int block) const {
    return block % across * (blocks / across) + block / across;
  }
  /// The first step of a share.
  HOST_DEVICE constexpr std::int64_t begin_of(int share) const {
    return share * all_steps / blocks;
  }
  /// The share that has this step.
  HOST_DEVICE constexpr int share_with(std::int64_t step) const {
    return static_cast<int>(((step + 1) * blocks - 1) / all_steps);
  }
};

/// A product in even shares.
struct EvenPlan {
  SplitProduct product;  ///< What is computed.
  EvenShares shares;     ///< Which block computes what of it.
  double microseconds;   ///< An estimate of its time.

  /// Whether no share has steps of two tiles.
  bool whole_tiles() const { return shares.across * product.splits == shares.blocks; }
};

/// As many shares as a multiple of the tiles, which makes the same parts as plan_for() does; or as
/// an H200 holds blocks: no wave is cut short then, but most blocks begin and end twice.
inline EvenPlan even_plan_for(const Conv2dProblem& conv, const TileShape& shape, double teraflops,
                              int step, int most_splits) {
  const Plan plan = plan_for(conv, shape, teraflops, step, most_splits);
  EvenPlan even{plan.product, {}, plan.microseconds};
  SplitProduct& product = even.product;
  const std::int64_t tiles = std::int64_t{product.tiles_m} * product.tiles_n * conv.groups;
  const int steps = std::max(1, ceil_div(product.pixels, step));
  even.shares = {steps, static_cast<int>(tiles * product.splits), static_cast<int>(tiles),
                 tiles * steps};
  const int resident = kSms * shape.resident;
  const std::int64_t share = even.shares.all_steps / resident;
  if (share < kStartSteps || tiles > 4 * resident) return even;
  const double step_time =
      2.0 * shape.filters * shape.columns * step * shape.resident / (teraflops * 1e6 / kSms);
  const auto part_bytes = 2.0 * static_cast<double>(product.weights()) * sizeof(float);
  const auto most_parts = static_cast<int>(ceil_div<std::int64_t>(steps - 1, share) + 1);
  const double time = static_cast<double>(share + 1 + 2 * kStartSteps) * step_time +
                      kReductionMicroseconds + most_parts * part_bytes / kPartBytes;
  if (most_parts <= most_splits && time < even.microseconds) {
    even.microseconds = time;
    even.shares.blocks = resident;
    even.shares.across = 1;
    product.splits = most_parts;
  }
  return even;
}

inline constexpr int kMaxTaps = 31;  ///< R + S: bits of a word, but one.

/// Why a filter has too many taps, if so.
inline Declined too_many_taps(const Conv2dProblem& conv) {
  if (std::int64_t{conv.R} + conv.S <= kMaxTaps) return {};
  return text("r + s = ", std::int64_t{conv.R} + conv.S, ": the bits of a word tell ", kMaxTaps,
              " taps apart");
}

/// The taps of one axis that lie outside of x, as bits: taps before 0, and from `size` on.
/// @param at where tap 0 lies
__device__ inline unsigned taps_outside(int at, int taps, int size, int dilation,
                                        const FastDivision& by_dilation) {
  const int before = at < 0 ? min(by_dilation.quotient(dilation - 1 - at), taps) : 0;
  const int end = at < size ? min(by_dilation.quotient(size - 1 - at) + 1, taps) : 0;
  const auto below = [](int n) { return n < 32 ? (1u << n) - 1 : ~0u; };
  return below(before) | ~below(end);
}

/// The bits of a window that begins at (h, w) of x: set for rows and columns of taps outside.
__device__ inline unsigned bits_outside(const Conv2dProblem& conv,
                                        const FastDivision& by_dilation_h,
                                        const FastDivision& by_dilation_w, int h, int w) {
  const unsigned rows = taps_outside(h, conv.R, conv.H, conv.dilation.h, by_dilation_h);
  const unsigned columns = taps_outside(w, conv.S, conv.W, conv.dilation.w, by_dilation_w);
  return (rows & ((1u << conv.R) - 1)) | __brev(columns & ((1u << conv.S) - 1)) | 1u << conv.R;
}

/// The bits of a tap: it lies in x where a window has none of them.
__device__ inline unsigned bits_of_tap(int r, int s) { return 1u << r | 1u << (31 - s); }

/// The bits of what is never in x.
__device__ inline unsigned bits_of_none(const Conv2dProblem& conv) { return 1u << conv.R; }

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
