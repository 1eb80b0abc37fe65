/// @file plane_tile.cuh
/// @brief How the depthwise rungs cut planes: several whole ones per block, or a band of rows of
/// one.
///
/// A channel's plane of outputs depends on that channel's inputs alone: forward, one plane of x
/// becomes K/C planes of y; backward, K/C planes of dy become one of dx. Planes lie one after the
/// other, so that as many as fit are loaded, and stored, as contiguous memory.
#pragma once

#include <algorithm>
#include <optional>

#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// Columns that a thread covers of the wider of the two planes, whose rows have 14, 28, 56 ...
inline constexpr int kSegment = 14;
inline constexpr int kPlaneThreads = 128;  ///< Of a block, at most.
/// With more filters a channel the work is no longer like a copy: other rungs take these.
inline constexpr int kMaxMultiplier = 8;

/// Floats of shared memory for a copy of `count` by flat_load(), wherever it begins: a multiple
/// of 4.
HOST_DEVICE constexpr std::int64_t flat_room(std::int64_t count) { return (count + 3 + 3) / 4 * 4; }

/// What a block computes at once.
struct PlanePlan {
  bool whole;       ///< Whole planes, in and out, with room for all their rows; else bands of rows.
  int planes;       ///< Channels' planes, one after the other; more than one only as a whole.
  int rows;         ///< Rows of each output plane.
  int multiplier;   ///< K/C: planes of y for each one of x.
  int rounds;       ///< One after the other: all K/C planes at once, or one in each round.
  int in_floats;    ///< Room for the inputs of a round, a multiple of 4.
  int out_floats;   ///< Room for the outputs.
  int segments;     ///< Threads along a row; the block is [planes][rows][segments] threads.
  bool goes_round;  ///< A row is longer than its threads' segments.
  FastDivision by_segments, by_rows, by_channels;  ///< For a thread's place.

  /// Of a block, in whole warps.
  int threads() const { return ceil_div(planes * rows * segments, 32) * 32; }
  /// Of shared memory.
  std::int64_t bytes() const {
    return (std::int64_t{in_floats} + out_floats) * std::int64_t{sizeof(float)};
  }
  /// Planes of y of a channel and round.
  HOST_DEVICE int together() const { return rounds == 1 ? multiplier : 1; }
};

/// What a thread computes.
struct PlanePlace {
  int plane, row, segment;  ///< Counted from the block's first ones.
  int channel;              ///< Of x.
};

/// The thread's place; the block begins with plane `plane0` of N * C.
__device__ inline PlanePlace plane_place(const PlanePlan& plan, int plane0, int thread) {
  const int line = plan.by_segments.quotient(thread), plane = plan.by_rows.quotient(line);
  // A thread beyond the last plane computes nothing, but its channel must still be a valid number.
  const int n = plan.by_channels.quotient(plane0 + plane);
  return {plane, plan.by_rows.remainder(line, plane), plan.by_segments.remainder(thread, line),
          plan.by_channels.remainder(plane0 + plane, n)};
}

/// The inputs or outputs: planes of rows x columns, `each` of them a channel.
struct Planes {
  int rows, columns, each;  ///< Of a plane; planes a channel.
};

/// As many whole planes as fit and leave enough blocks, or else as many rows as fit, at least one;
/// nothing if that does not fit either.
/// @param columns of an output row that a thread computes
/// @param in_rows in_rows(rows): rows of an input plane that so many output rows read
template <class InRows>
std::optional<PlanePlan> plan_planes(const Conv2dProblem& conv, Planes in, Planes out, int columns,
                                     const InRows& in_rows) {
  constexpr std::int64_t kBlockBytes = 13 * 1024;  // of shared memory: an SM holds 16 blocks
  constexpr std::int64_t kEnoughBlocks = 512;      // more planes a block only if so many remain
  constexpr int kMaxSegments = 16;                 // longer rows go round
  const int multiplier = conv.K / conv.C;
  const auto plan_with = [&](std::int64_t planes, int rows,
                             bool whole) -> std::optional<PlanePlan> {
    // All factors end at the size of shared memory before they are multiplied: no overflow.
    const auto floats = [&](Planes of, std::int64_t of_rows) {
      constexpr std::int64_t kTooLarge = kMaxSharedBytes;
      const std::int64_t count = whole ? planes * of.each : 1;
      return static_cast<int>(flat_room(std::min(
          std::min(std::min(count * of_rows, kTooLarge) * of.columns, kTooLarge), kTooLarge)));
    };
    PlanePlan plan{
        .whole = whole,
        .planes = static_cast<int>(planes),
        .rows = rows,
        .multiplier = multiplier,
        .rounds = whole ? 1 : multiplier,
        .in_floats = floats(in, whole ? in.rows : std::min<std::int64_t>(in.rows, in_rows(rows))),
        .out_floats = floats(out, rows),
        .segments = std::min(ceil_div(out.columns, columns), kMaxSegments),
        .goes_round = ceil_div(out.columns, columns) > kMaxSegments,
        .by_segments = {},
        .by_rows = FastDivision(rows),
        .by_channels = FastDivision(conv.C)};
    plan.by_segments = FastDivision(plan.segments);
    if (planes * rows * plan.segments > kPlaneThreads) return {};
    if (plan.bytes() > std::int64_t{kMaxSharedBytes}) return {};
    return plan;
  };
  const auto fits = [](const std::optional<PlanePlan>& plan) {
    return plan && plan->bytes() <= kBlockBytes;
  };
  const std::int64_t most =
      std::max<std::int64_t>(1, std::int64_t{conv.N} * conv.C / kEnoughBlocks);
  for (std::int64_t planes = std::min<std::int64_t>(most, 64); planes > 0; --planes) {
    if (const auto plan = plan_with(planes, out.rows, true); fits(plan)) return plan;
  }
  for (int rows = std::min(out.rows, kPlaneThreads); rows > 1; --rows) {
    if (const auto plan = plan_with(1, rows, false); fits(plan)) return plan;
  }
  return plan_with(1, 1, false);
}

/// For a rung's choice.
inline std::string in_words(const PlanePlan& plan) {
  return text(!plan.whole        ? "bands of a plane"
              : plan.planes == 1 ? "a whole plane"
                                 : "several whole planes",
              plan.goes_round ? ", rows go round" : "",
              plan.multiplier == 1 ? ""
              : plan.rounds == 1   ? ", several filters together"
                                   : ", several rounds");
}

/// Why such a rung does not support a problem, where plan_planes() has nothing to do with it.
inline Declined not_depthwise(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.groups != conv.C) return "one input channel a group only (groups = C)";
  if (conv.K / conv.C > kMaxMultiplier) {
    return text("at most ", kMaxMultiplier, " filters a channel, not ", conv.K / conv.C);
  }
  if (std::int64_t{conv.N} * conv.K > INT32_MAX) return "2^31 and more planes";
  return {};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
