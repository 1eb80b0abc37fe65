/// @file col2im_vectorized.cu
/// @brief Vector access: col is loaded as 16-byte vectors, and partial sums are shifted between
/// lanes by shuffles.
///
/// - Before: col2im_strided_steps.cu
/// - The same maths: cpu_reference/col2im/col2im.cpp
///
/// **The idea.** A thread computes 4 adjacent pixels (with stride 2, 8), so that it could load 4
/// adjacent elements of a row of col at once. But the tap before or after the centre needs elements
/// one further left or right, which are not an aligned vector. So every lane loads the aligned
/// vector of its own position from each row, adds those of one tap, and only then shifts the sums:
/// a shuffle passes what belongs to the adjacent lane's pixels. The first and the last lane of a
/// warp have no adjacent lane on one side, and only supply their sums. So 30 lanes have pixels of
/// their own, and warps overlap by two.
///
///     3 taps, padding 1       lane 5: q = 20 21 22 23     lane 6: q = 24 25 26 27
///     tap 0: pixel q - 1      20 -> pixel 19 (lane 4)     24 -> pixel 23 (lane 5)
///     tap 1: pixel q          all stay
///     tap 2: pixel q + 1      23 -> pixel 24 (lane 6)     27 -> pixel 28 (lane 7)
///
/// **Expect.** col is loaded once from memory, in aligned vectors; a fifteenth more from L1. Bytes
/// as for im2col: at the speed of a copy, 61 us for B3 and B4, 490 us for B9 and 245 us for B10.
/// @expect on --c 4 --size 32,64 --kernel 3,3 --pad 1
/// @expect bytes_per_lane.col.load 16
/// @expect bytes_per_lane.x.store 16
/// @expect lanes_per_output.x.store 1 / 4 = 0.25
/// **Costs.** Rows of col and x must be aligned vectors (Q % 4 = 0, W % 4 = 0), strides at most 4,
/// and no tap may reach past the adjacent four; all else runs the kernel of col2im_strided_steps.
/// Not supported: as in that rung.
/// **Try.** Without the two extra lanes, lanes 0 and 31 could load the missing elements themselves.
/// How many more loads does a warp issue then, and how many bytes fewer?
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/col2im/col2im_strided_steps.cuh"
#include "cuda_optimized/col2im/shared/strided_steps.cuh"

namespace convladder::BACKEND::cuda_optimized::col2im {
namespace {

constexpr int kThreads = 256;
/// Blocks that an SM must hold at once: up to 64 registers a thread. With twice as many registers
/// all loads of a piece are in flight at once, but an SM holds half as many threads: slower.
[[maybe_unused]] constexpr int kBlocks = 4;
/// So many that a warp usually has one piece of work; with more work than that, warps stride.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 22;
constexpr int kMaxStride = 4;
/// Lanes of a warp that have pixels of their own; the first and the last only help their
/// neighbours.
constexpr int kOwners = 30;

/// Pieces of one launch, and of a channel times the stride: so that a piece and its first pixel are
/// ints.
constexpr std::int64_t kMostPieces = std::int64_t{1} << 29;

/// What the host works out for the kernel.
struct Vectors {
  Steps steps;
  FastDivision by_plane, by_row, by_height;  ///< By the pieces of a channel, of a row; by H.
  std::int64_t channel0 = 0;                 ///< The first channel, counted over all images.
  int pieces = 0;  ///< In all these channels: 4 * stride neighbours of a row of x each.
  int row_pieces = 0;
};

__device__ void add(float4& sum, float4 term) {
  sum.x += term.x;
  sum.y += term.y;
  sum.z += term.z;
  sum.w += term.w;
}

/// sums[e] += what lies `ahead` elements before element e of this lane's four, in the four of this
/// lane, of the previous one, or of the next one. All lanes of the warp take part.
__device__ void add_shifted(float (&sums)[4], const float (&own)[4], int ahead, bool has_previous,
                            bool has_next) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int from = e - ahead;                        // -4 ... 7, the same for all lanes
    const int hop = from < 0 ? -1 : from > 3 ? 1 : 0;  // so many lanes on
    const int element = from & 3;
    const float mine = element == 0   ? own[0]
                       : element == 1 ? own[1]
                       : element == 2 ? own[2]
                                      : own[3];
    const float value = hop == 0 ? mine : __shfl_sync(~0u, mine, lane + hop);
    if (hop == 0 || (hop < 0 ? has_previous : has_next)) sums[e] += value;
  }
}

/// col [N*C * taps][windows], x [N*C][D][H][W]. Any one-dimensional grid.
/// @tparam kStride horizontal stride
/// @tparam kTaps, kReaders taps of a row, and the most windows above each other that read a pixel;
/// 0, 0: as many as the problem has
template <int kStride, int kTaps, int kReaders>
__global__ void __launch_bounds__(kThreads, kBlocks)
    col2im_col2im_vectorized(const __grid_constant__ Im2colProblem problem,
                             const __grid_constant__ Vectors vectors, const float* col, float* x) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const Steps& steps = vectors.steps;
  const std::int64_t windows = problem.columns(), taps = problem.kernel_volume();
  const int row_taps = kTaps > 0 ? kTaps : width.kernel;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int grid_warps = static_cast<int>(gridDim.x * blockDim.x / 32);
  int warp = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  for (; warp <= (vectors.pieces - 1) / kOwners; warp += grid_warps) {
    const int wanted = warp * kOwners + lane - 1;
    const int piece = min(max(wanted, 0), vectors.pieces - 1);
    const int c = vectors.by_plane.quotient(piece);
    const int in_plane = vectors.by_plane.remainder(piece, c);
    const int row = vectors.by_row.quotient(in_plane);
    const int in_row = vectors.by_row.remainder(in_plane, row), q = 4 * in_row;
    const int d = vectors.by_height.quotient(row), h = vectors.by_height.remainder(row, d);
    const std::int64_t nc = vectors.channel0 + c;
    const bool has_previous = in_row > 0, has_next = in_row + 1 < vectors.row_pieces;

    const Readers of_d = readers_of(depth, steps.depth, d + depth.pad_before);
    Readers of_h = readers_of(height, steps.height, h + height.pad_before);
    if (q >= width.out) of_h.count = 0;  // beyond the last window; Q is a multiple of 4
    const std::int64_t tap = (std::int64_t{of_d.tap} * height.kernel + of_h.tap) * width.kernel;
    const std::int64_t window = (std::int64_t{of_d.window} * height.out + of_h.window) * width.out;
    const std::int64_t first = (nc * taps + tap) * windows + window + q;  // in col, if any reads

    float sums[kStride][4] = {};  // sums[rest][e]: of pixel (q + e) * kStride + rest
#pragma unroll(kTaps > 0 ? kTaps : 1)
    for (int s = 0; s < row_taps; ++s) {
      // Windows q ... q + 3 of all window rows that read this row of x, added up.
      float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
      for (int i = 0; i < of_d.count; ++i) {
        const std::int64_t from = first + i * steps.col_depth + s * windows;
        if constexpr (kReaders > 0) {
          float4 rows[kReaders];
#pragma unroll
          for (int j = 0; j < kReaders; ++j) {
            rows[j] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (j < of_h.count) {
              rows[j] = *reinterpret_cast<const float4*>(col + from + j * steps.col_height);
            }
          }
#pragma unroll
          for (int j = 0; j < kReaders; ++j) add(four, rows[j]);
        } else {
          for (int j = 0; j < of_h.count; ++j) {
            add(four, *reinterpret_cast<const float4*>(col + from + j * steps.col_height));
          }
        }
      }
      // Window q reads pixel q * kStride + at as its tap s.
      const int at = s * width.dilation - width.pad_before;
      const int ahead = at >= 0 ? at / kStride : -((kStride - 1 - at) / kStride);
      const int rest = at - ahead * kStride;
      const float own[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int k = 0; k < kStride; ++k) {
        if (rest == k) add_shifted(sums[k], own, ahead, has_previous, has_next);
      }
    }

    if (wanted != piece || lane == 0 || lane == 31) continue;
    float* to = x + ((nc * depth.size + d) * height.size + h) * width.size + q * kStride;
#pragma unroll
    for (int i = 0; i < kStride; ++i) {
      if (q * kStride + 4 * i >= width.size) break;  // W is a multiple of 4
      float four[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) four[e] = sums[(4 * i + e) % kStride][(4 * i + e) / kStride];
      float4* out = reinterpret_cast<float4*>(to) + i;
      float4 value = {0.0f, 0.0f, 0.0f, 0.0f};
      if (problem.request == Request::add) value = *out;
      add(value, {four[0], four[1], four[2], four[3]});
      *out = value;
    }
  }
}

using Kernel = void (*)(Im2colProblem, Vectors, const float*, float*);

/// The kernel for any filter.
Kernel any_filter(int stride) {
  switch (stride) {
    case 1: return col2im_col2im_vectorized<1, 0, 0>;
    case 2: return col2im_col2im_vectorized<2, 0, 0>;
    case 3: return col2im_col2im_vectorized<3, 0, 0>;
    default: return col2im_col2im_vectorized<4, 0, 0>;
  }
}

/// Common filters without dilation have kernels whose loops are unrolled, so that all loads of a
/// piece are in flight at the same time.
Kernel kernel_for(const Im2colProblem& problem) {
  const WindowAxis &height = problem.height, &width = problem.width;
  if (problem.depth.kernel == 1 && height.kernel == width.kernel && height.dilation == 1 &&
      width.dilation == 1 && height.stride == width.stride) {
    if (width.stride == 1 && width.kernel == 1) return col2im_col2im_vectorized<1, 1, 1>;
    if (width.stride == 1 && width.kernel == 3) return col2im_col2im_vectorized<1, 3, 3>;
    if (width.stride == 1 && width.kernel == 5) return col2im_col2im_vectorized<1, 5, 5>;
    if (width.stride == 2 && width.kernel == 3) return col2im_col2im_vectorized<2, 3, 2>;
    if (width.stride == 2 && width.kernel == 7) return col2im_col2im_vectorized<2, 7, 4>;
  }
  return any_filter(width.stride);
}

/// Pieces of a row of x: enough for its pixels, and for its windows. With wide padding there are
/// more of these.
int row_pieces_of(const Im2colProblem& problem) {
  const WindowAxis& width = problem.width;
  return std::max(ceil_div(width.size, 4 * width.stride), width.out / 4);
}

/// Whether rows of col and x begin and end at multiples of 16 bytes, if the arrays do, no tap leads
/// past the neighbouring four, and the pieces of a channel are few enough for ints.
bool made_of_vectors(const Im2colProblem& problem) {
  const WindowAxis& width = problem.width;
  const std::int64_t rows = std::int64_t{problem.depth.size} * problem.height.size;
  return width.out % 4 == 0 && width.size % 4 == 0 && width.stride <= kMaxStride &&
         width.pad_before <= 4 * width.stride &&
         (width.kernel - 1) * std::int64_t{width.dilation} - width.pad_before <= 4 * width.stride &&
         rows <= kMostPieces / width.stride / row_pieces_of(problem);
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nchw) return "layout nchw only";
  if (problem.dtype != DType::f32) return "float32 only";
  return too_large_for_steps(problem);
}

void run(const Im2colProblem& problem, const Col2imArrays& arrays, const Context&) {
  const float* col = arrays.col;
  float* x = arrays.x;
  if (problem.request == Request::none) return;
  const auto aligned = [](const float* array) {
    return reinterpret_cast<std::uintptr_t>(array) % sizeof(float4) == 0;
  };
  if (!made_of_vectors(problem) || !aligned(col) || !aligned(x)) {
    return launch_col2im_strided_steps(problem, col, x);
  }

  const WindowAxis& height = problem.height;
  const int row_pieces = row_pieces_of(problem);
  const int plane_pieces = problem.depth.size * height.size * row_pieces;
  Vectors vectors{.steps = steps_of(problem),
                  .by_plane = FastDivision(plane_pieces),
                  .by_row = FastDivision(row_pieces),
                  .by_height = FastDivision(height.size),
                  .row_pieces = row_pieces};
  // Pieces are numbered by ints: with more of them than that, a launch for some of the channels
  // after the other.
  const std::int64_t channels = std::int64_t{problem.N} * problem.C;
  const std::int64_t step = kMostPieces / plane_pieces;
  for (; vectors.channel0 < channels; vectors.channel0 += step) {
    const std::int64_t some = std::min(step, channels - vectors.channel0);
    vectors.pieces = static_cast<int>(some * plane_pieces);
    const std::int64_t warps = ceil_div(vectors.pieces, kOwners);
    launch(kernel_for(problem), {blocks_for(warps, kThreads / 32, kMaxBlocks), kThreads}, problem,
           vectors, col, x);
  }
}

std::string choice_in_words(const Im2colProblem& problem) {
  if (problem.request == Request::none) return "nothing to do";
  if (!made_of_vectors(problem)) return "single floats";
  const int stride = problem.width.stride;
  return text("in fours, stride ", stride, ", ",
              kernel_for(problem) == any_filter(stride)
                  ? "any filter"
                  : text(problem.width.kernel, " x ", problem.width.kernel, " unrolled"));
}

}  // namespace

extern const Implementation<Col2imArrays> col2im_vectorized = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::col2im
