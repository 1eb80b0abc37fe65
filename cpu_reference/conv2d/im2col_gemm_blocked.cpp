/// @file im2col_gemm_blocked.cpp
/// @brief conv2d, im2col in blocks that stay in the cache, each multiplied at once by a register-
/// tiled product, on all cores.
///
/// - Before: im2col_gemm.cpp
///
/// **The idea.** im2col_gemm.cpp writes all columns to memory, and the product reads them back. A
/// blocked product copies its operand in any case: into a small block, which it then loads many
/// times (cpu_reference/gemm/blocked.cpp). So form the columns there. The block of b that the
/// product packs is 256 taps of 80 pixels, copied straight from x:
///
///                    80 pixels                                            80 pixels
///                  +-----------+                                        +-----------+
///     256 taps     |  columns  |   80 KB, in the L2 cache      filters  |     y     |
///     (c, r, s)    +-----------+                               192 rows +-----------+
///
/// Pixels of all images are counted through, as in implicit_gemm.cpp. A block's pixels are pieces
/// of a few output rows, and what a tap reads of a piece lies in a row of x: copied at once, with
/// zeros where it reaches into the padding.
///
/// **Expect.** The speed of the product, if there are filters enough: a column is copied once for
/// up to 192 filters. This is what libraries do on a CPU.
/// **Costs.** Workspace for the weights, packed. Each group has its own product, of K/G filters
/// padded to 6: depthwise convolutions, with one, are faster by reordered.cpp. Declines other
/// layouts than NCHW.
/// **Try.** Count the runs of a block for images of 7 x 7. Which part of the time does the copy
/// take then?
#include "core/arithmetic.hpp"
#include "core/conv2d_problem.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/parallel.hpp"
#include "core/type_names.hpp"
#include "cpu_reference/gemm/register_tile.hpp"

namespace convladder::cpu_reference::conv2d {
namespace {

using gemm::kBlockColumns, gemm::kBlockRows, gemm::kTileColumns;

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  return {};
}

std::int64_t taps_of(const Conv2dProblem& conv) {
  return std::int64_t{conv.C / conv.groups} * conv.R * conv.S;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const std::int64_t strips = gemm::strip_floats(conv.K / conv.groups, taps_of(conv));
  return static_cast<std::size_t>(
      checked_product({conv.groups, strips, sizeof(float)}, "bytes of packed weights"));
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

/// Copies row[w], row[w + stride] ...; zeros for what lies outside of the row's W pixels.
template <class T>
void copy_padded(const T* row, int W, int w, int stride, int count, float* to) {
  int begin = 0, end = count;  // those inside
  if (w < 0) begin = std::min(ceil_div(-w, stride), count);
  if (w + std::int64_t{count - 1} * stride >= W) end = w < W ? (W - 1 - w) / stride + 1 : 0;
  std::fill_n(to, begin, 0.0f);
  if (stride == 1) {  // apart, because only this form is worth vector loads
    for (int j = begin; j < end; ++j) to[j] = to_float(row[w + j]);
  } else {
    for (int j = begin; j < end; ++j) to[j] = to_float(row[w + std::int64_t{j} * stride]);
  }
  end = std::max(begin, end);
  std::fill_n(to + end, count - end, 0.0f);
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
  const std::int64_t strip_floats = gemm::strip_floats(group_k, taps);
  float* strips = context.workspace_as<float>();
  for (int g = 0; g < conv.groups; ++g) {
    gemm::pack_strips(weights + g * group_k * taps, group_k, taps, strips + g * strip_floats);
  }

  const std::int64_t blocks_down = ceil_div(group_k, kBlockRows);
  const std::int64_t blocks_across = ceil_div<std::int64_t>(pixels, kBlockColumns);
  parallel_for(conv.groups * blocks_across * blocks_down, [&](std::int64_t block) {
    const int k0 = static_cast<int>(block % blocks_down) * kBlockRows;  // of the group's filters
    const std::int64_t first = block / blocks_down % blocks_across * kBlockColumns;
    const int g = static_cast<int>(block / blocks_down / blocks_across);
    const int count = static_cast<int>(std::min<std::int64_t>(pixels - first, kBlockColumns));
    Piece pieces[kBlockColumns];
    const int piece_count = split(conv, first, count, pieces);

    const auto copy_columns = [&](std::int64_t tap, std::int64_t depth, float* to) {
      for (std::int64_t end = tap + depth; tap < end; ++tap, to += kBlockColumns) {
        const int s = static_cast<int>(tap % conv.S), r = static_cast<int>(tap / conv.S % conv.R);
        const int c = g * group_c + static_cast<int>(tap / conv.S / conv.R);
        float* column = to;
        for (int i = 0; i < piece_count; column += pieces[i++].count) {
          const Piece& piece = pieces[i];
          const int h = piece.p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
          const int w = piece.q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
          if (h < 0 || h >= conv.H) {
            std::fill_n(column, piece.count, 0.0f);
          } else {
            copy_padded(x + x_at(piece.n, c, h, 0), conv.W, w, conv.stride.w, piece.count, column);
          }
        }
        std::fill(column, to + gemm::rounded_up(count, kTileColumns), 0.0f);
      }
    };
    const auto store = [&](int row, const float* sums) {
      const int k = g * group_k + k0 + row;
      for (int i = 0; i < piece_count; sums += pieces[i++].count) {
        T* to = y + y_at(pieces[i].n, k, pieces[i].p, pieces[i].q);
        for (int j = 0; j < pieces[i].count; ++j) {
          to[j] = rounded_to<T>(activated(conv.activation, bias ? sums[j] + bias[k] : sums[j]));
        }
      }
    };
    gemm::multiply_block(strips + g * strip_floats + k0 * taps, std::min(group_k - k0, kBlockRows),
                         count, taps, copy_columns, store);
  });
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  with_float_type(conv.dtype, [&]<class T>(T) { run_as<T>(conv, arrays, context); });
}

std::string choice_in_words(const Conv2dProblem& conv) {
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
