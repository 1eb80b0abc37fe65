/// @file fused.cu
/// @brief Fused FFT convolution: the transforms of x and y and the product are one kernel; spectra
/// stay on the SM.
///
/// - Before: winograd/fused.cu
/// - The same maths: cpu_reference/conv2d/fft_real.cpp
///
/// **The idea.** A tile of 64 x 64 complex points is 32 KB of shared memory, and eight points per
/// thread are registers of 512 threads. So a block loads two tiles of x as one complex tile,
/// transforms them, multiplies, transforms back and stores two tiles of y. Only filters are
/// transformed beforehand. Lines move between registers and shared memory; a line's threads belong
/// to one warp, so that block barriers are needed only where rows become columns:
///
///     x -> rows: 8 x 8 points  -> | turn | -> columns -> X conj(W), over channels
///     y <- rows of the outputs <- | turn | <- columns <-   in the same registers
///
/// With several channels or filters per group, each of a block's teams of threads transforms one at
/// a time, and the spectra are kept in shared memory. Teams synchronise once, between channels and
/// filters.
///
/// **Expect.** A depthwise filter of 31 x 31 on 64x384x32x32 has 48 GFLOP by the definition, 790 us
/// of multiply-adds alone. Here 12288 pairs of tiles take 4.8 GFLOP in butterflies, 160 us at half
/// of the peak, and 3 GB through shared memory, 106 us: with what does not overlap 300 us. cuDNN
/// takes 5.8 ms. B1 (1x6x768x512, 6 filters 6 x 6), in tiles of 32 x 32: 15 us.
/// @expect on --n 2 --c 1 --h 32 --w 32 --k 1 --r 31 --s 31 --pad 15
/// @expect launches 3, twiddle factors, filters and the rest
/// @expect barriers_per_block 2 + 1 = 3, a transposition in each direction, and that of the filters
/// @expect excess.shared.load 0, no bank twice
/// @expect excess.shared.store 0, likewise
/// **Costs.** Rounding errors relative to the norm of a tile, not to an output's products; an
/// integer result is close to an integer, and equals it after rounding. NaN and infinity spread
/// over both tiles, of which the second may be of the next image. Not supported: strides, more than
/// 16 channels per group, filters that reach over more than 32 pixels, NHWC, other types than
/// float32.
/// **Try.** Let the threads of a line exchange points by shuffles. On what does each of them wait?
#include <limits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/fft/fourier_tile.cuh"
#include "cuda_optimized/fft/shared/line_access.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kMaxReach = 32;      ///< Half of the largest tile.
constexpr int kMostChannels = 16;  ///< Of a group: with more, fft/3xtf32 computes GEMMs.

/// The most teams of a block, and how many blocks per SM shall hold, for tiles of t x t.
constexpr int most_teams(int t) { return t == 64 ? 1 : t == 32 ? 3 : 8; }
constexpr int resident(int t) { return t == 64 ? 2 : t == 32 ? 3 : 4; }

/// How outputs are divided, and the work among threads.
struct Plan {
  int T;                      ///< Points of a tile along each axis.
  int rows, columns;          ///< Outputs that are kept of a tile.
  int down, across;           ///< Tiles of an image.
  std::int64_t tiles, pairs;  ///< Of all images; where the kernel runs, 32 bits hold them.
  int teams;                  ///< Of a block.

  /// The first output of a tile.
  struct Place {
    int n, p, q;
  };
  /// Of tile `tile`; n is too large where there is none.
  __device__ Place place_of(unsigned tile) const {
    const unsigned row = tile / static_cast<unsigned>(across);
    const unsigned n = row / static_cast<unsigned>(down);
    return {static_cast<int>(n), static_cast<int>(row - n * static_cast<unsigned>(down)) * rows,
            static_cast<int>(tile - row * static_cast<unsigned>(across)) * columns};
  }
};

/// Pixels that a filter reaches over, less one.
std::int64_t reach_h(const Conv2dProblem& conv) {
  return std::int64_t{conv.R - 1} * conv.dilation.h;
}
std::int64_t reach_w(const Conv2dProblem& conv) {
  return std::int64_t{conv.S - 1} * conv.dilation.w;
}

Plan plan_with(const Conv2dProblem& conv, int t) {
  Plan plan{};
  plan.T = t;
  plan.rows = t - static_cast<int>(reach_h(conv));
  plan.columns = t - static_cast<int>(reach_w(conv));
  plan.down = ceil_div(conv.P, plan.rows), plan.across = ceil_div(conv.Q, plan.columns);
  plan.tiles = std::int64_t{conv.N} * plan.down * plan.across;
  plan.pairs = ceil_div<std::int64_t>(plan.tiles, 2);
  const int work = std::max(conv.C / conv.groups, conv.K / conv.groups);
  plan.teams = ceil_div(work, ceil_div(work, most_teams(t)));  // as many as share the rounds evenly
  return plan;
}

/// Whether a block's one spectrum stays in registers: one filter has one channel.
HOST_DEVICE bool is_depthwise(const Conv2dProblem& conv) {
  return conv.C == conv.groups && conv.K == conv.groups;
}

__device__ Point conjugate(Point z) { return {z.re, -z.im}; }

/// A tile for each team, and the spectra of the channels.
std::size_t shared_bytes(const Conv2dProblem& conv, const Plan& plan) {
  const int tiles = plan.teams + (is_depthwise(conv) ? 0 : conv.C / conv.groups);
  return sizeof(Point) * static_cast<std::size_t>(tiles * plan.T * plan.T);
}

/// The tile whose transforms have the fewest operations in all, of those that there is room for.
Plan plan_of(const Conv2dProblem& conv) {
  Plan best{};
  double fewest = 0;
  for (int t = 16, passes = 4; t <= 2 * kMaxReach; t *= 2, ++passes) {
    if (t <= reach_h(conv) || t <= reach_w(conv)) continue;
    const Plan plan = plan_with(conv, t);
    if (shared_bytes(conv, plan) > max_shared_bytes()) continue;
    const double operations = static_cast<double>(plan.pairs) * t * t * passes;
    if (best.T == 0 || operations < fewest) best = plan, fewest = operations;
  }
  return best;
}

/// weights [K][C/groups][R][S], filters [K C/groups][8][team]: spectra over the number of points,
/// as the threads of a team hold them. A block is a team, and takes a filter's channel.
template <int T>
__global__ void __launch_bounds__(FourierTile<T>::kTeam)
    conv2d_fft_fused_filters(Conv2dProblem conv, const Point* twiddles, const float* weights,
                             Point* filters) {
  using Tile = FourierTile<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const Tile tile(thread, dynamic_shared<Point>(), twiddles);
  const std::int64_t kc = blockIdx.x;
  Point v[8] = {};
  const int r = tile.line / conv.dilation.h;
  if (tile.line % conv.dilation.h == 0 && r < conv.R) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int s = tile.number(i) / conv.dilation.w;
      if (tile.number(i) % conv.dilation.w == 0 && s < conv.S)
        v[i].re = weights[(kc * conv.R + r) * conv.S + s];
    }
  }
  tile.template transform_lines<false>(v);
  tile.template turn_lines<false>(v, [](int) { return true; });
  tile.template transform_lines<true>(v);
  constexpr float kScale = 1.0f / Tile::kPoints;  // a power of two: exact
#pragma unroll
  for (int i = 0; i < 8; ++i)
    filters[kc * Tile::kPoints + i * Tile::kTeam + thread] = {v[i].re * kScale, v[i].im * kScale};
}

/// x [N][C][H][W], filters as above, bias [K] or null, y [N][K][P][Q].
/// Grid: for each group its pairs of tiles; block: teams. Shared memory as shared_bytes() says.
template <int T>
__global__ void __launch_bounds__(most_teams(T) * FourierTile<T>::kTeam, resident(T))
    conv2d_fft_fused(Conv2dProblem conv, Plan plan, const Point* twiddles, const float* x,
                     const Point* filters, const float* bias, float* y) {
  using Tile = FourierTile<T>;
  const int thread = static_cast<int>(threadIdx.x) % Tile::kTeam;
  const int team = static_cast<int>(threadIdx.x) / Tile::kTeam;
  Point* const tiles = dynamic_shared<Point>();               // [team][T][T]
  Point* const spectra = tiles + plan.teams * Tile::kPoints;  // [channel][8][thread]
  const Tile tile(thread, tiles + team * Tile::kPoints, twiddles);
  const unsigned pairs = static_cast<unsigned>(plan.pairs), pair = blockIdx.x % pairs;
  const int group = static_cast<int>(blockIdx.x / pairs);
  const Plan::Place first = plan.place_of(2 * pair), second = plan.place_of(2 * pair + 1);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const bool depthwise = is_depthwise(conv);

  /// Pixels of a row of a tile's window, as far as there are any.
  const auto load = [&](const Plan::Place& at, int c, float(&pixels)[8]) {
    const int h = at.p - conv.pad.top + tile.line, w0 = at.q - conv.pad.left + tile.place;
    const bool exists = c < group_c && at.n < conv.N && h >= 0 && h < conv.H;
    const std::int64_t plane = std::int64_t{at.n} * conv.C + group * group_c + c;
    const std::int64_t begin = (plane * conv.H + h) * conv.W + w0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int w = w0 + i * Tile::kLine;
      pixels[i] = exists && w >= 0 && w < conv.W ? x[begin + i * Tile::kLine] : 0.0f;
    }
    return exists;
  };
  /// Stores the outputs of a row of a tile that there are.
  const auto store = [&](const Plan::Place& at, int k, const float(&outputs)[8]) {
    const int p = at.p + tile.line, q0 = at.q + tile.place;
    if (at.n >= conv.N || p >= conv.P) return;
    const float bias_k = bias ? bias[k] : 0.0f;
    const std::int64_t begin = ((std::int64_t{at.n} * conv.K + k) * conv.P + p) * conv.Q + q0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (tile.number(i) < plan.columns && q0 + i * Tile::kLine < conv.Q)
        y[begin + i * Tile::kLine] = activated(conv.activation, outputs[i] + bias_k);
    }
  };

  Point v[8];
  for (int c0 = 0; c0 < group_c; c0 += plan.teams) {
    const int c = c0 + team;
    if (c0 > 0) __syncthreads();  // separates loads of columns from the next channel's rows
    float ones[8], others[8];
    const bool filled = load(first, c, ones) | load(second, c, others);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = {ones[i], others[i]};
    // Where all rows of a warp are zeros, so are their spectra.
    if (__any_sync(~0u, filled)) tile.template transform_lines<false>(v);
    tile.template turn_lines<false>(v, [](int) { return true; });
    tile.template transform_lines<true>(v);
    if (c < group_c && !depthwise) {
#pragma unroll
      for (int i = 0; i < 8; ++i) spectra[c * Tile::kPoints + i * Tile::kTeam + thread] = v[i];
    }
  }
  if (!depthwise) __syncthreads();  // separates all teams' stores of spectra from the loads below

  for (int k0 = 0; k0 < group_k; k0 += plan.teams) {
    const int k = group * group_k + k0 + team;
    const bool exists = k0 + team < group_k;
    if (k0 > 0) __syncthreads();  // separates loads of rows from the next filter's columns
    const Point* filter = filters + std::int64_t{k} * group_c * Tile::kPoints + thread;
    if (depthwise) {
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = conjugate(v[i]) * filter[i * Tile::kTeam];
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = {};
      for (int c = 0; exists && c < group_c; ++c) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const int at = c * Tile::kPoints + i * Tile::kTeam;
          v[i] = v[i] + conjugate(spectra[at + thread]) * filter[at];
        }
      }
    }
    // From conj(X) W a forward transform leads to conj(y1 + i y2).
    tile.template transform_lines<true>(v);
    tile.template turn_lines<true>(v, [&](int i) { return tile.number(i) < plan.rows; });
    if (!__any_sync(~0u, tile.line < plan.rows)) continue;  // rows that are not kept
    tile.template transform_lines<false>(v);
    if (!exists || tile.line >= plan.rows) continue;
    float ones[8], others[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) ones[i] = v[i].re, others[i] = -v[i].im;
    store(first, k, ones);
    store(second, k, others);
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.stride.h != 1 || conv.stride.w != 1) return "stride 1 only";
  // Tiles may end beyond y by less than one.
  constexpr int kMost = std::numeric_limits<int>::max() - 2 * kMaxReach;
  if (conv.P > kMost || conv.Q > kMost) return "an extent of 2^31 - 64 or more";
  if (std::max(reach_h(conv), reach_w(conv)) >= kMaxReach)
    return "filters that reach over at most 32 pixels only";
  if (conv.C / conv.groups > kMostChannels) return "at most 16 channels a group only";
  const Plan plan = plan_of(conv);
  if (plan.T == 0) return "needs more shared memory than there is";
  if (plan.pairs > kMaxGridX / std::max(1, conv.groups)) return "too many tiles";
  if (std::int64_t{conv.K} * (conv.C / conv.groups) > kMaxGridX) return "too many filters";
  return {};
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const std::int64_t t = plan_of(conv).T, spectra = std::int64_t{conv.K} * (conv.C / conv.groups);
  return static_cast<std::size_t>(t + checked_product({spectra, t, t}, "points of filters")) *
         sizeof(Point);
}

template <int T>
void run_with(const Conv2dProblem& conv, const Plan& plan, const Conv2dArrays& arrays,
              const Context& context) {
  auto* const twiddles = context.workspace_as<Point>();
  Point* const filters = twiddles + T;
  fft::launch_twiddles(T, 8, twiddles);
  launch(conv2d_fft_fused_filters<T>,
         {static_cast<unsigned>(conv.K * (conv.C / conv.groups)), FourierTile<T>::kTeam,
          FourierTile<T>::kPoints * sizeof(Point)},
         conv, twiddles, arrays.weights, filters);
  launch(conv2d_fft_fused<T>,
         {static_cast<unsigned>(plan.pairs * conv.groups),
          static_cast<unsigned>(plan.teams * FourierTile<T>::kTeam), shared_bytes(conv, plan)},
         conv, plan, twiddles, arrays.x, filters, arrays.bias, arrays.y);
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const Plan plan = plan_of(conv);
  const auto run_tiles = plan.T == 64 ? run_with<64> : plan.T == 32 ? run_with<32> : run_with<16>;
  run_tiles(conv, plan, arrays, context);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Plan plan = plan_of(conv);
  return text("tiles of ", plan.T, ", ",
              is_depthwise(conv) ? "the spectrum in registers" : "spectra in shared memory");
}

}  // namespace

extern const Implementation<Conv2dArrays> fft_fused = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
