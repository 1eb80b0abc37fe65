/// @file implicit_gemm_mma_tf32.cu
/// @brief conv2d_wgrad in NHWC on the tensor cores: implicit GEMM whose sums are shared evenly.
///
/// - Before: implicit_gemm_cp_async.cu
/// - The same maths: cpu_reference/conv2d_wgrad/im2col_gemm.cpp
///
/// **The idea.** dw = dy^T * windows, summed over all pixels of all images. In NHWC both factors
/// lie across the sum: a pixel's channels lie side by side. Both tiles are staged as they are:
///
///                 K/G                          R*S*C/G
///     pixel [ dy[pixel][k] ]^T   x   pixel [ x[p + r][q + s][c] ]   =   dw [K/G][R*S*C/G]
///
/// ldmatrix cannot turn floats. But which row of dw is row i of a fragment is free: lane l may as
/// well hold dw's rows 4 g ... 4 g + 3 (g = l / 4) as rows g, g + 8 of one fragment and g, g + 8 of
/// the next. Then its values of a pixel lie side by side, and come in loads of 16 bytes:
///
///     pixel l % 4:  [ lane 0 | lane 4 | lane 8 | ...            ]   4 floats each, 32 rows of dw
///
/// The steps of all tiles of dw are one long row, cut into about as many even shares as the GPU
/// holds blocks, whether or not a tile ends there: no wave of blocks is cut short. A second kernel
/// adds the parts of each tile in order: the same bits in every run on the same GPU.
///
/// **Expect.** A warp has 32 products, 8 loads and 32 roundings for 8 pixels. A product takes a
/// quarter of an SM 6 cycles, so 322 TFLOP/s at most: B4 23 us, B9 184, B10 735; but B10's 7.4 GB
/// from L2 take 1200 at 6 TB/s, and B5's 128 MB 31. B6, B7, B8 add 6 to 10 us for their parts.
/// **Costs.** 107 KB of shared memory a block. C/G or K/G not a multiple of 4: copies of 4 bytes.
/// Declined: fp32 problems, NCHW, compute capability below 8.0, R + S over 31, 2^31 steps.
/// **Try.** Round with ptx::to_tf32(), and look for FSETP in the machine code. What becomes of the
/// stall reason `wait`?
#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "core/rung.hpp"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {
namespace {

constexpr int kStep = 32;      ///< Pixels that a block multiplies between two barriers.
constexpr int kStages = 3;     ///< Steps in shared memory: one in use, the others on their way.
constexpr int kThreads = 128;  ///< Of a block: four warps.
constexpr int kAhead = kThreads / kStep;  ///< Steps whose pixels are found at once.
constexpr int kChunk = 32;    ///< Neighbouring columns that are copied at a time: 128 bytes.
constexpr int kMaxTaps = 31;  ///< R + S: bits of a word, but one.
constexpr int kMaxPixels = 2147483647 - 1024;  ///< So that pixels beyond the last have numbers.

/// One pixel, decoded once for all threads of the block.
struct alignas(16) Pixel {
  /// Address of its window's first tap, in channel 0: a number, as that may lie outside of x.
  std::uintptr_t x;
  /// Bit r: the window's row r is not in x. Bit 31 - s: its column s is not. Bit R is always set.
  unsigned outside;
};

/// The sizes of a kernel: a block's tile of dw and a warp's, filters x taps and channels.
template <int kM, int kN, int kWarpM, int kWarpN, int kBlocksPerSm>
struct Shape {
  static constexpr int M = kM, N = kN, WarpM = kWarpM, WarpN = kWarpN;
  static constexpr int kBlocks = kBlocksPerSm;
  static constexpr int kPitchA = kM + 8, kPitchB = kN + 4;    // floats from row to row: load_run()
  static constexpr int kFloatsA = kStep * kPitchA;            // of a stage's tile of dy
  static constexpr int kFloats = kFloatsA + kStep * kPitchB;  // of a stage
  static constexpr int kBiasShares = kThreads / kM;           // threads that share a filter
  static constexpr int kPart = kM * kN + kM;                  // floats of a part: dw and db
  static constexpr std::size_t kSharedBytes =
      kStages * kFloats * sizeof(float) + 2 * kThreads * sizeof(Pixel);
  static_assert(kM / kWarpM * (kN / kWarpN) * 32 == kThreads && kThreads % kM == 0);
};
using Large = Shape<128, 128, 64, 64, 2>;
using Wide = Shape<64, 192, 64, 48, 2>;  ///< For at most 64 filters.
using Tall = Shape<128, 64, 64, 32, 2>;  ///< For few taps and channels.
using Small = Shape<64, 64, 32, 32, 3>;  ///< For both.
using Thin = Shape<16, 128, 16, 32, 3>;  ///< For at most 16 filters.

/// What a kernel needs to know.
struct Product {
  Conv2dProblem conv;
  int pixels;                                ///< N * P * Q: the length of the sums.
  int filters, columns;                      ///< K/G; R * S * C/G
  int tiles_n, tiles;                        ///< Across a group's dw; of all groups.
  int steps;                                 ///< Of a sum.
  int blocks;                                ///< They share the tiles' steps evenly,
  int share, rest;                           ///< and get so many, and the rest.
  FastDivision by_channels, by_taps_across;  ///< By C/G, by S.
  FastDivision by_columns, by_rows;          ///< By Q, by P.
  FastDivision by_dilation_h, by_dilation_w;
  FastDivision by_steps, by_tiles_n, by_tiles_m;

  /// The first step of a block, all tiles' steps counted through: block * all steps / blocks.
  HOST_DEVICE int begin_of(int block) const { return block * share + block * rest / blocks; }
  /// The block that has this step.
  HOST_DEVICE int block_with(int step) const {
    return static_cast<int>((std::int64_t{step} * blocks + blocks - 1) /
                            (std::int64_t{tiles} * steps));
  }
};

/// Where a tile lies in dw.
struct Tile {
  int group, m, n;  ///< Its group, first filter in there and first column.
};

template <class S>
__device__ Tile tile_at(const Product& product, int tile) {
  const int row = product.by_tiles_n.quotient(tile), group = product.by_tiles_m.quotient(row);
  return {group, product.by_tiles_m.remainder(row, group) * S::M,
          product.by_tiles_n.remainder(tile, row) * S::N};
}

/// The taps of one axis that lie outside of x, as bits: taps before 0, and from `size` on.
/// @param at where tap 0 lies
__device__ unsigned taps_outside(int at, int taps, int size, int dilation,
                                 const FastDivision& by_dilation) {
  const int before = at < 0 ? min(by_dilation.quotient(dilation - 1 - at), taps) : 0;
  const int end = at < size ? min(by_dilation.quotient(size - 1 - at) + 1, taps) : 0;
  const auto below = [](int n) { return n < 32 ? (1u << n) - 1 : ~0u; };
  return below(before) | ~below(end);
}

__device__ Pixel pixel_at(const Product& product, const float* x, int pixel, int end) {
  const Conv2dProblem& conv = product.conv;
  const auto begin = reinterpret_cast<std::uintptr_t>(x);
  if (pixel >= end) return {begin, ~0u};
  const int row = product.by_columns.quotient(pixel), q = product.by_columns.remainder(pixel, row);
  const int n = product.by_rows.quotient(row), p = product.by_rows.remainder(row, n);
  const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
  const unsigned rows = taps_outside(h, conv.R, conv.H, conv.dilation.h, product.by_dilation_h);
  const unsigned columns = taps_outside(w, conv.S, conv.W, conv.dilation.w, product.by_dilation_w);
  return {begin + sizeof(float) * (((std::int64_t{n} * conv.H + h) * conv.W + w) * conv.C),
          (rows & ((1u << conv.R) - 1)) | __brev(columns & ((1u << conv.S) - 1)) | 1u << conv.R};
}

/// Rounds to TF32, as cvt.rna.tf32 does: to nearest, away from zero where two are as near.
/// mma.sync ignores the low 13 bits, so adding half of the last bit that counts is enough; the
/// maximum keeps a NaN whose bits run over into the sign. (Not a negative one; arithmetic makes
/// positive ones.) For cvt.rna.tf32 the compiler would make a comparison, and an addition under its
/// condition, which has to wait for it; this is one instruction from compute capability 9.0 on.
__device__ std::uint32_t rounded(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return static_cast<std::uint32_t>(max(static_cast<int>(bits + 0x1000), static_cast<int>(bits)));
}

/// Where value i of a lane lies in its warp's rows or columns, of which the lane has kCount: fours
/// that are 32 apart, then a pair. @param slot of the lane among those with the same pixel, 0 to 7
template <int kCount>
__device__ int place_of(int i, int slot) {
  const int four = i / 4, width = four < kCount / 4 ? 4 : 2;
  return 32 * four + width * slot + i % 4;
}

/// Loads these values of one pixel.
template <int kCount>
__device__ void load_run(const float* row, int slot, float (&values)[kCount]) {
  static_assert(kCount % 2 == 0, "fours, and a pair at most");
#pragma unroll
  for (int i = 0; i < kCount / 4 * 4; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(row + place_of<kCount>(i, slot));
    values[i] = four.x;
    values[i + 1] = four.y;
    values[i + 2] = four.z;
    values[i + 3] = four.w;
  }
  if constexpr (kCount % 4 != 0) {
    constexpr int i = kCount - 2;
    const float2 two = *reinterpret_cast<const float2*>(row + place_of<kCount>(i, slot));
    values[i] = two.x;
    values[i + 1] = two.y;
  }
}

/// The slots of the columns: lanes that hold neighbouring sums of a row, those of columns 2 place
/// and 2 place + 1 of a fragment, get slots place and place + 4. Then each of a lane's two stores
/// writes whole sectors, together with its neighbours'.
__device__ int column_slot(int column) { return column % 2 * 4 + column / 2; }

/// A lane's factors for 8 pixels: pixels lane % 4 and 4 more than that.
template <class S>
struct Factors {
  float a[2][S::WarpM / 8], b[2][S::WarpN / 8];

  /// The eight lanes of a quarter of a load have four pixels and two neighbouring slots of rows, or
  /// slots 4 apart of columns: the pitches bring these to different banks.
  /// @param a_tile, b_tile the warp's rows and columns of the first of the 8 pixels
  __device__ void load(const float* a_tile, const float* b_tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pixel = lane % 4 + 4 * half;
      load_run(a_tile + pixel * S::kPitchA, lane / 4, a[half]);
      load_run(b_tile + pixel * S::kPitchB, column_slot(lane / 4), b[half]);
    }
  }

  /// Adds their products. Value i of a is row lane / 4 of fragment i / 2, or the row 8 below;
  /// value j of b is column lane / 4 of fragment j.
  __device__ void multiply(float (&sums)[S::WarpM / 16][S::WarpN / 8][4]) const {
    std::uint32_t columns[S::WarpN / 8][2];
#pragma unroll
    for (int j = 0; j < S::WarpN / 8; ++j) {
      columns[j][0] = rounded(b[0][j]);
      columns[j][1] = rounded(b[1][j]);
    }
#pragma unroll
    for (int i = 0; i < S::WarpM / 16; ++i) {
      const std::uint32_t rows[4] = {rounded(a[0][2 * i]), rounded(a[0][2 * i + 1]),
                                     rounded(a[1][2 * i]), rounded(a[1][2 * i + 1])};
#pragma unroll
      for (int j = 0; j < S::WarpN / 8; ++j) ptx::mma_m16n8k8_tf32(sums[i][j], rows, columns[j]);
    }
  }
};

/// How the threads copy a tile of kLength columns, kWidth floats at a time: a row's chunk by
/// neighbouring threads, and several rows at a time.
template <int kLength, int kWidth>
struct Copies {
  static constexpr int kPieces = (kLength < kChunk ? kLength : kChunk) / kWidth;  // of a chunk
  static constexpr int kRows = kThreads / kPieces;                                // at a time
  static constexpr int kChunks = kLength < kChunk ? 1 : kLength / kChunk;         // of a row
  static constexpr int kCount = kStep / kRows * kChunks;  // of a thread in a step
  static_assert(kStep % kRows == 0 && kLength % kWidth == 0);
};

/// x [N][H][W][C], dy [N][P][Q][K], parts [blocks + tiles - 1][S::kPart].
/// Grid (product.blocks), block (kThreads).
template <class S, int kBytes>
__global__ void __launch_bounds__(kThreads, S::kBlocks)
    wgrad_mma_tf32(Product product, const float* x, const float* dy, float* parts) {
  const Conv2dProblem& conv = product.conv;
  float* const tiles = dynamic_shared<float>();
  constexpr int kTiles = kStages * S::kFloats;
  auto* const pixels = reinterpret_cast<Pixel*>(tiles + kTiles);  // [2][kThreads]
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int warp_m = warp / (S::N / S::WarpN) * S::WarpM;
  const int warp_n = warp % (S::N / S::WarpN) * S::WarpN;
  constexpr int kWidth = kBytes / 4;
  using CopiesA = Copies<S::M, kWidth>;
  using CopiesB = Copies<S::N, kWidth>;
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
    const Tile tile = tile_at<S>(product, tile_number);
    const int begin = first_step * kStep, end = min(begin + steps * kStep, product.pixels);

    // What this thread copies in each step. An address as a number: behind the last pixel or filter
    // it lies outside of dy, and is not used.
    const std::int64_t a_first = (std::int64_t{begin} + a_row) * conv.K +
                                 std::int64_t{tile.group} * product.filters + tile.m + a_m;
    std::uintptr_t a_from = reinterpret_cast<std::uintptr_t>(dy) + sizeof(float) * a_first;
    const int filters_left = product.filters - tile.m - a_m;
    int pixels_left = end - begin - a_row;
    unsigned b_tap[CopiesB::kChunks];  // its bits in Pixel::outside
    int b_from[CopiesB::kChunks];      // its offset from the window's first tap
#pragma unroll
    for (int i = 0; i < CopiesB::kChunks; ++i) {
      const int column = tile.n + b_n + i * kChunk;
      const bool inside = column < product.columns;
      const int tap = product.by_channels.quotient(inside ? column : 0);
      const int c = product.by_channels.remainder(inside ? column : 0, tap);
      const int r = product.by_taps_across.quotient(tap);
      const int s = product.by_taps_across.remainder(tap, r);
      b_tap[i] = inside ? 1u << r | 1u << (31 - s) : 1u << conv.R;
      b_from[i] = (r * conv.dilation.h * conv.W + s * conv.dilation.w) * conv.C +
                  tile.group * (conv.C / conv.groups) + c;
    }

    // A pixel for each thread, which is kAhead steps; two such groups are known at a time.
    const auto decode = [&](int group) {
      pixels[group % 2 * kThreads + thread] =
          pixel_at(product, x, begin + group * kThreads + thread, end);
    };
    // A quarter of the copies of a step, to the tiles at `to`; all four, and the pointers move on.
    Pixel at{};
    const auto copy = [&](int step, float* to, int quarter) {
#pragma unroll
      for (int i = quarter * CopiesA::kCount / 4; i < (quarter + 1) * CopiesA::kCount / 4; ++i) {
        const int row = i / CopiesA::kChunks * CopiesA::kRows;
        const int m = i % CopiesA::kChunks * kChunk;
        const bool inside = row < pixels_left && m < filters_left;
        ptx::cp_async<kBytes>(to + a_row * S::kPitchA + a_m + (row * S::kPitchA + m),
                              reinterpret_cast<const float*>(
                                  a_from + sizeof(float) * (std::int64_t{row} * conv.K + m)),
                              inside ? kBytes : 0);
      }
#pragma unroll
      for (int i = quarter * CopiesB::kCount / 4; i < (quarter + 1) * CopiesB::kCount / 4; ++i) {
        const int row = i / CopiesB::kChunks * CopiesB::kRows, chunk = i % CopiesB::kChunks;
        if (chunk == 0) at = pixels[step % (2 * kAhead) * kStep + b_row + row];
        const bool inside = (at.outside & b_tap[chunk]) == 0;
        ptx::cp_async<kBytes>(
            to + b_row * S::kPitchB + b_n + (S::kFloatsA + row * S::kPitchB + chunk * kChunk),
            reinterpret_cast<const float*>(at.x + sizeof(float) * b_from[chunk]),
            inside ? kBytes : 0);
      }
      if (quarter == 3) {
        a_from += sizeof(float) * std::int64_t{kStep} * conv.K;
        pixels_left -= kStep;
      }
    };

    decode(0);
    // Separates these pixels from their use; and the last tile's use of `tiles` from the copies.
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < kStages - 1; ++step) {
      if (step < steps) {
#pragma unroll
        for (int quarter = 0; quarter < 4; ++quarter) {
          copy(step, tiles + step * S::kFloats, quarter);
        }
      }
      ptx::cp_async_commit_group();  // also without copies: the waits below count groups
    }

    float sums[S::WarpM / 16][S::WarpN / 8][4] = {};
    float bias_sum = 0.0f;
    int now = 0, free = (kStages - 1) * S::kFloats;  // where this step's tiles lie; free ones
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait_group<kStages - 2>();
      // Makes everybody's copies of this step visible to all; separates the loads of the step
      // before from the copies that now overwrite its tiles, and pixels that were found in the
      // step before from their use.
      __syncthreads();
      const float* const a_tile = tiles + now + warp_m;
      const float* const b_tile = tiles + now + (S::kFloatsA + warp_n);
      Factors<S> factors[2];
      factors[0].load(a_tile, b_tile);
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter) {
        if (quarter < 3) {
          const int k = 8 * quarter + 8;
          factors[(quarter + 1) % 2].load(a_tile + k * S::kPitchA, b_tile + k * S::kPitchB);
        }
        if (step + kStages - 1 < steps) copy(step + kStages - 1, tiles + free, quarter);
        factors[quarter % 2].multiply(sums);
      }
      ptx::cp_async_commit_group();
      // The copies of the step before were the last to use the pixels that these replace; those of
      // the next step are the first to use these.
      if (step % kAhead == kAhead - kStages) decode(step / kAhead + 1);
      if (tile.n == 0) {
        constexpr int kRows = kStep / S::kBiasShares;
        const float* const column =
            tiles + now + thread / S::M * kRows * S::kPitchA + thread % S::M;
        float four[4] = {};  // an addition waits four cycles for the one before
#pragma unroll
        for (int k = 0; k < kRows; ++k) four[k % 4] += column[k * S::kPitchA];
        bias_sum += (four[0] + four[1]) + (four[2] + four[3]);
      }
      now = now + S::kFloats < kTiles ? now + S::kFloats : 0;
      free = free + S::kFloats < kTiles ? free + S::kFloats : 0;
    }
    __syncthreads();  // separates the last loads of the tiles from the stores of bias_sum

    // Numbers of blocks and tiles only grow along the steps: their sum tells the parts apart.
    float* const part = parts + (std::int64_t{blockIdx.x} + tile_number) * std::int64_t{S::kPart};
    const int place = lane % 4;
    constexpr int kA = S::WarpM / 8, kB = S::WarpN / 8;
#pragma unroll
    for (int i = 0; i < kA; ++i) {
      const auto& row = sums[i / 2];
      float* const to = part + (warp_m + place_of<kA>(i, lane / 4)) * S::N + warp_n;
#pragma unroll
      for (int next_column = 0; next_column < 2; ++next_column) {
        const int v = i % 2 * 2 + next_column, slot = column_slot(2 * place + next_column);
#pragma unroll
        for (int j = 0; j < kB / 4 * 4; j += 4) {
          *reinterpret_cast<float4*>(to + place_of<kB>(j, slot)) = {row[j][v], row[j + 1][v],
                                                                    row[j + 2][v], row[j + 3][v]};
        }
        if constexpr (kB % 4 != 0) {
          constexpr int j = kB - 2;
          *reinterpret_cast<float2*>(to + place_of<kB>(j, slot)) = {row[j][v], row[j + 1][v]};
        }
      }
    }
    if (tile.n == 0) {
      tiles[thread] = bias_sum;  // [kBiasShares][M]
      __syncthreads();           // separates these stores from the loads below
      if (thread < S::M) {
        for (int share = 1; share < S::kBiasShares; ++share) {
          bias_sum += tiles[share * S::M + thread];
        }
        part[S::M * S::N + thread] = bias_sum;
      }
    }
  }
}

constexpr int kAddThreads = 256;
constexpr std::int64_t kMaxAddBlocks = 1 << 20;
constexpr int kManyParts = 16;  ///< From so many on, threads share the parts of a weight.

/// Adds the parts of each tile, always in the same order. kAddThreads / kShares neighbouring
/// threads take four weights each, or four filters' sums for db; thread (i, y) takes the tile's
/// parts y, y + kShares ... of them. Grid <= kMaxAddBlocks, block (kAddThreads / kShares, kShares).
template <class S, int kShares>
__global__ void __launch_bounds__(kAddThreads)
    add_parts(Product product, const float* parts, float* dw, float* db) {
  constexpr int kFours = kAddThreads / kShares;            // of a block
  constexpr int kChunks = ceil_div(S::kPart / 4, kFours);  // blocks of a tile
  __shared__ float4 of_share[kShares][kFours];
  const int thread = static_cast<int>(threadIdx.x), share = static_cast<int>(threadIdx.y);
  for (std::int64_t work = blockIdx.x; work < std::int64_t{product.tiles} * kChunks;
       work += gridDim.x) {
    const int tile_number = static_cast<int>(work / kChunks);
    const Tile tile = tile_at<S>(product, tile_number);
    const int four = static_cast<int>(work % kChunks) * kFours + thread;
    const bool exists = four < (tile.n == 0 ? S::kPart : S::M * S::N) / 4;
    float4 sum{};
    if (exists && product.steps > 0) {
      const int first_step = tile_number * product.steps;
      const int begin = product.block_with(first_step) + tile_number;
      const int end = product.block_with(first_step + product.steps - 1) + tile_number + 1;
      for (int part = begin + share; part < end; part += 4 * kShares) {
        float4 more[4];  // loaded before the first is added, also where there are fewer
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int other = part + j * kShares;
          const float* const from = parts + std::int64_t{other} * S::kPart + four * 4;
          more[j] = other < end ? *reinterpret_cast<const float4*>(from) : float4{};
        }
        for (const float4& value : more) {
          sum = {sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w};
        }
      }
    }
    if constexpr (kShares > 1) {
      of_share[share][thread] = sum;
      __syncthreads();  // separates these stores from the loads below
      if (share == 0) {
        for (int other = 1; other < kShares; ++other) {
          const float4 more = of_share[other][thread];
          sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
        }
      }
      __syncthreads();  // separates these loads from the next weights' stores
    }
    if (share != 0 || !exists) continue;
    const bool is_weight = four < S::M * S::N / 4;
    const int m = is_weight ? four / (S::N / 4) : (four - S::M * S::N / 4) * 4;
    const int n = four % (S::N / 4) * 4;
    // A weight's neighbours are columns, a bias' neighbours are filters.
    const int left = is_weight ? product.columns - tile.n - n : product.filters - tile.m - m;
    if (tile.m + m >= product.filters) continue;
    const std::int64_t filter = std::int64_t{tile.group} * product.filters + tile.m + m;
    float* const to = is_weight ? dw + filter * product.columns + tile.n + n : db + filter;
    if (left >= 4 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      *reinterpret_cast<float4*>(to) = sum;
    } else {
      const float values[] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < left) to[i] = values[i];
      }
    }
  }
}

std::int64_t pixels_of(const Conv2dProblem& conv) { return std::int64_t{conv.N} * conv.P * conv.Q; }
std::int64_t filter_size_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.R} * conv.S * (conv.C / conv.groups);
}

constexpr int kLeastSteps = 4;  ///< Of a block, where there are so many.

/// The product in tiles of shape S, and how many blocks share it: as many as the GPU holds; or
/// fewer, if nearly as many are a multiple of the tiles, so that no block has two tiles.
template <class S>
Product product_with(const Conv2dProblem& conv) {
  Product product;
  product.conv = conv;
  product.pixels = static_cast<int>(pixels_of(conv));
  product.filters = conv.K / conv.groups;
  product.columns = static_cast<int>(filter_size_of(conv));
  product.by_channels = FastDivision(conv.C / conv.groups);
  product.by_taps_across = FastDivision(conv.S);
  product.by_columns = FastDivision(conv.Q);
  product.by_rows = FastDivision(conv.P);
  product.by_dilation_h = FastDivision(conv.dilation.h);
  product.by_dilation_w = FastDivision(conv.dilation.w);
  const int tiles_m = ceil_div(product.filters, S::M);
  product.tiles_n = ceil_div(product.columns, S::N);
  product.tiles = tiles_m * product.tiles_n * conv.groups;
  product.steps = ceil_div(product.pixels, kStep);
  product.by_steps = FastDivision(std::max(1, product.steps));
  product.by_tiles_n = FastDivision(product.tiles_n);
  product.by_tiles_m = FastDivision(tiles_m);
  const int all_steps = product.tiles * product.steps;
  const int resident = S::kBlocks * multiprocessors();
  const int blocks = std::min(resident, ceil_div(all_steps, kLeastSteps));
  const int whole = blocks / product.tiles * product.tiles;
  product.blocks = whole >= blocks - blocks / 16 ? whole : blocks;
  product.share = all_steps / std::max(1, product.blocks);
  product.rest = all_steps % std::max(1, product.blocks);
  return product;
}

/// A product and the kernels that compute it.
struct Choice {
  Product product;
  int part;                  ///< Floats of a part.
  std::size_t shared_bytes;  ///< Of the first kernel.
  void (*in_fours)(Product, const float*, const float*, float*);
  void (*one_by_one)(Product, const float*, const float*, float*);
  void (*add_few)(Product, const float*, float*, float*);
  void (*add_many)(Product, const float*, float*, float*);
  int filters, columns;  ///< Of a tile.
};

template <class S>
Choice choice_of(const Conv2dProblem& conv) {
  return {product_with<S>(conv),
          S::kPart,
          S::kSharedBytes,
          wgrad_mma_tf32<S, 16>,
          wgrad_mma_tf32<S, 4>,
          add_parts<S, 1>,
          add_parts<S, 8>,
          S::M,
          S::N};
}

Choice choose(const Conv2dProblem& conv) {
  const std::size_t shared = max_shared_bytes();
  const int filters = conv.K / conv.groups;
  const std::int64_t columns = filter_size_of(conv);
  if (filters <= Thin::M) return choice_of<Thin>(conv);
  if (filters <= Wide::M) {
    const bool small = columns <= Small::N || shared < Wide::kSharedBytes;
    return small ? choice_of<Small>(conv) : choice_of<Wide>(conv);
  }
  if (columns <= Tall::N || shared < Large::kSharedBytes) return choice_of<Tall>(conv);
  return choice_of<Large>(conv);
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (conv.layout != Layout::nhwc) return "layout nhwc only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (compute_capability() < 80) {
    return "tensor cores take TF32 from compute capability 8.0 on, and this device has less";
  }
  if (std::int64_t{conv.R} + conv.S > kMaxTaps) {
    return text("r + s = ", std::int64_t{conv.R} + conv.S, ": the bits of a word tell ", kMaxTaps,
                " taps apart");
  }
  if (pixels_of(conv) > kMaxPixels || filter_size_of(conv) > kMaxPixels ||
      std::int64_t{conv.H} * conv.W * conv.C > kMaxPixels) {
    return "2^31 outputs of a channel, weights of a filter or inputs of an image, and more";
  }
  // Of the smallest tiles that a problem may get.
  const std::int64_t tiles = ceil_div<std::int64_t>(conv.K / conv.groups, Thin::M) *
                             ceil_div<std::int64_t>(filter_size_of(conv), Small::N) * conv.groups;
  if (ceil_div<std::int64_t>(pixels_of(conv), kStep) > kMaxPixels / tiles) {
    return "2^31 steps of all tiles, and more";
  }
  return {};
}

/// Whether channels and filters are copied in fours, if x and dy begin at multiples of 16 bytes.
bool channels_in_fours(const Conv2dProblem& conv) {
  return conv.K / conv.groups % 4 == 0 && conv.C / conv.groups % 4 == 0;
}

/// Whether there are so many parts that threads share them.
bool has_many_parts(const Product& product) { return product.blocks / kManyParts >= product.tiles; }

constexpr std::size_t kAlignment = 16;  ///< Bytes; of the parts.

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Choice choice = choose(conv);
  if (choice.product.blocks == 0) return 0;
  return (static_cast<std::size_t>(choice.product.blocks) +
          static_cast<std::size_t>(choice.product.tiles) - 1) *
             static_cast<std::size_t>(choice.part) * sizeof(float) +
         kAlignment;
}

/// x [N][H][W][C], dy [N][P][Q][K], dw [K][R][S][C/groups], db [K].
void run(const Conv2dProblem& conv, const Arguments& arrays) {
  const float* x = arrays.in<float>("x");
  const float* dy = arrays.in<float>("dy");
  const Choice choice = choose(conv);
  const Product& product = choice.product;
  // The parts are stored four floats at a time; a workspace may begin at any float.
  const auto space = reinterpret_cast<std::uintptr_t>(arrays.workspace<float>());
  auto* const parts = reinterpret_cast<float*>(ceil_div(space, kAlignment) * kAlignment);
  const bool in_fours =
      channels_in_fours(conv) &&
      (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(dy)) % 16 == 0;
  launch(in_fours ? choice.in_fours : choice.one_by_one,
         {static_cast<unsigned>(product.blocks), kThreads, choice.shared_bytes}, product, x, dy,
         parts);
  const bool many = has_many_parts(product);
  const int shares = many ? 8 : 1;
  launch(many ? choice.add_many : choice.add_few,
         {blocks_for(std::int64_t{product.tiles} * ceil_div(choice.part / 4, kAddThreads / shares),
                     1, kMaxAddBlocks),
          dim3(static_cast<unsigned>(kAddThreads / shares), static_cast<unsigned>(shares))},
         product, parts, arrays.out<float>("dw"), arrays.out<float>("db"));
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Choice choice = choose(conv);
  const Product& product = choice.product;
  return text(choice.filters, " x ", choice.columns, channels_in_fours(conv) ? ", in fours" : "",
              product.blocks == 0                   ? ", nothing to do"
              : has_many_parts(product)             ? ", many parts"
              : product.blocks == product.tiles     ? ", one part"
              : product.blocks % product.tiles == 0 ? ", several parts"
                                                    : ", parts of several tiles",
              product.rest != 0 ? ", uneven" : "");
}

}  // namespace

Implementation<Conv2dProblem> implicit_gemm_mma_tf32() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
