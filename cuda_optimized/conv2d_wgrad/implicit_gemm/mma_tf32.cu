/// @file mma_tf32.cu
/// @brief TF32 tensor cores (`mma.sync`) in NHWC: implicit GEMM whose steps are shared evenly by
/// the blocks.
///
/// - Before: cp_async.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** dw = dy^T * windows, summed over all pixels of all images. In NHWC both operands
/// are MN-major: a pixel's channels are contiguous. Both tiles are staged in this order:
///
///                 K/G                          R*S*C/G
///     pixel [ dy[pixel][k] ]^T   x   pixel [ x[p + r][q + s][c] ]   =   dw [K/G][R*S*C/G]
///
/// ldmatrix cannot transpose floats. But the assignment of rows of dw to rows of a fragment is
/// free: lane l may hold dw's rows 4 g ... 4 g + 3 (g = l / 4) as rows g, g + 8 of one fragment and
/// g, g + 8 of the next. Then its elements of a pixel are contiguous, and are loaded as 16 bytes:
///
///     pixel l % 4:  [ lane 0 | lane 4 | lane 8 | ...            ]   4 floats each, 32 rows of dw
///
/// The steps of all tiles of dw, one tile after the other, are cut into about as many even shares
/// as there are resident blocks, regardless of the ends of tiles: there is no partial wave. A
/// second kernel adds the parts of each tile in order: the same bits in every run on the same GPU.
///
/// **Expect.** A warp has 32 mma, 8 loads and 32 roundings for 8 pixels. An mma takes a quarter of
/// an SM 6 cycles, so 322 TFLOP/s at most: B4 23 us, B9 184 us, B10 735 us; but B10's 7.4 GB from
/// L2 take 1200 us at 6 TB/s, and B5's 128 MB 31 us. B6, B7, B8 add 6 to 10 us for their parts.
/// @expect on --n 1 --c 32 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect bytes_per_lane.dy.async 16
/// @expect loads_per_output.dy 2 * 64 * 256 / 4 / 18496 = 0.443, two tiles, in vectors
/// @expect launches 2
/// **Costs.** 107 KB of shared memory per block. C/G or K/G not a multiple of 4: copies of 4 bytes.
/// Not supported: fp32 problems, NCHW, compute capability below 8.0, R + S over 31, 2^31 steps.
/// **Try.** Round with ptx::to_tf32(), and look for FSETP in the machine code. What becomes of the
/// stall reason `wait`?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/mma_copies.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/mma_operands.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/split_k.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kAhead = kMmaThreads / kMmaStep;  ///< Steps whose pixels are found at once.

/// x [N][H][W][C], dy [N][P][Q][K], parts [blocks + tiles - 1][S.part()].
/// Grid (product.blocks), block (kMmaThreads).
template <class Shape, int kBytes>
__global__ void __launch_bounds__(kMmaThreads, Shape::kShape.blocks)
    conv2d_wgrad_implicit_gemm_mma_tf32(MmaProduct product, const float* x, const float* dy,
                                        float* parts) {
  constexpr MmaShape S = Shape::kShape;
  static_assert(S.M / S.warp_m * (S.N / S.warp_n) * 32 == kMmaThreads && kMmaThreads % S.M == 0);
  const Conv2dProblem& conv = product.conv;
  float* const tiles = dynamic_shared<float>();
  constexpr int kTiles = kMmaStages * S.floats();
  auto* const pixels = reinterpret_cast<MmaPixel*>(tiles + kTiles);  // [2][kMmaThreads]
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int warp_m = warp / (S.N / S.warp_n) * S.warp_m;
  const int warp_n = warp % (S.N / S.warp_n) * S.warp_n;
  constexpr int kWidth = kBytes / 4;
  using CopiesA = Copies<S.M, kWidth>;
  using CopiesB = Copies<S.N, kWidth>;
  const int a_row = thread / CopiesA::kPieces, a_m = thread % CopiesA::kPieces * kWidth;
  const int b_row = thread / CopiesB::kPieces, b_n = thread % CopiesB::kPieces * kWidth;

  const int last = product.begin_of(static_cast<int>(blockIdx.x) + 1);
  int next = product.begin_of(static_cast<int>(blockIdx.x));
  while (next < last) {
    // This block's share of a tile's sums.
    const int tile_number = product.by_steps.quotient(next);
    const int first_step = product.by_steps.remainder(next, tile_number);
    const int steps = min(last - next, product.steps - first_step);
    next += steps;
    const DwTile tile = tile_at<S>(product, tile_number);
    const int begin = first_step * kMmaStep, end = min(begin + steps * kMmaStep, product.pixels);

    // What this thread copies in each step. An address as an integer: beyond the last pixel or
    // filter it lies outside of dy, and is not used.
    const std::int64_t a_first = (std::int64_t{begin} + a_row) * conv.K +
                                 std::int64_t{tile.group} * product.filters + tile.m + a_m;
    std::uintptr_t a_from = reinterpret_cast<std::uintptr_t>(dy) + sizeof(float) * a_first;
    const int filters_left = product.filters - tile.m - a_m;
    int pixels_left = end - begin - a_row;
    unsigned b_tap[CopiesB::kChunks];  // its bits in MmaPixel::outside
    int b_from[CopiesB::kChunks];      // its offset from the window's first tap
#pragma unroll
    for (int i = 0; i < CopiesB::kChunks; ++i) {
      const int column = tile.n + b_n + i * kChunk;
      const bool inside = column < product.columns;
      const int tap = product.by_channels.quotient(inside ? column : 0);
      const int c = product.by_channels.remainder(inside ? column : 0, tap);
      const int r = product.by_taps_across.quotient(tap);
      const int s = product.by_taps_across.remainder(tap, r);
      b_tap[i] = inside ? bits_of_tap(r, s) : bits_of_none(conv);
      b_from[i] = (r * conv.dilation.h * conv.W + s * conv.dilation.w) * conv.C +
                  tile.group * (conv.C / conv.groups) + c;
    }

    // A pixel for each thread, which is kAhead steps; two such groups are known at a time.
    const auto decode = [&](int group) {
      const MmaPixel pixel = pixel_at(product, x, begin + group * kMmaThreads + thread, end);
      pixels[group % 2 * kMmaThreads + thread] = pixel;
    };
    // A quarter of the copies of a step, to the tiles at `to`; all four, and the pointers move on.
    MmaPixel at{};
    const auto copy = [&](int step, float* to, int quarter) {
#pragma unroll
      for (int i = quarter * CopiesA::kCount / 4; i < (quarter + 1) * CopiesA::kCount / 4; ++i) {
        const int row = i / CopiesA::kChunks * CopiesA::kRows;
        const int m = i % CopiesA::kChunks * kChunk;
        const bool inside = row < pixels_left && m < filters_left;
        ptx::cp_async<kBytes>(to + a_row * S.pitch_a() + a_m + (row * S.pitch_a() + m),
                              reinterpret_cast<const float*>(
                                  a_from + sizeof(float) * (std::int64_t{row} * conv.K + m)),
                              inside ? kBytes : 0);
      }
#pragma unroll
      for (int i = quarter * CopiesB::kCount / 4; i < (quarter + 1) * CopiesB::kCount / 4; ++i) {
        const int row = i / CopiesB::kChunks * CopiesB::kRows, chunk = i % CopiesB::kChunks;
        if (chunk == 0) at = pixels[step % (2 * kAhead) * kMmaStep + b_row + row];
        const bool inside = (at.outside & b_tap[chunk]) == 0;
        ptx::cp_async<kBytes>(
            to + b_row * S.pitch_b() + b_n + (S.floats_a() + row * S.pitch_b() + chunk * kChunk),
            reinterpret_cast<const float*>(at.x + sizeof(float) * b_from[chunk]),
            inside ? kBytes : 0);
      }
      if (quarter == 3) {
        a_from += sizeof(float) * std::int64_t{kMmaStep} * conv.K;
        pixels_left -= kMmaStep;
      }
    };

    decode(0);
    // Separates these pixels from their use; and the last tile's use of `tiles` from the copies.
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < kMmaStages - 1; ++step) {
      if (step < steps) {
#pragma unroll
        for (int quarter = 0; quarter < 4; ++quarter) {
          copy(step, tiles + step * S.floats(), quarter);
        }
      }
      ptx::cp_async_commit_group();  // also without copies: the waits below count groups
    }

    float sums[S.warp_m / 16][S.warp_n / 8][4] = {};
    float bias_sum = 0.0f;
    int now = 0, free = (kMmaStages - 1) * S.floats();  // where this step's tiles lie; free ones
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait_group<kMmaStages - 2>();
      // Makes everybody's copies of this step visible to all; separates the loads of the previous
      // step from the copies that now overwrite its tiles, and pixels that were found in the
      // previous step from their use.
      __syncthreads();
      const float* const a_tile = tiles + now + warp_m;
      const float* const b_tile = tiles + now + (S.floats_a() + warp_n);
      Factors<S> factors[2];
      factors[0].load(a_tile, b_tile);
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter) {
        if (quarter < 3) {
          const int k = 8 * quarter + 8;
          factors[(quarter + 1) % 2].load(a_tile + k * S.pitch_a(), b_tile + k * S.pitch_b());
        }
        if (step + kMmaStages - 1 < steps) copy(step + kMmaStages - 1, tiles + free, quarter);
        factors[quarter % 2].multiply(sums);
      }
      ptx::cp_async_commit_group();
      // The copies of the previous step were the last to use the pixels that these replace; those
      // of the next step are the first to use these.
      if (step % kAhead == kAhead - kMmaStages) decode(step / kAhead + 1);
      if (tile.n == 0) {
        constexpr int kRows = kMmaStep / S.bias_shares();
        const float* const column = tiles + now + thread / S.M * kRows * S.pitch_a() + thread % S.M;
        float four[4] = {};  // an addition waits four cycles for the one before
#pragma unroll
        for (int k = 0; k < kRows; ++k) four[k % 4] += column[k * S.pitch_a()];
        bias_sum += (four[0] + four[1]) + (four[2] + four[3]);
      }
      now = now + S.floats() < kTiles ? now + S.floats() : 0;
      free = free + S.floats() < kTiles ? free + S.floats() : 0;
    }
    __syncthreads();  // separates the last loads of the tiles from the stores of bias_sum

    // Numbers of blocks and tiles only grow along the steps: their sum tells the parts apart.
    float* const part = parts + (std::int64_t{blockIdx.x} + tile_number) * std::int64_t{S.part()};
    store_sums<S>(sums, warp_m, warp_n, part);
    if (tile.n == 0) {
      tiles[thread] = bias_sum;  // [kBiasShares][M]
      __syncthreads();           // separates these stores from the loads below
      if (thread < S.M) {
        for (int share = 1; share < S.bias_shares(); ++share) {
          bias_sum += tiles[share * S.M + thread];
        }
        part[S.M * S.N + thread] = bias_sum;
      }
    }
  }
}

/// Whether channels and filters are copied in fours, if x and dy are aligned to 16 bytes.
bool channels_in_fours(const Conv2dProblem& conv) {
  return conv.K / conv.groups % 4 == 0 && conv.C / conv.groups % 4 == 0;
}

/// A shape, the product in its tiles, and how to compute it.
struct Choice {
  MmaShape shape;
  MmaProduct product;
  void (*in_fours)(MmaProduct, const float*, const float*, float*);
  void (*one_by_one)(MmaProduct, const float*, const float*, float*);
  void (*add)(const MmaProduct&, const float*, float*, float*);
};

/// Shared memory of a block: the stages, and two groups of pixels.
constexpr std::size_t shared_bytes(const MmaShape& shape) {
  return static_cast<std::size_t>(kMmaStages * shape.floats()) * sizeof(float) +
         2 * kMmaThreads * sizeof(MmaPixel);
}

template <class Shape>
Choice choice_of(const Conv2dProblem& conv) {
  return {Shape::kShape, product_with(conv, Shape::kShape),
          conv2d_wgrad_implicit_gemm_mma_tf32<Shape, 16>,
          conv2d_wgrad_implicit_gemm_mma_tf32<Shape, 4>, launch_add_mma_parts<Shape>};
}

Choice choose(const Conv2dProblem& conv) {
  const std::size_t shared = max_shared_bytes();
  const int filters = conv.K / conv.groups;
  const std::int64_t columns = filter_size_of(conv);
  if (filters <= kThinMma.M) return choice_of<ThinMma>(conv);
  if (filters <= kWideMma.M) {
    const bool small = columns <= kSmallMma.N || shared < shared_bytes(kWideMma);
    return small ? choice_of<SmallMma>(conv) : choice_of<WideMma>(conv);
  }
  if (columns <= kTallMma.N || shared < shared_bytes(kLargeMma)) return choice_of<TallMma>(conv);
  return choice_of<LargeMma>(conv);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (const Declined why = why_not("sm_80")) return why;
  if (const Declined why = too_many_taps(conv)) return why;
  return too_many_steps(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Choice choice = choose(conv);
  const MmaProduct& product = choice.product;
  if (product.blocks == 0) return 0;
  return (static_cast<std::size_t>(product.blocks) + static_cast<std::size_t>(product.tiles) - 1) *
         static_cast<std::size_t>(choice.shape.part()) * sizeof(float);
}

/// x [N][H][W][C], dy [N][P][Q][K], dw [K][R][S][C/groups], db [K].
void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  const float* dy = arrays.dy;
  const Choice choice = choose(conv);
  const MmaProduct& product = choice.product;
  float* const parts = context.workspace_as<float>();
  const bool in_fours =
      channels_in_fours(conv) &&
      (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(dy)) % 16 == 0;
  launch(in_fours ? choice.in_fours : choice.one_by_one,
         {static_cast<unsigned>(product.blocks), kMmaThreads, shared_bytes(choice.shape)}, product,
         x, dy, parts);
  choice.add(product, parts, arrays.dw, arrays.db);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Choice choice = choose(conv);
  const MmaProduct& product = choice.product;
  return text(choice.shape.M, " x ", choice.shape.N, channels_in_fours(conv) ? ", in fours" : "",
              product.blocks == 0                   ? ", nothing to do"
              : has_many_parts(product)             ? ", many parts"
              : product.blocks == product.tiles     ? ", one part"
              : product.blocks % product.tiles == 0 ? ", several parts"
                                                    : ", parts of several tiles",
              product.rest != 0 ? ", uneven" : "");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> implicit_gemm_mma_tf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
