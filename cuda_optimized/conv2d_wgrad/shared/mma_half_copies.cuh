/// @file mma_half_copies.cuh
/// @brief The weight gradient with half-precision `mma.sync`: copies of the tiles of dy and of the
/// windows of x into swizzled shared memory, and the tiles of a problem; implicit_gemm/mma.cu
/// explains the kernel.
#pragma once

#include <climits>
#include <cstdint>
#include <type_traits>

#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "cuda_optimized/conv2d_wgrad/shared/mma_product.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad {

/// `mma.sync` m16n8k16 of this type.
template <class T>
__device__ inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4],
                                    const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, Half>) {
    ptx::mma_m16n8k16_f16(d, a, b);
  } else {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
}

/// Whether both arrays are aligned to 16 bytes.
inline bool begin_at_16_bytes(const void* a, const void* b) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % 16 == 0;
}

inline constexpr int kPiece = 8;       ///< Numbers in 16 bytes, which one cp.async copies.
inline constexpr int kHalfChunk = 64;  ///< Neighbouring columns that eight threads copy: 128 bytes.

/// Offset of a number in a tile [pixel][column] with rows of kLength numbers. The eight 16-byte
/// pieces of a chunk are permuted by exclusive or with the row's number: ldmatrix reads the same
/// piece of eight rows at a time, and these lie in different banks.
template <int kLength>
HOST_DEVICE int swizzled_place(int pixel, int column) {
  static_assert(kLength % kHalfChunk == 0);
  return pixel * kLength + ((column / kPiece ^ pixel % 8) * kPiece | column % kPiece);
}

/// One pixel of y, decoded once for all threads of the block.
struct alignas(16) HalfPixel {
  /// Address of its window's first tap, in channel 0: a number, as that may lie outside of x.
  std::uintptr_t x;
  int h, w;  ///< Where that tap lies in x, or outside.
};

/// Pixel number `pixel` of all images. From `end` on, a window without any tap in x.
template <class T>
__device__ HalfPixel half_pixel_at(const MmaProduct& product, const T* x, int pixel, int end) {
  const Conv2dProblem& conv = product.conv;
  const auto begin = reinterpret_cast<std::uintptr_t>(x);
  if (pixel >= end) return {begin, INT_MIN, INT_MIN};
  const int row = product.by_columns.quotient(pixel), q = product.by_columns.remainder(pixel, row);
  const int n = product.by_rows.quotient(row), p = product.by_rows.remainder(row, n);
  const int h = p * conv.stride.h - conv.pad.top, w = q * conv.stride.w - conv.pad.left;
  return {begin + sizeof(T) * (((std::int64_t{n} * conv.H + h) * conv.W + w) * conv.C), h, w};
}

/// A column of the windows: one channel of one tap, relative to the window's first tap.
struct WindowColumn {
  unsigned h, w;  ///< In pixels; beyond the last column, outside of x for every pixel.
  int from;       ///< In numbers.

  /// Whether that tap of the pixel's window lies in x. As unsigned numbers, coordinates before 0
  /// are large, so that one comparison for each axis is enough.
  __device__ bool lies_in(const Conv2dProblem& conv, const HalfPixel& pixel) const {
    return static_cast<unsigned>(pixel.h) + h < static_cast<unsigned>(conv.H) &&
           static_cast<unsigned>(pixel.w) + w < static_cast<unsigned>(conv.W);
  }
};

/// Column number `column` of a group's filters.
__device__ inline WindowColumn window_column(const MmaProduct& product, int group, int column) {
  const Conv2dProblem& conv = product.conv;
  if (column >= product.columns) {
    return {static_cast<unsigned>(conv.H) + static_cast<unsigned>(conv.pad.top), 0, 0};
  }
  const int tap = product.by_channels.quotient(column);
  const int c = product.by_channels.remainder(column, tap);
  const int r = product.by_taps_across.quotient(tap);
  const int s = product.by_taps_across.remainder(tap, r);
  const int h = r * conv.dilation.h, w = s * conv.dilation.w;
  return {static_cast<unsigned>(h), static_cast<unsigned>(w),
          (h * conv.W + w) * conv.C + group * (conv.C / conv.groups) + c};
}

/// How the threads copy a tile [kPixels][kLength]: eight neighbouring threads take a chunk of a
/// row, and each thread the same piece of several rows and chunks.
template <int kThreads, int kPixels, int kLength>
struct HalfCopies {
  static constexpr int kRows = kThreads / 8;                ///< At a time.
  static constexpr int kChunks = kLength / kHalfChunk;      ///< Of a row.
  static constexpr int kCount = kPixels / kRows * kChunks;  ///< Pieces of a thread in a step.
  static_assert(kPixels % kRows == 0 && kRows % 8 == 0, "a thread's rows are swizzled alike");

  /// The first row that this thread copies.
  __device__ static int row() { return static_cast<int>(threadIdx.x) / 8; }
  /// Its first column.
  __device__ static int column() { return static_cast<int>(threadIdx.x) % 8 * kPiece; }
  /// How far below the first row its i-th piece lies.
  HOST_DEVICE static constexpr int row_of(int i) { return i / kChunks * kRows; }
  /// How far to the right of the first column.
  HOST_DEVICE static constexpr int column_of(int i) { return i % kChunks * kHalfChunk; }
};

/// Stores a thread's pieces, which passed through registers, to a tile. @param to the first one's
template <class Copies, int kLength, class T>
__device__ void store_pieces(T* to, const T (&numbers)[Copies::kCount][kPiece]) {
#pragma unroll
  for (int i = 0; i < Copies::kCount; ++i) {
    const auto two = [&](int j) {
      return numbers[i][j].bits | std::uint32_t{numbers[i][j + 1].bits} << 16;
    };
    *reinterpret_cast<uint4*>(to + Copies::row_of(i) * kLength + Copies::column_of(i)) = {
        two(0), two(2), two(4), two(6)};
  }
}

/// The tile of dy: [pixels][filters].
/// @tparam kAligned all pieces are whole, and are aligned to 16 bytes: they are copied
/// asynchronously. Otherwise number by number, through registers.
template <class Copies, class T, bool kAligned>
struct GradientCopies {
  std::uintptr_t from;     ///< Address of the thread's first piece, perhaps outside of dy.
  int pixels_left,         ///< From its pixel to the end of the block's share.
      filters_left;        ///< From its filter to the end of the group.
  std::int64_t row_bytes;  ///< From a pixel to the next.

  /// For pixels `begin` to `end` of a tile.
  template <class Tile>
  __device__ GradientCopies(const MmaProduct& product, const Tile& tile, const T* dy, int begin,
                            int end) {
    row_bytes = std::int64_t{product.conv.K} * std::int64_t{sizeof(T)};
    from = reinterpret_cast<std::uintptr_t>(dy) +
           (std::int64_t{begin} + Copies::row()) * row_bytes +
           sizeof(T) * (std::int64_t{tile.group} * product.filters + tile.m + Copies::column());
    pixels_left = end - begin - Copies::row();
    filters_left = product.filters - tile.m - Copies::column();
  }
  /// Copies the next kPixels pixels to `tile`, with zeros beyond the last pixel and filter.
  template <int kPixels, int kLength>
  __device__ void copy(T* tile) {
    T* const to = tile + swizzled_place<kLength>(Copies::row(), Copies::column());
    T numbers[Copies::kCount][kPiece];  // those that pass through registers: all loads, then stores
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const int row = Copies::row_of(i), m = Copies::column_of(i);
      const int count = row < pixels_left ? filters_left - m : 0;
      const auto* const piece = reinterpret_cast<const T*>(from + row * row_bytes) + m;
      if constexpr (kAligned) {
        ptx::cp_async<16>(to + row * kLength + m, piece, count > 0 ? 16 : 0);
      } else {
#pragma unroll
        for (int j = 0; j < kPiece; ++j) numbers[i][j] = j < count ? piece[j] : T{};
      }
    }
    if constexpr (!kAligned) store_pieces<Copies, kLength>(to, numbers);
    from += kPixels * row_bytes;
    pixels_left -= kPixels;
  }
};

/// The tile of the windows: [pixels][taps and channels]. @tparam kAligned as above
template <class Copies, class T, bool kAligned>
struct WindowCopies {
  static constexpr int kTaps = kAligned ? 1 : kPiece;  ///< In a piece, at most.
  const Conv2dProblem& conv;                           ///< The convolution.
  WindowColumn columns[Copies::kChunks][kTaps];        ///< Those where a tap of a piece may begin.

  /// For a tile.
  template <class Tile>
  __device__ WindowCopies(const MmaProduct& product, const Tile& tile) : conv(product.conv) {
#pragma unroll
    for (int i = 0; i < Copies::kChunks; ++i) {
#pragma unroll
      for (int j = 0; j < kTaps; ++j) {
        columns[i][j] = window_column(product, tile.group,
                                      tile.n + Copies::column() + Copies::column_of(i) + j);
      }
    }
  }
  /// Copies the windows of the step whose pixels these are to `tile`, with zeros for taps outside.
  template <int kLength>
  __device__ void copy(const HalfPixel* pixels, T* tile) const {
    T* const to = tile + swizzled_place<kLength>(Copies::row(), Copies::column());
    T numbers[Copies::kCount][kPiece];
    HalfPixel pixel{};
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const int row = Copies::row_of(i), n = Copies::column_of(i);
      if (n == 0) pixel = pixels[Copies::row() + row];
      const auto& taps = columns[i % Copies::kChunks];
      if constexpr (kAligned) {
        ptx::cp_async<16>(to + row * kLength + n, number_at(pixel, taps[0]),
                          taps[0].lies_in(conv, pixel) ? 16 : 0);
      } else {
#pragma unroll
        for (int j = 0; j < kPiece; ++j) {
          numbers[i][j] = taps[j].lies_in(conv, pixel) ? *number_at(pixel, taps[j]) : T{};
        }
      }
    }
    if constexpr (!kAligned) store_pieces<Copies, kLength>(to, numbers);
  }

 private:
  __device__ static const T* number_at(const HalfPixel& pixel, const WindowColumn& column) {
    return reinterpret_cast<const T*>(pixel.x + sizeof(T) * column.from);
  }
};

inline constexpr int kMmaPixels = 16;  ///< Pixels that one mma.sync multiplies.

/// The fewest loads for each product.
struct LargeHalves {
  static constexpr MmaShape kShape{
      .M = 128, .N = 256, .warp_m = 64, .warp_n = 64, .blocks = 1, .step = 64};  ///< see there
  static constexpr int kStages = 3;  ///< Steps in shared memory: one in use, others in flight.
};
/// For at most 64 filters.
struct WideHalves {
  static constexpr MmaShape kShape{
      .M = 64, .N = 192, .warp_m = 64, .warp_n = 48, .blocks = 2, .step = 64};  ///< see there
  static constexpr int kStages = 3;                                             ///< as above
};
/// For few taps and channels, and for what the others do not take.
struct SmallHalves {
  static constexpr MmaShape kShape{
      .M = 64, .N = 64, .warp_m = 32, .warp_n = 32, .blocks = 3, .step = 64};  ///< see there
  static constexpr int kStages = 4;                                            ///< as above
};

/// The sizes of a block that follow from its shape.
template <class Shape>
struct HalfBlock {
  static constexpr MmaShape S = Shape::kShape;                    ///< see there
  static constexpr int kWarpsN = S.N / S.warp_n;                  ///< Warps along n.
  static constexpr int kThreads = S.M / S.warp_m * kWarpsN * 32;  ///< Of the block.
  static constexpr int kAhead = kThreads / S.step;                ///< Steps decoded at once.
  static constexpr int kNumbersA = S.M * S.step;                  ///< Of a stage's tile of dy.
  static constexpr int kNumbers = kNumbersA + S.N * S.step;       ///< Of a stage.
  static constexpr int kBias = ceil_div(S.warp_m / 16, kWarpsN);  ///< Fragments that a warp
                                                                  ///< adds up for db.
  static constexpr std::size_t kSharedBytes =
      std::size_t{Shape::kStages * kNumbers} * 2 + 2 * kThreads * sizeof(HalfPixel);  ///< In all.
  static_assert(kThreads % S.step == 0 && Shape::kStages <= 2 * kAhead && kAhead > 0);
  using CopiesA = HalfCopies<kThreads, S.step, S.M>;  ///< Of dy.
  using CopiesB = HalfCopies<kThreads, S.step, S.N>;  ///< Of the windows.
};

/// Whether all pieces of 16 bytes are whole, if x and dy are aligned to 16 bytes.
inline bool channels_in_eights(const Conv2dProblem& conv) {
  return conv.K / conv.groups % kPiece == 0 && conv.C / conv.groups % kPiece == 0;
}

/// Calls body(Shape{}) for the tile that suits the problem.
template <class Body>
auto with_half_tile(const Conv2dProblem& conv, const Body& body) {
  const std::size_t shared = max_shared_bytes();
  const bool few_filters = conv.K / conv.groups <= WideHalves::kShape.M;
  const bool few_columns = filter_size_of(conv) <= LargeHalves::kShape.N / 2;
  if (channels_in_eights(conv) && !few_columns) {
    if (few_filters && HalfBlock<WideHalves>::kSharedBytes <= shared) return body(WideHalves{});
    if (!few_filters && HalfBlock<LargeHalves>::kSharedBytes <= shared) return body(LargeHalves{});
  }
  return body(SmallHalves{});
}

/// Floats of all parts, [blocks + tiles - 1][S.part()].
template <class Shape>
std::int64_t mma_part_floats(const Conv2dProblem& conv) {
  const MmaProduct product = product_with(conv, Shape::kShape);
  if (product.blocks == 0) return 0;
  return (std::int64_t{product.blocks} + product.tiles - 1) * Shape::kShape.part();
}

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_wgrad
