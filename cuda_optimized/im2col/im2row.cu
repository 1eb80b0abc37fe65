/// @file im2row.cu
/// @brief im2row in NHWC: windows become rows, and a thread copies four channels at a time.
///
/// - Before: im2col_vectorized.cu
/// - The same maths: cpu_reference/im2col/im2row.cpp
///
/// **The idea.** With channels innermost, windows are rows of the matrix, and each tap of a window
/// is a pixel: C floats that are contiguous in x *and* in the row. Nothing has to be shifted: four
/// channels are a float4 in both. A thread owns one float4 of the row, which is a tap and four
/// channels, and steps along a run of windows of a line. A step is `stride` pixels in x, and one
/// row in col, so an index is decoded once per run, and the loads of its windows are in flight
/// together.
///
///     row of a window   [ tap 0: c0-3 c4-7 ...  | tap 1: c0-3 ...  |  ...  | tap R*S-1 ]
///     threads                    0    1              C/4
///       window q                 v    v               v       a warp stores 512 bytes in a row,
///       window q + 1             v    v               v       and reads runs of C floats
///
/// **Expect.** The bytes are the limit, as in im2col_vectorized: B4 reads 26 MB and writes 231 MB,
/// 61 us at the 4.2 TB/s of a copy on an H200; B10 245 us, B9 490 us. R * S threads read the same
/// pixel soon after one another, and all but the first hit the caches. All loads are aligned: 0.92
/// of a copy's speed. B3 has 3 channels: a thread has single floats, and decodes for 8 of them.
/// @expect on --c 4 --size 34,66 --kernel 3,3 --layout nhwc
/// @expect bytes_per_lane.x.load 16, four channels
/// @expect loads_per_output.x 1 / 4 = 0.25
/// @expect lanes_per_output.col.store 1 / 4 = 0.25
/// **Costs.** Vectors need C % 4 = 0 and arrays that are aligned to 16 bytes. Not supported:
/// layouts other than NHWC, types other than float32, 2^30 or more threads per image.
/// **Try.** Number the threads window by window instead, each with all taps of four channels. How
/// many sectors do the stores of a warp touch when C is 4, and when it is 512?
#include "core/cuda/launch.hpp"
#include "core/fast_division.hpp"
#include "core/im2col_problem.hpp"
#include "core/implementation.hpp"

namespace convladder::BACKEND::cuda_optimized::im2col {
namespace {

constexpr int kThreads = 256;
/// Windows of a thread: the fewer bytes each has, the more of them share a decoding.
template <class Vector>
constexpr int kRun = sizeof(Vector) == sizeof(float) ? 8 : 4;
/// So many that a thread usually has one piece of work; with more work than that, threads stride.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 22;
constexpr std::int64_t kMaxImageThreads = (std::int64_t{1} << 30) - 1;

/// What the host works out for the kernel. Vectors are of kWidth channels.
struct Rows {
  FastDivision by_row, by_pieces, by_height, by_depth;  ///< Vectors of a row; runs of a line; P; O.
  FastDivision by_channels, by_width_taps, by_height_taps;  ///< Vectors of a pixel; S; R.
  int vectors, channels;                                    ///< In a row; in a pixel.
  std::int64_t image0;                                      ///< The first image of this launch.
  int threads;                                              ///< Threads that have work.
};

__device__ float sum(float a, float b) { return a + b; }
__device__ float4 sum(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

/// x [N][D][H][W][C], col [N][windows][taps][C], both in vectors. A thread has one vector of the
/// rows of kRun neighbouring windows, or of those that the line has left. Any one-dimensional grid.
/// @tparam Vector float4 if C is a multiple of 4 and both arrays are aligned to 16 bytes, or float
template <class Vector>
__global__ void __launch_bounds__(kThreads)
    im2col_im2row(const __grid_constant__ Im2colProblem problem, const __grid_constant__ Rows rows,
                  const Vector* x, Vector* col) {
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const bool add = problem.request == Request::add;

  const int grid_threads = static_cast<int>(gridDim.x * blockDim.x);
  int item = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (; item < rows.threads; item += grid_threads) {
    const int run = rows.by_row.quotient(item), place = rows.by_row.remainder(item, run);
    const int line = rows.by_pieces.quotient(run);  // of windows, counted through all images
    const int q = rows.by_pieces.remainder(run, line) * kRun<Vector>;
    const int windows = width.out - q;
    const int plane = rows.by_height.quotient(line), p = rows.by_height.remainder(line, plane);
    const int image = rows.by_depth.quotient(plane), o = rows.by_depth.remainder(plane, image);
    const std::int64_t n = rows.image0 + image;

    const int tap = rows.by_channels.quotient(place), c = rows.by_channels.remainder(place, tap);
    const int line_tap = rows.by_width_taps.quotient(tap);
    const int s = rows.by_width_taps.remainder(tap, line_tap);
    const int t = rows.by_height_taps.quotient(line_tap);
    const int r = rows.by_height_taps.remainder(line_tap, t);

    const int d = o * depth.stride - depth.pad_before + t * depth.dilation;
    const int h = p * height.stride - height.pad_before + r * height.dilation;
    unsigned w = static_cast<unsigned>(q * width.stride - width.pad_before + s * width.dilation);
    // A line in the padding is a line of no pixels. (Negative coordinates become huge ones.)
    const bool inside = static_cast<unsigned>(d) < static_cast<unsigned>(depth.size) &&
                        static_cast<unsigned>(h) < static_cast<unsigned>(height.size);
    const unsigned size = inside ? static_cast<unsigned>(width.size) : 0;
    // Offsets, and no pointers, which might leave their arrays.
    std::int64_t from = inside ? (n * depth.size + d) * height.size + h : 0;
    from = (from * width.size + static_cast<int>(w)) * rows.channels + c;
    std::int64_t to = ((n * depth.out + o) * height.out + p) * width.out + q;
    to = to * rows.vectors + place;
    const std::int64_t step = std::int64_t{width.stride} * rows.channels;

    Vector values[kRun<Vector>];
#pragma unroll
    for (int i = 0; i < kRun<Vector>; ++i) {
      values[i] = i < windows && w < size ? x[from] : Vector{};
      w += static_cast<unsigned>(width.stride);
      from += step;
    }
#pragma unroll
    for (int i = 0; i < kRun<Vector>; ++i) {
      if (i < windows) __stcs(col + to, add ? sum(col[to], values[i]) : values[i]);
      to += rows.vectors;
    }
  }
}

/// Whether channels are four at a time, if the arrays are aligned to 16 bytes.
bool channels_in_fours(const Im2colProblem& problem) { return problem.C % 4 == 0; }

/// True if channels can be copied four at a time.
bool in_fours(const Im2colProblem& problem, const float* x, const float* col) {
  const auto aligned = [](const float* array) {
    return reinterpret_cast<std::uintptr_t>(array) % sizeof(float4) == 0;
  };
  return channels_in_fours(problem) && aligned(x) && aligned(col);
}

/// Runs of windows of a line.
template <class Vector>
int line_pieces(const Im2colProblem& problem) {
  return ceil_div(problem.width.out, kRun<Vector>);
}

/// Runs of windows of an image.
template <class Vector>
std::int64_t image_pieces(const Im2colProblem& problem) {
  return std::int64_t{problem.depth.out} * problem.height.out * line_pieces<Vector>(problem);
}

template <class Vector>
void launch_im2row(const Im2colProblem& problem, const float* x, float* col) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
  const WindowAxis &depth = problem.depth, &height = problem.height, &width = problem.width;
  const int vectors = static_cast<int>(problem.rows() / kWidth), channels = problem.C / kWidth;
  const int pieces = line_pieces<Vector>(problem);
  Rows rows{.by_row = FastDivision(vectors),
            .by_pieces = FastDivision(pieces),
            .by_height = FastDivision(height.out),
            .by_depth = FastDivision(depth.out),
            .by_channels = FastDivision(channels),
            .by_width_taps = FastDivision(width.kernel),
            .by_height_taps = FastDivision(height.kernel),
            .vectors = vectors,
            .channels = channels,
            .image0 = 0,
            .threads = 0};
  // Threads are numbered by ints: with more of them than that, a launch for some of the images
  // after the other.
  const std::int64_t of_image = image_pieces<Vector>(problem) * vectors;
  const std::int64_t step = (kMaxImageThreads + 1) / of_image;
  for (; rows.image0 < problem.N; rows.image0 += step) {
    const std::int64_t images = std::min(step, problem.N - rows.image0);
    rows.threads = static_cast<int>(images * of_image);
    launch(im2col_im2row<Vector>, {blocks_for(rows.threads, kThreads, kMaxBlocks), kThreads},
           problem, rows, reinterpret_cast<const Vector*>(x), reinterpret_cast<Vector*>(col));
  }
}

Declined supports(const Im2colProblem& problem) {
  if (problem.layout != Layout::nhwc) return "layout nhwc only";
  if (problem.dtype != DType::f32) return "float32 only";
  if (image_pieces<float4>(problem) > kMaxImageThreads / problem.rows()) {
    return "2^30 or more threads an image";
  }
  return {};
}

void run(const Im2colProblem& problem, const Im2colArrays& arrays, const Context&) {
  if (problem.request == Request::none) return;
  const float* x = arrays.x;
  float* col = arrays.col;
  if (in_fours(problem, x, col)) {
    launch_im2row<float4>(problem, x, col);
  } else {
    launch_im2row<float>(problem, x, col);
  }
}

std::string choice_in_words(const Im2colProblem& problem) {
  if (problem.request == Request::none) return "nothing to do";
  return channels_in_fours(problem) ? "four channels a thread" : "a channel a thread";
}

}  // namespace

extern const Implementation<Im2colArrays> im2row = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::im2col
