/// @file cp_async.cu
/// @brief `cp.async` pipeline: elements are copied to a transposed tile, and pixels are decoded
/// once per block.
///
/// - Before: split_k.cu
/// - After: mma.cu, mma_tf32.cu, winograd/3xtf32.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** `cp.async` copies 4 bytes from global memory to any address in shared memory,
/// asynchronously and without a register: each element is copied straight into the transposed tile.
/// A copy of zero bytes writes a zero. One tile is multiplied while two are in flight. What is left
/// is the computation of addresses:
///
///     pixels    16 threads decode the 16 pixels of a step, and leave them in shared memory.
///     taps      A pixel has a bit for each row and column of its window that is not in x; a tap
///               has two bits (shared/split_k.cuh). One AND replaces four comparisons.
///     channels  Columns are ordered [r][s][c], not [c][r][s] as in dw. Where C / groups is a
///               multiple of 64, all columns that a warp copies share their tap, and one test.
///
/// Tiles have equal parts, or even shares where that takes less time: the steps of all tiles are
/// cut into one piece for each block that an H200 holds (shared/split_k.cuh, EvenShares).
///
/// **Expect.** Of some 1300 instructions for 1024 multiply-adds of a thread, 64 load operands, 16
/// to 32 copy and 150 compute addresses: at most 51 of 65 TFLOP/s. The model expects, in us: B3
/// 313, B4 207, B5 103, B6 202, B8 178, B9 1470; B7 220 and B10 5300, whose 144 tiles are shared
/// evenly.
/// @expect lanes.x.load 0, copies alone
/// @expect loads_per_output.workspace 16, parts of 16 pixels each
/// @expect bytes_per_lane.x.async 4, turned on the way
/// **Costs.** Whole tiles: depthwise convolutions waste nearly all of one. GPUs before compute
/// capability 8.0 wait for each copy. Not supported: R + S over 31, and as in register_tile.cu.
/// **Try.** Order the columns [c][r][s] again: more loads hit the L1 cache, as adjacent taps
/// overlap, but each needs its own test. Which counts more?
#include "core/conv2d_gradients.hpp"
#include "core/cuda/ptx.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/reduce_parts.cuh"
#include "cuda_optimized/conv2d_wgrad/shared/split_k.cuh"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kStep = 16;   ///< Pixels that a block multiplies between two barriers.
constexpr int kStages = 3;  ///< Tiles in shared memory: one in use, the others in flight.
constexpr int kPad = 4;     ///< Padding floats after each row of a tile, see copy_tiles().

/// One pixel of a step, decoded once for all threads of the block.
struct Pixel {
  std::int64_t x;    ///< Offset of its window's first tap in x, in the group's first channel.
  std::int64_t dy;   ///< Offset of the pixel in dy, in the tile's first filter.
  unsigned outside;  ///< The taps of its window that are not in x: bits_outside().
  bool inside_part;  ///< The pixel belongs to this block's part of the sum.
};

/// Number `pixel` of the tile's pixels.
__device__ Pixel pixel_at(const SplitProduct& product, const SplitTile& tile, int first_filter,
                          int pixel) {
  const Conv2dProblem& conv = product.conv;
  if (pixel >= tile.pixel_end) return {0, 0, ~0u, false};
  const int n = product.plane.quotient(pixel), place = product.plane.remainder(pixel, n);
  const int p = product.row.quotient(place), q = product.row.remainder(place, p);
  const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
  const std::int64_t x_plane = std::int64_t{conv.H} * conv.W;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  return {(std::int64_t{n} * conv.C + tile.group * product.group_c) * x_plane +
              std::int64_t{h} * conv.W + w,
          (std::int64_t{n} * conv.K + first_filter) * y_plane + place,
          bits_outside(conv, product.by_dilation_h, product.by_dilation_w, h, w), true};
}

/// A column of the product: one tap of one channel.
struct Column {
  int x;          ///< Its offset from the window's first tap, first channel.
  unsigned bits;  ///< Its tap's: it is in x where none of them is set in Pixel::outside.
};

__device__ Column column_at(const SplitProduct& product, int column) {
  const Conv2dProblem& conv = product.conv;
  if (column >= product.columns) return {0, bits_of_none(conv)};
  const int tap = column / product.group_c, c = column % product.group_c;
  const int r = tap / conv.S, s = tap % conv.S;
  return {(c * conv.H + r * conv.dilation.h) * conv.W + s * conv.dilation.w, bits_of_tap(r, s)};
}

/// Shared memory of a block.
template <TileShape kTile>
struct Shared {
  float a[kStages][kStep][kTile.filters + kPad];  ///< dy, transposed: [pixel][filter]
  float b[kStages][kStep][kTile.columns + kPad];  ///< columns of x, transposed: [pixel][column]
  Pixel pixels[2][kStep];                         ///< Of the next two steps to be copied.
  Column columns[kTile.columns];
};

/// x [N][C][H][W], dy [N][K][P][Q]. Grid (shares.blocks), block (Tile::kShape.threads()).
/// @tparam kOneTap has_one_tap(): the columns that a warp copies are channels of one tap
template <class Tile, bool kOneTap>
__global__ void __launch_bounds__(Tile::kShape.threads(), Tile::kShape.resident)
    conv2d_wgrad_implicit_gemm_cp_async(SplitProduct product, EvenShares shares, const float* x,
                                        const float* dy, Sums sums) {
  constexpr TileShape kTile = Tile::kShape;
  constexpr int kTileM = kTile.filters, kTileN = kTile.columns;
  using Threads = gemm::ThreadTile<kTileM, kTileN, kStep, 8, 8, kTile.lanes_m>;
  constexpr int kWarps = Threads::kThreads / 32, kColumns = kTileN / kWarps;  // of a warp
  static_assert(kTileN % kWarps == 0 && kColumns % 4 == 0, "in groups of four");
  static_assert(!kOneTap || 64 % kColumns == 0, "a warp's columns are channels of one tap");
  auto& shared = *dynamic_shared<Shared<kTile>>();
  const Conv2dProblem& conv = product.conv;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const std::int64_t x_plane = std::int64_t{conv.H} * conv.W;
  const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q;
  const int share = shares.share_of(static_cast<int>(blockIdx.x));
  const std::int64_t last = shares.begin_of(share + 1);
  std::int64_t next = shares.begin_of(share);
  while (next < last) {
    const auto number = static_cast<int>(next / shares.steps);
    const auto first_step = static_cast<int>(next - std::int64_t{number} * shares.steps);
    const auto count = static_cast<int>(min(last - next, std::int64_t{shares.steps - first_step}));
    next += count;
    SplitTile tile = tile_at(product, number);
    tile.split = share - shares.share_with(std::int64_t{number} * shares.steps);
    tile.pixel_begin = first_step * kStep;
    tile.pixel_end = min(product.pixels, tile.pixel_begin + count * kStep);
    const int steps = ceil_div(max(0, tile.pixel_end - tile.pixel_begin), kStep);
    const int m0 = tile.m * kTileM, n0 = tile.n * kTileN;
    const int first_filter = tile.group * product.group_k + m0;
    const int filters = min(kTileM, product.group_k - m0);

    for (int i = thread; i < kTileN; i += Threads::kThreads) {
      const Column column = column_at(product, n0 + i);
      shared.columns[i] = column;
    }
    const auto decode = [&](int step) {
      if (thread < kStep) {
        const Pixel pixel =
            pixel_at(product, tile, first_filter, tile.pixel_begin + step * kStep + thread);
        shared.pixels[step % 2][thread] = pixel;
      }
    };
    // Eight lanes copy neighbouring pixels, and the four groups of lanes neighbouring rows: stores
    // at [pixel][row] with rows of 4 floats more than a multiple of 32 meet all 32 banks.
    const int row0 = lane / 8, column0 = warp * kColumns + row0, filter0 = warp * 4 + row0;
    const auto copy_tiles = [&](int step) {
      if (step < steps) {
#pragma unroll
        for (int half = 0; half < kStep; half += 8) {
          const int pixel = half + lane % 8;
          const Pixel at = shared.pixels[step % 2][pixel];
          float* to_b = &shared.b[step % kStages][pixel][column0];
          Column column = shared.columns[column0];
#pragma unroll
          for (int i = 0; i < kColumns; i += 4) {
            if (!kOneTap) column = shared.columns[column0 + i];
            const bool inside = (at.outside & column.bits) == 0;
            const float* from = (inside ? x + (at.x + column.x) : x) + (kOneTap ? i * x_plane : 0);
            ptx::cp_async<4>(to_b + i, from, inside ? 4 : 0);
          }
          float* to_a = &shared.a[step % kStages][pixel][0];
          const float* from = dy + at.dy;
          if (filters == kTileM) {
#pragma unroll
            for (int i = 0; i < kTileM; i += 4 * kWarps) {
              if (kTileM % (4 * kWarps) != 0 && filter0 + i >= kTileM) break;
              ptx::cp_async<4>(to_a + filter0 + i, from + (filter0 + i) * y_plane,
                               at.inside_part ? 4 : 0);
            }
          } else {
#pragma unroll 1
            for (int f = filter0; f < kTileM; f += 4 * kWarps) {
              const bool inside = at.inside_part && f < filters;
              ptx::cp_async<4>(to_a + f, inside ? from + f * y_plane : dy, inside ? 4 : 0);
            }
          }
        }
      }
      ptx::cp_async_commit_group();
    };
    const Threads place(threadIdx.x);
    float products[Threads::kThreadM][Threads::kThreadN] = {};
    float bias_sum = 0.0f;
    for (int step = 0; step < kStages - 1; ++step) {
      decode(step);
      __syncthreads();  // between the pixels' (and columns') writes and their reads
      copy_tiles(step);
    }
    decode(kStages - 1);
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait_group<kStages - 2>();
      // Three separations: between this thread's copies and the other threads' reads of this step's
      // tiles; between the reads of the previous step and the copies below, into the same tiles;
      // between the writes of the pixels that are copied below, and their reads.
      __syncthreads();
      copy_tiles(step + kStages - 1);
      decode(step + kStages);
      const int stage = step % kStages;
      if (tile.n == 0 && thread < kTileM) {
        float four[4] = {};  // an addition waits four cycles for the one before
#pragma unroll
        for (int k = 0; k < kStep; ++k) four[k % 4] += shared.a[stage][k][thread];
        bias_sum += (four[0] + four[1]) + (four[2] + four[3]);
      }
      place.template multiply<kTileM + kPad, kTileN + kPad>(&shared.a[stage][0][0],
                                                            &shared.b[stage][0][0], products);
    }

    // A single part is dw itself, with its columns in the order [c][r][s]. Where a tile has fewer
    // parts than others, the block with its last step adds parts of zeros.
    const bool ends = first_step + count == shares.steps;
    const bool is_dw = product.splits == 1;
    const int taps = conv.R * conv.S;
#pragma unroll 1
    for (int split = tile.split; split < (ends ? product.splits : tile.split + 1); ++split) {
      float* dw = sums.dw + split * product.weights();
#pragma unroll
      for (int i = 0; i < Threads::kThreadM; ++i) {
        const int m = place.m + Threads::row(i);
#pragma unroll
        for (int j = 0; j < Threads::kThreadN; ++j) {
          int column = n0 + place.n + Threads::column(j);
          if (m >= filters || column >= product.columns) continue;
          if (is_dw) column = column % product.group_c * taps + column / product.group_c;
          dw[std::int64_t{first_filter + m} * product.columns + column] =
              split == tile.split ? products[i][j] : 0.0f;
        }
      }
      if (tile.n == 0 && thread < filters) {
        sums.db[std::int64_t{split} * conv.K + first_filter + thread] =
            split == tile.split ? bias_sum : 0.0f;
      }
    }
    __syncthreads();  // between the last reads of this tile's data and the next tile's writes
  }
}

/// A kernel and its tile.
struct Choice {
  TileShape shape;
  double teraflops;  ///< What it reaches on an H200 where only the products counts.
  std::size_t shared_bytes;
  void (*kernel)(SplitProduct, EvenShares, const float*, const float*, Sums);
};

template <class Tile>
Choice choice_of(bool one_tap, double teraflops) {
  return {Tile::kShape, teraflops, sizeof(Shared<Tile::kShape>),
          one_tap ? conv2d_wgrad_implicit_gemm_cp_async<Tile, true>
                  : conv2d_wgrad_implicit_gemm_cp_async<Tile, false>};
}

/// Whether 64 columns from a multiple of 64 on are channels of the same tap.
bool has_one_tap(const Conv2dProblem& conv) { return conv.C / conv.groups % 64 == 0; }

/// The kernel with the least estimated time.
std::pair<Choice, EvenPlan> choose(const Conv2dProblem& conv) {
  const bool one_tap = has_one_tap(conv);
  const Choice choices[] = {choice_of<SmallTile>(one_tap, one_tap ? 40 : 28),
                            choice_of<TallTile>(one_tap, one_tap ? 42 : 36),
                            choice_of<LargeTile>(one_tap, one_tap ? 45 : 40),
                            choice_of<WideTile>(one_tap, one_tap ? 41 : 31),
                            {kFirstLayerTile, 30, sizeof(Shared<kFirstLayerTile>),
                             conv2d_wgrad_implicit_gemm_cp_async<FirstLayerTile, false>}};
  std::pair<Choice, EvenPlan> best;
  best.second.microseconds = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) {
    const EvenPlan plan = even_plan_for(conv, choice.shape, choice.teraflops, kStep, kMaxSplits);
    if (plan.microseconds < best.second.microseconds) best = {choice, plan};
  }
  return best;
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (const Declined why = too_many_taps(conv)) return why;
  return too_large_for_ints(conv);
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return part_bytes(choose(conv).second.product);
}

void run(const Conv2dProblem& conv, const Conv2dWgradArrays& arrays, const Context& context) {
  const auto [choice, plan] = choose(conv);
  const SplitProduct& product = plan.product;
  const Sums sums = sums_of(product, arrays, context);
  const dim3 grid(static_cast<unsigned>(plan.shares.blocks));
  launch(choice.kernel, {grid, static_cast<unsigned>(choice.shape.threads()), choice.shared_bytes},
         product, plan.shares, arrays.x, arrays.dy, sums);
  launch_add_parts(product, sums, true, arrays);
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const auto [choice, plan] = choose(conv);
  return text(in_words(choice.shape), has_one_tap(conv) ? ", one tap at a time" : "", ", ",
              parts_in_words(plan.product), plan.whole_tiles() ? "" : ", shares of several tiles",
              conv.R * conv.S == 1 ? ", a single tap" : "");
}

}  // namespace

extern const Implementation<Conv2dWgradArrays> implicit_gemm_cp_async = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
