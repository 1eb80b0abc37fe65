/// @file wgmma_tf32.cu
/// @brief gemm on Hopper: the copy engine feeds wgmma through a ring of stages in shared memory.
///
/// - Before: mma_tf32.cu
/// - The kernel: wgmma_tile.cuh (convolutions use it, too)
/// - The same maths: cpu_reference/gemm/triple_loop.cpp
///
/// **The idea.** No thread copies or loads fragments. `wgmma` is a matrix product of four warps, d
/// [64][N] += a [64][8] * b [8][N] with N up to 256: its factors lie in shared memory, and it runs
/// while the warps go on. The copy engine (TMA) brings a box of an array when one thread asks for
/// it: zeros for what lies outside, factors rounded to TF32. Barriers connect copies and products:
///
///     producer (one warp)          stages                    consumers (two warpgroups)
///     wait for empty[s]      +--------+--------+--- - -+     wait for full[s]
///     expect so many bytes   | a | b  | a | b  |       |     4 steps of wgmma on stage s
///     a box of a, one of b ->+--------+--------+--- - -+->   all but those done: empty[s - 1]
///     s + 1                      0        1      ...         s + 1
///
/// Blocks stay for several tiles: the producer loads the next one while the consumers store the
/// last. In both tiles k must run fastest; in b [k][n] it does not, so a kernel transposes b into
/// the workspace.
///
/// **Expect.** A tile of 128 x 256 loads 48 KB a step, for 1024 cycles of the tensor cores.
/// Predicted on an H200: 330 to 390 TFLOP/s at 4096 without the transpose, which weighs half as
/// much at 8192.
/// **Costs.** 99 to 198 KB of shared memory a block; a workspace as large as b. Where rows of a do
/// not begin at multiples of 16 bytes, a warp gathers elements: right, and slow. Declined: fp32
/// problems, all but compute capability 9.0, maps that hand out less than whole tiles.
/// **Try.** Give the ring two stages instead of four. Is it half as fast, and why not?
#include "core/gemm_problem.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/repack.cuh"
#include "cuda_optimized/gemm/wgmma_tile.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::gemm {
namespace {

using Narrow = WgmmaShape<128, 64, 4, 2>;   ///< Two blocks an SM, for small products.
using Medium = WgmmaShape<128, 128, 3, 2>;  ///< Likewise.
using Large = WgmmaShape<128, 256, 4, 1>;   ///< One block an SM; loads 3/4 of Medium's bytes.

/// a [M][K] and b transposed [N][K], as the copy engine reads them.
template <class Shape>
struct TiledSource {
  static constexpr bool kWholeWarp = false;
  CUtensorMap a, b;

  struct Cursor {
    int m, n, k;
  };
  __device__ Cursor at(const WgmmaItem& item) const {
    return {static_cast<int>(item.m) * Shape::M, item.n * Shape::N, item.first * kWgmmaStep};
  }
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    // Whole boxes count, also the zeros past the edges.
    ptx::mbarrier_arrive_expect_tx(full, Shape::kStageBytes);
    ptx::tma_load<2>(a_tile, &a, full, {cursor.k, cursor.m});
    ptx::tma_load<2>(b_tile, &b, full, {cursor.k, cursor.n});
  }
  __device__ void advance(Cursor& cursor) const { cursor.k += kWgmmaStep; }
};

/// The same by a warp, element by element, for arrays whose rows the copy engine cannot take.
template <class Shape>
struct GatheredSource {
  static constexpr bool kWholeWarp = true;
  const float *a, *b;
  GemmProblem gemm;

  struct Cursor {
    std::int64_t m;
    int n, k;
  };
  __device__ Cursor at(const WgmmaItem& item) const {
    return {item.m * Shape::M, item.n * Shape::N, item.first * kWgmmaStep};
  }
  __device__ void load(const Cursor& cursor, float* a_tile, float* b_tile,
                       std::uint64_t* full) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, k = cursor.k + lane;
    for (int i = 0; i < Shape::M; ++i) {
      const std::int64_t m = cursor.m + i;
      const bool inside = m < gemm.M && k < gemm.K;
      a_tile[swizzled(i, lane)] = inside ? __uint_as_float(ptx::to_tf32(a[m * gemm.K + k])) : 0.0f;
    }
    for (int j = 0; j < Shape::N; ++j) {
      const std::int64_t n = cursor.n + j;
      const bool inside = n < gemm.N && k < gemm.K;
      b_tile[swizzled(j, lane)] =
          inside ? __uint_as_float(ptx::to_tf32(b[std::int64_t{k} * gemm.N + n])) : 0.0f;
    }
    ptx::fence_proxy_async();  // ordinary stores, which wgmma will read
    __syncwarp();              // separates all lanes' stores from the arrival
    if (lane == 0) ptx::mbarrier_arrive(full);
  }
  __device__ void advance(Cursor& cursor) const { cursor.k += kWgmmaStep; }
};

/// c [M][N].
template <class Shape>
struct RowMajor {
  float* c;
  std::int64_t M, N;
  bool pairs;  ///< Two neighbours can be stored at once.

  struct Place {
    float* c;     ///< The tile's first column.
    int columns;  ///< From there to the last one.
  };
  __device__ Place place(const WgmmaItem& item) const {
    const std::int64_t n = std::int64_t{item.n} * Shape::N;
    return {c + n, static_cast<int>(N - n)};
  }
  __device__ float* row(const Place& place, std::int64_t row) const {
    return row < M ? place.c + row * N : nullptr;
  }
  struct Pair {
    int column, count;  ///< The first one, and how many of the two there are.
  };
  __device__ Pair columns(const Place& place, int first) const {
    return {first, place.columns - first};
  }
  __device__ bool whole(const Place& place, const WgmmaItem& item) const {
    return pairs && place.columns >= Shape::N && (item.m + 1) * Shape::M <= M;
  }
  __device__ void store_whole(const Pair& pair, float* row, float v0, float v1) const {
    *reinterpret_cast<float2*>(row + pair.column) = {v0, v1};
  }
  __device__ void store(const Pair& pair, float* row, float v0, float v1) const {
    if (row == nullptr || pair.count <= 0) return;
    if (pairs) {
      *reinterpret_cast<float2*>(row + pair.column) = {v0, v1};
    } else {
      row[pair.column] = v0;
      if (pair.count > 1) row[pair.column + 1] = v1;
    }
  }
};

/// Rows of the transposed b begin at multiples of 16 bytes.
std::int64_t pitch_of(const GemmProblem& gemm) { return ceil_div(gemm.K, 4) * std::int64_t{4}; }

/// The work of a product with this shape.
template <class Shape>
WgmmaWork work_of(const GemmProblem& gemm) {
  return {.tiles_m = ceil_div(gemm.M, Shape::M),
          .tiles_n = ceil_div(gemm.N, Shape::N),
          .splits = 1,
          .steps = ceil_div(gemm.K, kWgmmaStep),
          .map = gemm.map};
}

/// Calls body(Shape) for the largest shape of which there is a tile for each multiprocessor.
template <class Body>
auto with_shape(const GemmProblem& gemm, const Body& body) {
  const int sms = multiprocessors();
  if (work_of<Large>(gemm).items() >= sms) return body(Large{});
  if (work_of<Medium>(gemm).items() >= sms) return body(Medium{});
  return body(Narrow{});
}

Declined supports(const GemmProblem& gemm) {
  if (gemm.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (const Declined why = why_no_wgmma()) return why;
  if (gemm.map == TileMap::row_major) return {};  // an order of its own, without a grid
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return tile_map::why_no_whole_tiles({.map = gemm.map,
                                         .tiles_m = ceil_div(gemm.M, Shape::M),
                                         .tiles_n = ceil_div(gemm.N, Shape::N)});
  });
}

std::size_t workspace_bytes(const GemmProblem& gemm) {
  return static_cast<std::size_t>(gemm.N * pitch_of(gemm)) * sizeof(float);
}

/// Whether all rows of a begin at multiples of 16 bytes, and those of c at multiples of 8, if the
/// first ones do.
bool rows_of_a_in_fours(const GemmProblem& gemm) { return gemm.K % 4 == 0; }
bool columns_in_pairs(const GemmProblem& gemm) { return gemm.N % 2 == 0; }

template <class Shape>
void run_with(const GemmProblem& gemm, const Arguments& arrays) {
  const float *a = arrays.in<float>("a"), *b = arrays.in<float>("b");
  float* c = arrays.out<float>("c");
  const WgmmaWork work = work_of<Shape>(gemm);
  const RowMajor<Shape> result = {
      c, gemm.M, gemm.N, reinterpret_cast<std::uintptr_t>(c) % 8 == 0 && columns_in_pairs(gemm)};
  if (reinterpret_cast<std::uintptr_t>(a) % 16 != 0 || !rows_of_a_in_fours(gemm)) {
    launch_wgmma<Shape>(GatheredSource<Shape>{a, b, gemm}, work, result);
    return;
  }
  float* transposed = arrays.workspace<float>();
  const std::int64_t pitch = pitch_of(gemm);
  launch_transpose({.axes = {},
                    .rows = gemm.K,
                    .columns = gemm.N,
                    .from_row = gemm.N,
                    .from_column = 1,
                    .to_row = pitch,
                    .padded = gemm.K},
                   b, transposed);
  const TiledSource<Shape> source = {
      tensor_map(TiledMap{2, {gemm.K, gemm.M}, {1, gemm.K}, {kWgmmaStep, Shape::M}}, a),
      tensor_map(TiledMap{2, {gemm.K, gemm.N}, {1, pitch}, {kWgmmaStep, Shape::N}}, transposed)};
  launch_wgmma<Shape>(source, work, result);
}

void run(const GemmProblem& gemm, const Arguments& arrays) {
  with_shape(gemm, [&]<class Shape>(Shape) { run_with<Shape>(gemm, arrays); });
}

std::string choice_in_words(const GemmProblem& gemm) {
  return with_shape(gemm, [&]<class Shape>(Shape) {
    return text(Shape::M, " x ", Shape::N,
                rows_of_a_in_fours(gemm) ? ", by the copy engine" : ", by a warp",
                columns_in_pairs(gemm) ? ", columns in pairs" : "");
  });
}

}  // namespace

Implementation<GemmProblem> wgmma_tf32() {
  return {.supports = supports,
          .workspace_bytes = workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::gemm
