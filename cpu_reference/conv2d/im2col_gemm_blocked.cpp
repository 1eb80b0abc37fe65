/// @file im2col_gemm_blocked.cpp
/// @brief conv2d, im2col in blocks that stay in the cache, each multiplied at once by a register-
/// tiled product, on all cores.
///
/// - Before: implicit_gemm.cpp
///
/// **The idea.** im2col_gemm.cpp writes all columns to memory, and the product reads them back. A
/// blocked product copies its operand in any case: into a small block, which it then loads many
/// times (cpu_reference/gemm/blocked.cpp). So form the columns there. The block of b that the
/// product packs is 256 taps of 96 pixels, copied straight from x:
///
///                    96 pixels                                            96 pixels
///                  +-----------+                                        +-----------+
///     256 taps     |  columns  |   96 KB, in the L2 cache      filters  |     y     |
///     (c, r, s)    +-----------+                               192 rows +-----------+
///
/// Pixels of all images are counted through, as in implicit_gemm.cpp. What a tap reads for a piece
/// of an output row lies in a row of x: copied at once, between zeros for the padding. For a 1 x 1
/// filter a plane is one long row. Where pixels are few, blocks have fewer filters: two a core.
///
/// Depthwise convolutions, whose one filter a group would fill one of the tile's six rows, need no
/// product: depthwise_tile.hpp copies a tile of x with its padding, and keeps 16 neighbouring sums
/// in vector registers over all taps.
///
/// **Expect.** The speed of the product, if there are filters enough: a column is copied once for
/// up to 192 filters. Of a depthwise 3 x 3, about the time to copy x and y.
/// **Costs.** Workspace for weights of 16 bits, as floats. Declines other layouts than NCHW.
/// **Try.** Count the pieces of a block for images of 7 x 7. Which part of the time is the copy?
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/parallel.hpp"
#include "core/type_names.hpp"
#include "cpu_reference/conv2d/depthwise_tile.hpp"
#include "cpu_reference/gemm/register_tile.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

using gemm::kBlockColumns, gemm::kTileColumns;

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  return {};
}

std::int64_t taps_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.C / conv.groups} * conv.R * conv.S;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  if (depthwise_tile(conv)) return 0;
  return gemm::bytes_as_floats(conv.dtype, conv.K * taps_of(conv));
}

/// Stores `count` sums, with a bias unless that is null.
template <class T>
void store_row(const Conv2dProblem& conv, const float* sums, int count, const float* bias, T* to) {
  for (int j = 0; j < count; ++j) {
    to[j] = rounded_to<T>(activated(conv.activation, bias ? sums[j] + *bias : sums[j]));
  }
}

/// Neighbouring pixels of an output row, `count` from q on.
struct Piece {
  int n, p, q, count;
};

/// Splits pixels `first` ... `first` + `count` - 1 of all images into pieces. @return how many
int split(const Conv2dProblem& conv, std::int64_t first, int count, Piece* pieces) {
  int made = 0;
  for (int done = 0; done < count; done += pieces[made++].count) {
    const std::int64_t i = first + done;
    const int q = static_cast<int>(i % conv.Q);
    pieces[made] = {static_cast<int>(i / conv.Q / conv.P), static_cast<int>(i / conv.Q % conv.P), q,
                    std::min(conv.Q - q, count - done)};
  }
  return made;
}

/// The same problem with planes of one row, if the filter is 1 x 1 and reads every pixel: then
/// pixels of different rows are neighbours, too.
Conv2dProblem with_long_rows(Conv2dProblem conv) {
  const bool reads_all = conv.R == 1 && conv.S == 1 && conv.stride.h == 1 && conv.stride.w == 1 &&
                         conv.P == conv.H && conv.Q == conv.W;
  if (!reads_all || std::int64_t{conv.H} * conv.W > std::numeric_limits<int>::max()) return conv;
  conv.W = conv.Q = conv.H * conv.W;
  conv.H = conv.P = 1;
  return conv;
}

/// Computes y from x where each filter has one input channel: no columns, no product.
template <class T>
void run_depthwise(const Conv2dProblem& conv, const DepthwiseTile& tile,
                   const Conv2dArrays& arrays) {
  const T* x = arrays.x;
  const T* weights = arrays.weights;
  const float* bias = arrays.bias;
  T* y = arrays.y;

  const int taps = conv.R * conv.S, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W}, y_at{conv.K, conv.P, conv.Q};
  const std::int64_t tiles_down = ceil_div(conv.P, tile.rows);
  const std::int64_t tiles_across = ceil_div(conv.Q, tile.columns);
  const auto compute = [&](std::int64_t index) {
    const int q0 = static_cast<int>(index % tiles_across) * tile.columns;
    const int p0 = static_cast<int>(index / tiles_across % tiles_down) * tile.rows;
    const int c = static_cast<int>(index / tiles_across / tiles_down % conv.C);
    const int n = static_cast<int>(index / tiles_across / tiles_down / conv.C);
    const int rows = std::min(conv.P - p0, tile.rows),
              columns = std::min(conv.Q - q0, tile.columns);
    alignas(64) float inputs[DepthwiseTile::kFloats], sums[DepthwiseTile::kFloats];
    copy_inputs(conv, tile, x + x_at(n, c, 0, 0), p0, q0, rows, inputs);
    for (int k = c * group_k; k < (c + 1) * group_k; ++k) {
      float filter[DepthwiseTile::kTaps];
      for (int tap = 0; tap < taps; ++tap) {
        filter[tap] = to_float(weights[std::int64_t{k} * taps + tap]);
      }
      weighted_sums(tile, inputs, std::int64_t{conv.stride.h} * tile.row(), filter, taps, rows,
                    sums);
      for (int p = 0; p < rows; ++p) {
        store_row(conv, sums + p * tile.columns, columns, bias ? bias + k : nullptr,
                  y + y_at(n, k, p0 + p, q0));
      }
    }
  };
  constexpr double kTapNanoseconds = 0.1;  // on one core, with its share of the copy
  parallel_for(tiles_across * tiles_down * conv.C * conv.N, compute,
               kTapNanoseconds * conv.N * conv.K * conv.P * conv.Q * taps);
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
template <class T>
void run_as(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const T* x = arrays.x;
  const T* weights = arrays.weights;
  const float* bias = arrays.bias;
  T* y = arrays.y;

  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W}, y_at{conv.K, conv.P, conv.Q};
  const std::int64_t taps = taps_of(conv);
  const std::int64_t pixels = std::int64_t{conv.N} * conv.P * conv.Q;
  const float* a = gemm::as_floats(weights, conv.K * taps, context.workspace_as<float>());

  const std::int64_t blocks_across = ceil_div<std::int64_t>(pixels, kBlockColumns);
  const int block_rows = gemm::block_rows(group_k, conv.groups * blocks_across);
  const std::int64_t blocks_down = ceil_div(group_k, block_rows);
  const auto compute = [&](std::int64_t block) {
    const int k0 = static_cast<int>(block % blocks_down) * block_rows;  // of the group's filters
    const std::int64_t first = block / blocks_down % blocks_across * kBlockColumns;
    const int g = static_cast<int>(block / blocks_down / blocks_across);
    const int count = static_cast<int>(std::min<std::int64_t>(pixels - first, kBlockColumns));
    Piece pieces[kBlockColumns];
    const int piece_count = split(conv, first, count, pieces);

    const auto copy_columns = [&](std::int64_t tap, std::int64_t depth, float* to) {
      for (std::int64_t end = tap + depth; tap < end; ++tap, to += kBlockColumns) {
        const int s = static_cast<int>(tap % conv.S), r = static_cast<int>(tap / conv.S % conv.R);
        const int c = g * group_c + static_cast<int>(tap / conv.S / conv.R);
        std::fill_n(to, gemm::rounded_up(count, kTileColumns), 0.0f);
        float* column = to;
        for (int i = 0; i < piece_count; column += pieces[i++].count) {
          const Piece& piece = pieces[i];
          const int h = piece.p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
          const int w = piece.q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
          const Range j = range_inside(conv.W, w, conv.stride.w, piece.count);
          if (h < 0 || h >= conv.H || j.begin >= j.end) continue;
          copy_strided(x + x_at(piece.n, c, h, w + j.begin * conv.stride.w), conv.stride.w,
                       j.end - j.begin, column + j.begin);
        }
      }
    };
    const auto store = [&](int row, const float* sums) {
      const int k = g * group_k + k0 + row;
      for (int i = 0; i < piece_count; sums += pieces[i++].count) {
        store_row(conv, sums, pieces[i].count, bias ? bias + k : nullptr,
                  y + y_at(pieces[i].n, k, pieces[i].p, pieces[i].q));
      }
    };
    gemm::multiply_block(a + (g * group_k + k0) * taps, std::min(group_k - k0, block_rows), count,
                         taps, copy_columns, store);
  };
  parallel_for(conv.groups * blocks_across * blocks_down, compute,
               gemm::kNanoseconds * static_cast<double>(pixels * taps) * conv.K);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const auto tile = depthwise_tile(conv);
  with_float_type(conv.dtype, [&]<class T>(T) {
    if (tile) return run_depthwise<T>(conv, *tile, arrays);
    run_as<T>(with_long_rows(conv), arrays, context);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (depthwise_tile(conv)) return "one input channel a filter";
  if (with_long_rows(conv).H < conv.H) return "planes as rows";
  return conv.stride.w == 1 ? "neighbouring inputs" : "strided inputs";
}

}  // namespace

extern const Implementation<Conv2dArrays> im2col_gemm_blocked = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::conv2d
