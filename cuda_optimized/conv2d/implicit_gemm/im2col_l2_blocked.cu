/// @file im2col_l2_blocked.cu
/// @brief L2-blocked im2col and GEMM: the columns are computed in pieces that stay in the L2 cache.
///
/// - Before: cuda_naive/conv2d/im2col_gemm.cu
/// - Made of: cuda_optimized/im2col/im2col_vectorized.cu,
///
/// **The idea.** Columns are R * S times as large as the input, and are read back soon after they
/// are written. If the cache holds them in between, DRAM traffic is saved twice. So the columns of
/// as many windows as fit 16 MB, a third of an H200's L2 cache, are computed; then the GEMM, which
/// reads them; then the next piece, in the same workspace. Several small images form a piece, and a
/// large one is cut into pieces of some rows of windows: im2col of rows p0 ... p1 is im2col of an
/// image whose padding above is p0 * stride less.
///
///     B9, one image: 576 x 50176 columns, 116 MB        16 MB of it at a time: 32 rows of windows
///       col [ |rows 0-31| rows 32-63 | ... | ]   im2col -> 16 MB in L2 -> GEMM -> y, rows 0-31
///                                                im2col -> the same 16 MB -> GEMM -> rows 32-63
///
/// **Expect.** DRAM traffic: x once and y once, instead of x, y and twice the columns: 0.41 GB a
/// pass instead of 4.1 GB for B9, whose DRAM time falls from 1 ms to 0.1 ms. What remains is the
/// time of the GEMM, which hides that: at some 6 TFLOP/s, gemm_tiled takes 10 ms for B9's 59 GFLOP.
/// @expect on --n 2 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect launches 2, small images go together; im2col_gemm has two each
/// @expect bytes_per_lane.workspace.store 16
/// @expect loads_per_output.workspace 16 * 3 * 3 / 32 = 4.5, tiles of 32 x 32 accumulators
/// @expect loads_per_output.weights 16 * 3 * 3 / 32 = 4.5
/// **Costs.** Two launches per piece, 2 x 112 for B9; a GEMM of few columns has a poorly filled
/// last wave. A workspace of 16 MB, or of one row of windows if that is larger. Not supported:
/// NHWC, types other than float32, an activation (the GEMM has none), 2^31 or more rows of columns,
/// 2^30 or more windows per image.
/// **Try.** Let the pieces have 4, 64 and 256 MB. Where do you expect the time to change, and by
/// how much?
#include "core/conv2d_problem.hpp"
#include "core/cuda/batched_gemm.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/tiled_batched.cuh"
#include "cuda_optimized/im2col/im2col_vectorized.cuh"
#include "cuda_optimized/im2col/shared/column_budget.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// Columns at a time. An H200 keeps 50 MB in L2, in two halves.
constexpr std::int64_t kChunkBytes = std::int64_t{16} << 20;
/// Tests lower max_strided_blocks, which means a small GPU here: with so many bytes a block, small
/// problems go in pieces, too.
constexpr std::int64_t kChunkBytesPerBlock = 16 << 10;

/// What is computed at a time: several images, or rows of windows of one.
struct Chunk {
  int images, rows;
};

Chunk chunk_of(const Conv2dProblem& conv) {
  const std::int64_t budget = max_strided_blocks < kChunkBytes / kChunkBytesPerBlock
                                  ? max_strided_blocks * kChunkBytesPerBlock
                                  : kChunkBytes;
  const std::int64_t image = column_bytes(conv), row = image / conv.P;
  if (image <= budget) {
    return {static_cast<int>(std::min<std::int64_t>(std::max(conv.N, 1), budget / image)), conv.P};
  }
  return {1, static_cast<int>(std::max<std::int64_t>(1, budget / row))};
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.activation != Activation::none) return "no activation: its product knows of none";
  if (auto reason = columns_too_large(conv)) return reason;
  return im2col::too_large_for_im2col_vectorized(columns_of_images(conv, 1));
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  const Chunk chunk = chunk_of(conv);
  return static_cast<std::size_t>(
      checked_product({chunk.images, column_bytes(conv) / conv.P, chunk.rows}, "bytes of columns"));
}

/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  const float* x = arrays.x;
  float* y = arrays.y;
  float* col = context.workspace_as<float>();

  const Chunk chunk = chunk_of(conv);
  for (std::int64_t n0 = 0; n0 < conv.N; n0 += chunk.images) {
    const int images = static_cast<int>(std::min<std::int64_t>(chunk.images, conv.N - n0));
    for (std::int64_t p0 = 0; p0 < conv.P; p0 += chunk.rows) {
      Im2colProblem columns = columns_of_images(conv, images);
      columns.height.out = static_cast<int>(std::min<std::int64_t>(chunk.rows, conv.P - p0));
      columns.height.pad_before -= static_cast<int>(p0 * conv.stride.h);  // may be below 0
      const std::int64_t windows = columns.columns();                     // rows * Q, of an image
      const std::int64_t group_rows = columns.rows() / conv.groups;       // C/G * R * S
      const std::int64_t group_k = conv.K / conv.groups;
      const std::int64_t x_size = columns.C * columns.channel_size();
      const std::int64_t y_plane = std::int64_t{conv.P} * conv.Q, y_size = conv.K * y_plane;

      const BatchedGemm product{.M = static_cast<int>(group_k),
                                .N = static_cast<int>(windows),
                                .K = static_cast<int>(group_rows),
                                .images = images,
                                .groups = conv.groups,
                                .a = {.data = arrays.weights,
                                      .row_stride = group_rows,
                                      .column_stride = 1,
                                      .group_stride = group_k * group_rows},
                                .b = {.data = col,
                                      .row_stride = windows,
                                      .column_stride = 1,
                                      .image_stride = columns.rows() * windows,
                                      .group_stride = group_rows * windows},
                                .c = {.data = y + n0 * y_size + p0 * conv.Q,
                                      .row_stride = y_plane,
                                      .column_stride = 1,
                                      .image_stride = y_size,
                                      .group_stride = group_k * y_plane},
                                .bias = arrays.bias};
      im2col::launch_im2col_vectorized(columns, x + n0 * x_size, col, /*streaming=*/false);
      gemm::launch_gemm_tiled(product);  // the next piece's im2col waits for it: one stream
    }
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const Chunk chunk = chunk_of(conv);
  return text(chunk.rows < conv.P      ? "some rows of an image"
              : chunk.images >= conv.N ? "all images"
              : chunk.images == 1      ? "an image"
                                       : "some images",
              " at a time, ", im2col::im2col_vectorized_in_words(columns_of_images(conv, 1)));
}

}  // namespace

extern const Implementation<Conv2dArrays> implicit_gemm_im2col_l2_blocked = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
