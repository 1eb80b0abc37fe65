/// @file blocked.cpp
/// @brief Cache blocking: b is packed once per block, and up to 6 x 32 accumulators stay in vector
/// registers.
///
/// - Before: eigen.cpp
///
/// **The idea.** The triple loop loads two elements per multiply-add. Three changes reduce that
/// (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008):
///
///     c block   192 x 96    a core computes one at a time; its accumulators stay in the L2 cache
///     b block   256 x 96    packed once for all rows of the c block: 96 KB, in the L2 cache
///     tile        6 x 32    12 vector registers of 16 floats; per step along k two loads of b and
///                           six of a feed 12 vector multiply-adds
///
///     a  six rows, each  k -> [ 1 float ]       b block  k -> [ 32 floats ] [ 32 ] [ 32 ]
///
/// Registers of 16 floats need AVX-512. AVX2 has registers of 8 floats and a tile of 6 x 16, SSE2 4
/// floats and 6 x 8, selected at run time. a needs no packed copy, because the innermost loop reads
/// one float of each row at a time. 16-bit and 8-bit operands are converted to float first.
///
/// **Expect.** More than half of a core's peak, on all cores: a vector multiply-add takes 2 / 3 of
/// a load; the triple loop takes two loads each.
/// **Costs.** Columns are padded to 16 and rows to 6: a GEMM with one column does 16 times the
/// work. The order of summation differs, and a fused multiply-add rounds once instead of twice.
/// **Try.** Use a tile of 4 x 48, or 8 x 32. Which needs more than the 16 registers of AVX2?
#include "core/float8.hpp"
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/parallel.hpp"
#include "core/type_names.hpp"
#include "cpu_reference/gemm/register_tile.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

std::size_t workspace_bytes(const GemmProblem& gemm) {
  return bytes_as_floats(gemm.dtype, checked_product({gemm.M, gemm.K}, "elements of a"));
}

/// a [M][K], b [K][N], bias [N] or null, c [M][N].
template <class T>
void run_as(const GemmProblem& gemm, const GemmArrays& arrays, const Context& context) {
  const T* b = arrays.b;
  const float* bias = arrays.bias;
  ProductOf<T>* c = arrays.c;
  const std::int64_t M = gemm.M, N = gemm.N, K = gemm.K;
  const float* a = as_floats<T>(arrays.a, M * K, context.workspace_as<float>());

  const std::int64_t blocks_across = ceil_div<std::int64_t>(N, kBlockColumns);
  const int most_rows = block_rows(M, blocks_across);
  const std::int64_t blocks_down = ceil_div<std::int64_t>(M, most_rows);
  const auto compute = [&](std::int64_t block) {
    const std::int64_t m0 = block % blocks_down * most_rows;
    const std::int64_t n0 = block / blocks_down * kBlockColumns;
    const auto rows = static_cast<int>(std::min<std::int64_t>(M - m0, most_rows));
    const auto columns = static_cast<int>(std::min<std::int64_t>(N - n0, kBlockColumns));
    const auto pack = [&](std::int64_t k, std::int64_t depth, float* to) {
      for (std::int64_t end = k + depth; k < end; ++k, to += kBlockColumns) {
        for (int n = 0; n < columns; ++n) to[n] = to_float(b[k * N + n0 + n]);
        std::fill(to + columns, to + rounded_up(columns, kTileColumns), 0.0f);
      }
    };
    multiply_block(a + m0 * K, rows, columns, K, pack, [&](int m, const float* sums) {
      for (int n = 0; n < columns; ++n) {
        const float sum = gemm.finished(sums[n], bias ? bias[n0 + n] : 0.0f);
        c[(m0 + m) * N + n0 + n] = rounded_to<ProductOf<T>>(sum);
      }
    });
  };
  parallel_for(blocks_down * blocks_across, compute, kNanoseconds * gemm.M * gemm.N * gemm.K);
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
