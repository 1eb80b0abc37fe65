/// @file precomputed_offsets.cu
/// @brief Precomputed offsets: pixels are decoded once, taps are read from a table, padding is a
/// bit mask.
///
/// - Before: register_tile.cu
/// - After: packed_weights.cu
/// - The same maths: cpu_reference/conv2d/implicit_gemm.cpp
///
/// **The idea.** An element's address is an offset of its pixel plus an offset of its k. A thread
/// gathers for one pixel, whose offset it computes once. The offsets of all k are the same for
/// every pixel: a small kernel writes them into a table. Padding depends on both, but row and
/// column are tested separately: R + S bits of a pixel say which rows and columns of taps lie in x.
///
///     pixel (once a thread):  n, p, q -> an offset, and R + S bits
///     k (once a launch):      c, r, s -> an offset, and the two bits that it needs
///
///             r 0 1 2   s 0 1 2
///     pixel:    0 1 1     1 1 0      the top right corner, 3 x 3 filter, padding 1
///     needs:    1 0 0     0 1 0      tap (0, 1): bit r = 0 is missing, the element is zero
///
/// **Expect.** A gathered element takes a load from the table (the same entry for the whole warp),
/// a bit test, an addition and its load: 10 instructions instead of 110. A step is 650 instructions
/// for 512 multiply-adds, 51 TFLOP/s at best on an H200. But it waits for the table, then for x,
/// and an SM has only two blocks to switch between: with 65 % of the issue slots used, 33 TFLOP/s,
/// 7.2 ms for B10 (64x512x28x28, 512 filters 3x3). B4 (64 filters) gathers twice as much per
/// multiply-add.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect loads_per_output.workspace 16 * 3 * 3 / 32 = 4.5, of the table, for each of x
/// @expect sectors_per_request.workspace.load 1, the same entry for the whole warp
/// @expect bytes_per_lane.workspace.load 16
/// @expect loads_per_output.x 16 * 46 * 46 / (16 * 16) / 32 = 4.133, as before; 46 of 48 taps in x
/// @expect launches 2
/// **Costs.** A workspace of 16 bytes per weight of a filter, and a launch to fill it. Not
/// supported: filters with R + S over 63, and what tiled.cu does not support.
/// **Try.** Compare h and w with H and W instead of the bits. How many registers does it take?
#include "core/conv2d_problem.hpp"
#include "core/fast_division.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/window_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {

/// One k = (c, r, s): 16 bytes, one load.
struct alignas(16) TapEntry {
  std::int64_t offset;  ///< c * H * W + r * dilation.h * W + s * dilation.w
  std::uint64_t bits;   ///< bit r and bit R + s
};

/// Divisions that split a pixel, counted through all images, into image, row and column.
struct PixelDivisions {
  FastDivision image;  ///< by P * Q
  FastDivision row;    ///< by Q

  /// For the pixels of that problem's output.
  explicit PixelDivisions(const Conv2dProblem& conv) : image(conv.P * conv.Q), row(conv.Q) {}
};

/// The pixel that a thread gathers for.
struct GatheredPixel {
  std::int64_t offset = 0;  ///< of the window's corner in x, negative in the padding
  std::uint64_t missing = ~std::uint64_t{0};  ///< bit r: row r of taps is not in x; bit R + s

  /// @param j counted through all images; a pixel beyond the last one misses all taps
  __device__ GatheredPixel(const Conv2dProblem& conv, const PixelDivisions& divide, int j) {
    if (j >= conv.N * conv.P * conv.Q) return;
    const int n = divide.image.quotient(j), in_image = divide.image.remainder(j, n);
    const int p = divide.row.quotient(in_image), q = divide.row.remainder(in_image, p);
    const int h0 = p * conv.stride.h - conv.pad.top, w0 = q * conv.stride.w - conv.pad.left;
    offset = (std::int64_t{n} * conv.C * conv.H + h0) * conv.W + w0;
    for (int r = 0; r < conv.R; ++r) {
      const int h = h0 + r * conv.dilation.h;
      if (h >= 0 && h < conv.H) missing &= ~(std::uint64_t{1} << r);
    }
    for (int s = 0; s < conv.S; ++s) {
      const int w = w0 + s * conv.dilation.w;
      if (w >= 0 && w < conv.W) missing &= ~(std::uint64_t{1} << (conv.R + s));
    }
  }

  /// Whether that tap of the pixel's window lies in x.
  __device__ bool has(const TapEntry& tap) const { return (tap.bits & missing) == 0; }
};

inline constexpr int kTableStep = 16;  ///< Steps of k a tile, at most.

/// Entries of the table: depth, rounded up to whole tiles.
static int table_entries(const Conv2dProblem& conv) {
  return ceil_div(ProductSizes(conv).depth, kTableStep) * kTableStep;
}

/// table [entries]: entries after the last tap describe taps that no pixel has. Grid <=
/// ceil(entries/256), block 256.
static __global__ void conv2d_make_tap_table(Conv2dProblem conv, int entries, FastDivision by_s,
                                             FastDivision by_r, TapEntry* table) {
  const ProductSizes sizes(conv);
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < entries;
       i += std::int64_t{gridDim.x} * 256) {
    const int k = static_cast<int>(i);
    if (k >= sizes.depth) {
      table[k] = {0, ~std::uint64_t{0}};  // R + S < 64: there is a bit that all pixels miss
      continue;
    }
    const int rows = by_s.quotient(k), s = by_s.remainder(k, rows);  // c * R + r
    const int c = by_r.quotient(rows), r = by_r.remainder(rows, c);
    table[k] = {(std::int64_t{c} * conv.H + r * conv.dilation.h) * conv.W + s * conv.dilation.w,
                std::uint64_t{1} << r | std::uint64_t{1} << (conv.R + s)};
  }
}

/// The reason not to support a problem: the table has too few bits.
static Declined why_no_tap_table(const Conv2dProblem& conv) {
  if (conv.R + conv.S > 63) return "R + S is over 63, more than the bits of a pixel hold";
  return {};
}

/// Bytes of the table.
static std::size_t tap_table_bytes(const Conv2dProblem& conv) {
  return static_cast<std::size_t>(table_entries(conv)) * sizeof(TapEntry);
}

/// Fills the table.
static void launch_tap_table(const Conv2dProblem& conv, TapEntry* table) {
  const int entries = table_entries(conv);
  launch(conv2d_make_tap_table, {dim3(blocks_for(entries, 256)), dim3(256)}, conv, entries,
         FastDivision(conv.S), FastDivision(conv.R), table);
}

namespace {

constexpr int kTileK = 8;  ///< Steps of k a tile.

/// The sums of a block, kTileM filters x kTileN pixels, and of a thread.
template <int kTileM_, int kTileN_, int kThread_, int kBlocks_>
struct Tiles {
  static constexpr int kTileM = kTileM_, kTileN = kTileN_;
  static constexpr int kThread = kThread_;  ///< kThread filters x kThread pixels
  static constexpr int kThreadsN = kTileN / kThread;
  static constexpr int kThreads = kTileM / kThread * kThreadsN;
  static constexpr int kBlocks = kBlocks_;                    ///< Blocks that an SM must hold.
  static constexpr int kLoadsM = kTileM * kTileK / kThreads;  ///< Loads of a thread for a tile.
  static constexpr int kLoadsN = kTileN * kTileK / kThreads;
  static_assert(kTileM * kTileK % kThreads == 0 && kTileN * kTileK % kThreads == 0);
  static_assert(kThreads % kTileN == 0, "all elements that a thread gathers are of one pixel");

  /// The i-th of a thread's filters, or pixels, counted from its first one: pieces of four, as far
  /// apart as all threads' pieces are wide.
  HOST_DEVICE static constexpr int at(int i, int tile) {
    return i / 4 * (tile * 4 / kThread) + i % 4;
  }
};
using Large = Tiles<128, 128, 8, 2>;
using Half = Tiles<64, 128, 8, 3>;
using Small = Tiles<32, 32, 4, 8>;

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
/// Grid: a block for each tile, block T::kThreads.
template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    conv2d_implicit_gemm_precomputed_offsets(Conv2dProblem conv, PixelDivisions divide,
                                             const float* x, const float* weights,
                                             const TapEntry* table, const float* bias, float* y) {
  // The weights are transposed, so that m is contiguous. A warp fills four columns of eight rows:
  // with four floats between the rows, these are 32 banks.
  __shared__ __align__(16) float w_tile[kTileK][T::kTileM + 4];  // [k][m]
  __shared__ __align__(16) float x_tile[kTileK][T::kTileN];      // [k][j]

  const ProductSizes sizes(conv);
  const auto block = TileOfBlock::find<T>(sizes);
  const int thread = static_cast<int>(threadIdx.x);
  const int thread_m = thread / T::kThreadsN * 4, thread_j = thread % T::kThreadsN * 4;
  const GatheredPixel pixel(conv, divide,
                            block.pixel + thread % T::kTileN);  // that this thread gathers for

  const std::int64_t corner =
      pixel.offset + std::int64_t{block.group} * (conv.C / conv.groups) * conv.H * conv.W;
  const int first_filter = block.group * sizes.filters + block.filter;
  const int filters = sizes.filters - block.filter;  // of the group, from that one on
  // The thread's first weight of a tile; its others lie kThreads / kTileK filters apart.
  const int w_m = thread / kTileK, w_k = thread % kTileK;
  const std::int64_t w_at = (std::int64_t{first_filter} + w_m) * sizes.depth + w_k;
  float sums[T::kThread][T::kThread] = {};
  for (int k0 = 0; k0 < sizes.depth; k0 += kTileK) {
    // All loads, then all stores: a store waits for its load, and would stall the loads after it.
    // Zeros beyond the edges: they add nothing, and the inner loop needs no tests.
    float w_loaded[T::kLoadsM], x_loaded[T::kLoadsN];
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      constexpr int kApart = T::kThreads / kTileK;
      w_loaded[e] = w_m + e * kApart < filters && k0 + w_k < sizes.depth
                        ? weights[w_at + std::int64_t{e * kApart} * sizes.depth + k0]
                        : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const TapEntry tap = table[k0 + thread / T::kTileN + e * (T::kThreads / T::kTileN)];
      x_loaded[e] = pixel.has(tap) ? x[corner + tap.offset] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsM; ++e) {
      const int i = thread + e * T::kThreads;
      w_tile[i % kTileK][i / kTileK] = w_loaded[e];
    }
#pragma unroll
    for (int e = 0; e < T::kLoadsN; ++e) {
      const int i = thread + e * T::kThreads;
      x_tile[i / T::kTileN][i % T::kTileN] = x_loaded[e];
    }
    __syncthreads();  // separates these stores from the loads below
#pragma unroll
    for (int k = 0; k < kTileK; ++k) {
      float w_values[T::kThread], x_values[T::kThread];
#pragma unroll
      for (int i = 0; i < T::kThread; ++i) {
        w_values[i] = w_tile[k][thread_m + T::at(i, T::kTileM)];
        x_values[i] = x_tile[k][thread_j + T::at(i, T::kTileN)];
      }
#pragma unroll
      for (int i = 0; i < T::kThread; ++i) {
#pragma unroll
        for (int e = 0; e < T::kThread; ++e) sums[i][e] += w_values[i] * x_values[e];
      }
    }
    __syncthreads();  // separates these loads from the next step's stores
  }
#pragma unroll
  for (int e = 0; e < T::kThread; ++e) {
    const int j = block.pixel + thread_j + T::at(e, T::kTileN);
    if (j >= sizes.pixels) break;
    const int n = divide.image.quotient(j), in_image = divide.image.remainder(j, n);
#pragma unroll
    for (int i = 0; i < T::kThread; ++i) {
      const int m = thread_m + T::at(i, T::kTileM);
      if (m >= filters) break;
      const int filter = first_filter + m;
      y[(std::int64_t{n} * conv.K + filter) * sizes.image_pixels + in_image] =
          activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i][e]);
    }
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (const Declined reason = why_no_product_row_by_row(conv)) return reason;
  return why_no_tap_table(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) { return tap_table_bytes(conv); }

/// Launches the kernel with these tiles.
template <class T>
void launch_with(const Conv2dProblem& conv, const Conv2dArrays& arrays, const TapEntry* table) {
  launch(conv2d_implicit_gemm_precomputed_offsets<T>,
         {TileOfBlock::grid<T>(conv), dim3(T::kThreads)}, conv, PixelDivisions(conv), arrays.x,
         arrays.weights, table, arrays.bias, arrays.y);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  auto* table = context.workspace_as<TapEntry>();
  launch_tap_table(conv, table);
  switch (shape_for(conv)) {
    case TileShape::large: return launch_with<Large>(conv, arrays, table);
    case TileShape::half: return launch_with<Half>(conv, arrays, table);
    case TileShape::small: return launch_with<Small>(conv, arrays, table);
  }
}

std::string choice_in_words(const Conv2dProblem& conv) { return in_words(shape_for(conv)); }

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_precomputed_offsets = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
