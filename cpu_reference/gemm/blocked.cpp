/// @file blocked.cpp
/// @brief gemm, cache blocking and register tiling: each operand is packed once per block, and 6 x
/// 16 accumulators stay in vector registers.
///
/// - Before: triple_loop.cpp
///
/// **The idea.** The triple loop loads two numbers for each multiply-add. Three changes bring that
/// down, and they are those of every fast product (Goto and van de Geijn, "Anatomy of
/// high-performance matrix multiplication", 2008):
///
///     c block   192 x 80    a core computes one at a time; its accumulators stay in the L2 cache
///     b block   256 x 80    packed once for all rows of the c block: 80 KB, in the L2 cache
///     tile        6 x 16    12 vector registers of 8 floats; per step along k two loads of b and
///                           six of a feed 12 vector multiply-adds
///
///     a strip  k -> [ a0 a1 a2 a3 a4 a5 ]       b block  k -> [ 16 floats ] [ 16 ] ... 5 times
///
/// a is packed into strips of six rows, in the order in which the innermost loop loads it.
/// Operands of 16 and 8 bits become floats as they are packed; the loops are the same.
///
/// **Expect.** More than half of the core's peak (with FMA 16 multiply-adds a cycle), on all cores:
/// a multiply-add costs 2 / 3 of a vector load per 8, where the triple loop pays two loads each.
/// **Costs.** Workspace for a, packed: as many floats as a has, rounded up to six rows. Columns are
/// padded to 16 and rows to 6: a product with one column does 16 times the work. The order of
/// summation is its own, and a fused multiply-add rounds once where the loops round twice.
/// **Try.** Make the tile 4 x 24, or 8 x 16. Which of them needs more than 16 registers, and what
/// does that cost?
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/parallel.hpp"
#include "core/type_names.hpp"
#include "cpu_reference/gemm/register_tile.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

std::size_t workspace_bytes(const GemmProblem& gemm) {
  return static_cast<std::size_t>(strip_floats(gemm.M, gemm.K)) * sizeof(float);
}

/// a [M][K], b [K][N], bias [N] or null, c [M][N].
template <class T>
void run_as(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  const T* b = arrays.b;
  const float* bias = arrays.bias;
  ProductOf<T>* c = arrays.c;
  const std::int64_t M = gemm.M, N = gemm.N, K = gemm.K;
  float* strips = context.workspace_as<float>();
  pack_strips<T>(arrays.a, M, K, strips);

  const std::int64_t blocks_down = ceil_div<std::int64_t>(M, kBlockRows);
  parallel_for(blocks_down * ceil_div<std::int64_t>(N, kBlockColumns), [&](std::int64_t block) {
    const std::int64_t m0 = block % blocks_down * kBlockRows;
    const std::int64_t n0 = block / blocks_down * kBlockColumns;
    const auto rows = static_cast<int>(std::min<std::int64_t>(M - m0, kBlockRows));
    const auto columns = static_cast<int>(std::min<std::int64_t>(N - n0, kBlockColumns));
    const auto pack = [&](std::int64_t k, std::int64_t depth, float* to) {
      for (std::int64_t end = k + depth; k < end; ++k, to += kBlockColumns) {
        for (int n = 0; n < columns; ++n) to[n] = to_float(b[k * N + n0 + n]);
        std::fill(to + columns, to + rounded_up(columns, kTileColumns), 0.0f);
      }
    };
    multiply_block(strips + m0 * K, rows, columns, K, pack, [&](int m, const float* sums) {
      for (int n = 0; n < columns; ++n) {
        const float sum = gemm.finished(sums[n], bias ? bias[n0 + n] : 0.0f);
        c[(m0 + m) * N + n0 + n] = rounded_to<ProductOf<T>>(sum);
      }
    });
  });
}

void run(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  with_any_float_type(gemm.dtype, [&]<class T>(T) { run_as<T>(gemm, arrays, context); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return dtype_name(gemm.dtype, gemm.precision);
}

}  // namespace

extern const Implementation<GemmArrays> blocked = {
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::gemm
