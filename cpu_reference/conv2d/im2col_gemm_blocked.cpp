/// @file im2col_gemm_blocked.cpp
/// @brief Cache blocking: blocks of columns stay in the cache and feed a register tile.
///
/// - Before: implicit_gemm.cpp
///
/// **The idea.** A blocked GEMM packs operand B into a small block that is loaded many times
/// (cpu_reference/gemm/blocked.cpp). Here the packing forms the columns, which never pass through
/// memory: a block of B is 256 taps of 96 pixels, copied directly from x:
///
///                    96 pixels                                            96 pixels
///                  +-----------+                                        +-----------+
///     256 taps     |  columns  |   96 KB, in the L2 cache      filters  |     y     |
///     (c, r, s)    +-----------+                               192 rows +-----------+
///
/// Pixels are counted through all images. What a tap reads for part of an output row is a
/// contiguous part of a row of x. If there are few pixels, blocks have fewer filters, two blocks
/// per core.
///
/// With few filters (up to 32 per group), copying a column takes longer than its products. Then
/// input_tile.hpp copies a tile of x once, with its padding, for all R x S taps, so that the inputs
/// of 16 neighbouring accumulators are adjacent for every tap.
///
/// **Expect.** The speed of the GEMM if there are enough filters: a column is copied once for up to
/// 192 filters. For depthwise 3 x 3, about the time to copy x and y.
/// **Costs.** Workspace for fp16 and bf16 weights converted to float. Supports layout NCHW only.
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/parallel.hpp"
#include "core/type_names.hpp"
#include "cpu_reference/conv2d/input_tile.hpp"
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
  return gemm::bytes_as_floats(conv.dtype, conv.K * taps_of(conv));
}

/// Stores `count` accumulators, plus a bias if it is not null.
template <class T>
void store_row(const Conv2dProblem& conv, const float* sums, int count, const float* bias, T* to) {
  for (int j = 0; j < count; ++j) {
    to[j] = rounded_to<T>(activated(conv.activation, bias ? sums[j] + *bias : sums[j]));
  }
}

/// Neighbouring pixels of an output row, `count` pixels from q on.
struct Piece {
  int n, p, q, count;
};

/// Splits pixels `first` ... `first` + `count` - 1 of all images into parts of rows. @return their
/// number
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
/// pixels of different rows are adjacent, too.
Conv2dProblem with_long_rows(Conv2dProblem conv) {
  const bool reads_all = conv.R == 1 && conv.S == 1 && conv.stride.h == 1 && conv.stride.w == 1 &&
                         conv.P == conv.H && conv.Q == conv.W;
  if (!reads_all || std::int64_t{conv.H} * conv.W > std::numeric_limits<int>::max()) return conv;
  conv.W = conv.Q = conv.H * conv.W;
  conv.H = conv.P = 1;
  return conv;
}

/// Computes y from tiles of inputs, without columns and GEMM.
template <class T>
void run_tiles(const Conv2dProblem& conv, const InputTile& tile, const Conv2dArrays& arrays,
               const Context& context) {
  const std::int64_t taps = taps_of(conv);
  const TileArrays<T> typed = {
      arrays.x, gemm::as_floats<T>(arrays.weights, conv.K * taps, context.workspace_as<float>()),
      arrays.bias, arrays.y};
  const std::int64_t tiles_down = ceil_div(conv.P, tile.rows);
  const std::int64_t tiles_across = ceil_div(conv.Q, tile.columns);
  const std::int64_t tiles_deep = ceil_div(conv.groups, tile.groups);
  const auto compute = [&](std::int64_t index) {
    const auto q = static_cast<int>(index % tiles_across) * tile.columns;
    const auto p = static_cast<int>(index / tiles_across % tiles_down) * tile.rows;
    const std::int64_t planes = index / tiles_across / tiles_down;
    const auto group = static_cast<int>(planes % tiles_deep) * tile.groups;
    compute_tile_on_this_cpu<T>(conv, tile, typed,
                                {static_cast<int>(planes / tiles_deep), group, p, q});
  };
  constexpr double kTapNanoseconds = 0.04, kCopyNanoseconds = 0.3;  // cost of one input on one core
  const double products = static_cast<double>(conv.N * taps) * conv.K * conv.P * conv.Q;
  const double inputs = static_cast<double>(conv.N) * conv.C * conv.H * conv.W;
  parallel_for(tiles_across * tiles_down * tiles_deep * conv.N, compute,
               kTapNanoseconds * products + kCopyNanoseconds * inputs);
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
    const int k0 = static_cast<int>(block % blocks_down) * block_rows;  // among the group's filters
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
  const auto tile = input_tile(conv);
  with_float_type(conv.dtype, [&]<class T>(T) {
    if (tile) return run_tiles<T>(conv, *tile, arrays, context);
    run_as<T>(with_long_rows(conv), arrays, context);
  });
}

std::string choice_in_words(const Conv2dProblem& conv) {
  if (input_tile(conv)) return "tiles of inputs";
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
