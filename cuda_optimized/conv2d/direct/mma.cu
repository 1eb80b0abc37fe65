/// @file mma.cu
/// @brief Half-precision `mma.sync` for few channels: two adjacent taps of a row form one register
/// of a fragment.
///
/// - Before: mma_tf32.cu
/// - The same maths: cpu_reference/conv2d/direct.cpp
///
/// **The idea.** As before, fragments are read from a patch of x in shared memory. But a register
/// of m16n8k16 has two elements that are adjacent along k. If k runs along a row of the filter,
/// they are adjacent in the patch, and one load reads two taps, if its address is even. So all
/// windows of a fragment begin in even columns, or all in odd ones. The words of the latter begin a
/// column earlier, and so do their weights:
///
///     columns of x           0 1 | 2 3 | 4 5 | 6 7     words of the patch
///     window from column 0   a b | c d | e . |         weights of 5 taps
///     window from column 1   . a | b c | d e |         the same for odd columns
///
/// A dot is a weight of zero. Since zero times NaN is NaN, a mask sets the element to zero, too.
/// Pixels are the rows of the GEMM, and filters its columns, which come in eights: 3 or 6 filters
/// waste less.
///
/// **Expect.** B3 (32x3x224x224, 64 filters 7x7, stride 2): of 19 steps of k 11 are left. 2.2
/// million mma at 600 TFLOP/s take 15 us; each 16 of them need 28 cycles of shared memory, 16 us;
/// y's 51 MB take 15 us. Together, 35 to 45 us. B1 and B2 (6 and 3 filters, stride 1): 15 us and 45
/// us.
/// @expect on --n 1 --c 3 --h 32 --w 64 --k 64 --r 3 --s 3 --pad 1 --stride 2 --dtype bf16
/// @expect loads_per_output.shared 3 * 32 * (8 + 1 + 4) / (32 * 64) = 0.61, in 3 steps
/// @expect bytes_per_lane.x.async 16, eight elements
/// @expect bytes_per_lane.y.store 8, four neighbours
/// @expect sectors_per_request.y.store 2 * 4 = 8, two times 16 pixels of four filters
/// @expect launches 1, nothing is prepared
/// **Costs.** With an odd stride there are two sets of weights. Rows of the filter are padded to
/// words; with dilation each tap has a word. With more than 64 filters, x is read several times.
/// Not supported: float32, NHWC, compute capability below 8.0, what is too large for shared memory.
/// **Try.** Remove the mask. Which tests fail, and with which input?
#include <type_traits>

#include "core/conv2d_problem.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/launch.hpp"
#include "core/cuda/needs.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "core/type_names.hpp"
#include "cuda_optimized/conv2d/shared/direct_mma/half_accumulators.cuh"
#include "cuda_optimized/conv2d/shared/direct_mma/half_halo_tile.cuh"
#include "cuda_optimized/conv2d/shared/direct_mma/half_tiling.cuh"
#include "cuda_optimized/gemm/shared/half_tiles.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

/// A vector of kWords words.
template <int kWords>
using Words = std::conditional_t<kWords == 4, uint4, uint2>;

/// Adds all products of a warp's filters and fragments.
/// @tparam kOdd tiling.odd: fragments alternately have windows of even columns and of odd ones
/// @param base where this lane's windows begin, in bytes: of rows `group` and `group + 8`
template <class S, class T, int kOdd>
__device__ void add_products(const HalfPatchTiling& tiling, const std::uint32_t* shared,
                             const int (&base)[S::kFragments][2], HalfPatchSums<S>& sums) {
  constexpr int kSets = 1 + kOdd, kWords = kWordsAtOnce<S>, kTilesAtOnce = kWords / 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto* taps = reinterpret_cast<const int4*>(shared + tiling.taps_at()) + lane % 4;
  const auto* weights = reinterpret_cast<const Words<kWords>*>(shared) + lane;
  // Places are counted in bytes: an address is then one addition.
  const auto bits_at = [&](int place, int mask) {
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(shared) + place) &
           static_cast<std::uint32_t>(mask);
  };
  int step = 0;
#pragma unroll 1
  do {  // there is at least one
    std::uint32_t a[S::kFragments][4];
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      const int4 tap = taps[(set * tiling.steps + step) * 4];  // two pairs: place, mask
#pragma unroll
      for (int f = set; f < S::kFragments; f += kSets) {
        a[f][0] = bits_at(base[f][0] + tap.x, tap.y);
        a[f][1] = bits_at(base[f][1] + tap.x, tap.y);
        a[f][2] = bits_at(base[f][0] + tap.z, tap.w);
        a[f][3] = bits_at(base[f][1] + tap.z, tap.w);
      }
    }
#pragma unroll
    for (int m = 0; m < S::kTiles; m += kTilesAtOnce) {
#pragma unroll
      for (int set = 0; set < kSets; ++set) {
        const Words<kWords> w =
            weights[((set * tiling.steps + step) * S::kTiles + m) / kTilesAtOnce * 32];
#pragma unroll
        for (int f = set; f < S::kFragments; f += kSets) {
          const std::uint32_t b[2] = {w.x, w.y};
          gemm::mma_m16n8k16<T>(sums[m][f], a[f], b);
          if constexpr (kWords == 4) {
            const std::uint32_t next[2] = {w.z, w.w};
            gemm::mma_m16n8k16<T>(sums[m + 1][f], a[f], next);
          }
        }
      }
    }
  } while (++step < tiling.steps);
}

/// The products of a warp's filters and the tile's pixels from `first` on.
template <class S, class T>
__device__ void multiply(const HalfPatchTiling& tiling, const std::uint32_t* shared, int patch_at,
                         int first, HalfPatchSums<S>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;  // of the fragments, as in mma_m16n8k16_f16()
  int base[S::kFragments][2];
#pragma unroll
  for (int f = 0; f < S::kFragments; ++f) {
    // Of 32 pixels, a lane's rows in both fragments are four neighbours: 0 and 2, 1 and 3.
    const int i = first + f / 2 * 32 + 4 * group;
    const HalfPatchPixel pixel = pixel_at(tiling, i < tiling.pixels() ? i : 0);
    base[f][0] = 4 * (patch_at + pixel.row * tiling.stride.h * tiling.pitch) +
                 2 * (tiling.first_column(f % 2) / 2 * 2 + pixel.column * tiling.stride.w);
    base[f][1] = base[f][0] + 4 * tiling.stride.w;
  }
#pragma unroll
  for (int m = 0; m < S::kTiles; ++m) {
#pragma unroll
    for (int f = 0; f < S::kFragments; ++f) {
      for (float& sum : sums[m][f]) sum = 0.0f;
    }
  }
  if (tiling.odd) {
    add_products<S, T, 1>(tiling, shared, base, sums);
  } else {
    add_products<S, T, 0>(tiling, shared, base, sums);
  }
}

/// Grid (blocks that share the tiles, tiles of filters of all groups). Block (tiling.warps * 32).
/// x [N][C][H][W], weights [K][C/groups][R][S], bias [K] or null, y [N][K][P][Q].
template <class S, class T>
__global__ void __launch_bounds__(S::kWarps * 32, S::kBlocks)
    conv2d_direct_mma(Conv2dProblem conv, HalfPatchTiling tiling, int tiles, const T* x,
                      const T* weights, const float* bias, T* y) {
  constexpr int kFilters = 8 * S::kTiles, kPixels = 16 * S::kFragments;  // the latter of a warp
  auto* const shared = dynamic_shared<std::uint32_t>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int filter_tiles = ceil_div(tiling.filters, kFilters);

  for (std::int64_t part = blockIdx.y; part < std::int64_t{conv.groups} * filter_tiles;
       part += gridDim.y) {
    const int group = static_cast<int>(part / filter_tiles);
    const int f0 = static_cast<int>(part % filter_tiles) * kFilters;
    const HalfPatchFilters filters{min(tiling.filters - f0, kFilters),
                                   std::int64_t{group} * tiling.filters + f0};
    const T* const group_x = x + std::int64_t{group} * tiling.channels * conv.H * conv.W;
    const auto ask_for = [&](int tile, int buffer) {
      if (tile < tiles) {
        ask_for_patch(conv, tiling, place_of(tiling, tile), group_x,
                      shared + tiling.patch_at(buffer));
      }
      ptx::cp_async_commit_group();
    };

    ask_for(block, 0);
    stage_filters<S>(conv, tiling, filters, weights, bias, shared);
    int buffer = 0;
    for (int tile = block; tile < tiles; tile += blocks) {
      ptx::cp_async_wait_group<0>();
      // Makes the patch visible to all, at first the weights too; separates the loads of the tile
      // before from the copies that now overwrite its patch.
      __syncthreads();
      ask_for(tile + blocks, 1 - buffer);

      const HalfPatchPlace at = place_of(tiling, tile);
      for (int first = warp * kPixels; first < tiling.pixels(); first += tiling.warps * kPixels) {
        HalfPatchSums<S> sums;
        multiply<S, T>(tiling, shared, tiling.patch_at(buffer), first, sums);
        complete<S>(conv, reinterpret_cast<const float*>(shared) + tiling.biases_at(), sums);
        store<S>(conv, tiling, at, first, filters.count, sums,
                 shared + tiling.drafts_at() + warp * tiling.draft_words,
                 y + (std::int64_t{at.n} * conv.K + filters.first) * conv.P * conv.Q);
      }
      buffer = 1 - buffer;
    }
    __syncthreads();  // separates the last loads from the next part's copies
  }
}

/// Elements that one copy can load, if all rows of x begin at multiples of them.
/// @param address where x begins
int widest_copy(const Conv2dProblem& conv, std::uintptr_t address) {
  for (const int width : {8, 4, 2}) {
    if (conv.W % width == 0 && address % static_cast<std::uintptr_t>(2 * width) == 0) return width;
  }
  return 1;
}

/// Whether sums are stored as a lane has them, four adjacent, if y begins at `address`.
bool stores_directly(const Conv2dProblem& conv, std::uintptr_t address) {
  return conv.Q % 4 == 0 && address % 8 == 0;
}

/// What choose_half_tiling() finds, with the widest copies, or with single elements where there is
/// no room.
HalfPatchTiling tiling_of(const Conv2dProblem& conv, std::uintptr_t x, std::uintptr_t y) {
  const auto tiling = choose_half_tiling(conv, widest_copy(conv, x), stores_directly(conv, y));
  return tiling ? *tiling : choose_half_tiling(conv, 1, false).value();
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f16 && conv.dtype != DType::bf16) {
    return text("multiplies numbers of 16 bits, and the problem asks for ",
                dtype_name(conv.dtype, conv.precision));
  }
  if (conv.layout != Layout::nchw) return "layout nchw only";
  if (const Declined why = why_not("sm_80")) return why;
  if (std::int64_t{conv.N} * conv.P * ceil_div(conv.Q, 16) > std::int64_t{1} << 30) {
    return "more than 2^30 groups of 16 pixels";
  }
  if (choose_half_tiling(conv, 1, false)) return {};
  const auto most = static_cast<std::int64_t>(max_shared_bytes());
  std::int64_t bytes = half_weight_bytes(conv, 1, 1);
  if (bytes <= most) {
    HalfPatchTiling tiling = smallest_half_tiling(conv, 1, 1, true);
    bytes = lay_out(conv, most, &tiling);
  }
  // Of the weights of 8 filters and the inputs of 16 pixels, or of 32 if the stride is odd, twice.
  return shared_need_in_words(bytes, most, compute_capability());
}

template <class T>
void run_with(const Conv2dProblem& conv, const Conv2dArrays& arrays) {
  const T *x = arrays.x, *weights = arrays.weights;
  T* y = arrays.y;
  const float* bias = arrays.bias;
  const HalfPatchTiling tiling =
      tiling_of(conv, reinterpret_cast<std::uintptr_t>(x), reinterpret_cast<std::uintptr_t>(y));
  const int tiles = conv.N * tiling.tiles_down * tiling.tiles_across;
  const std::int64_t parts = std::int64_t{conv.groups} * ceil_div(tiling.filters, 8 * tiling.tiles);
  const unsigned grid_y = blocks_for(parts, 1, kMaxGridYZ);
  const int slots = tiling.blocks * multiprocessors();
  const unsigned grid_x = blocks_for(tiles, 1, ceil_div<std::int64_t>(slots, grid_y));
  launch(tiling.tiles == EightFilterEights::kTiles  ? conv2d_direct_mma<EightFilterEights, T>
         : tiling.tiles == FourFilterEights::kTiles ? conv2d_direct_mma<FourFilterEights, T>
                                                    : conv2d_direct_mma<OneFilterEight, T>,
         {dim3(grid_x, grid_y), static_cast<unsigned>(tiling.warps * 32),
          static_cast<std::size_t>(bytes_of_words(tiling.words()))},
         conv, tiling, tiles, x, weights, bias, y);
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  with_half_type(conv.dtype, [&]<class T>(T) { run_with<T>(conv, arrays); });
}

OutputTile tile_of(const Conv2dProblem& conv) {
  const HalfPatchTiling tiling = tiling_of(conv, 0, 0);
  return {tiling.rows, tiling.across * tiling.piece()};
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const HalfPatchTiling tiling = tiling_of(conv, 0, 0);
  return text(
      dtype_name(conv.dtype, conv.precision), ", ", 8 * tiling.tiles, " filters a block, x ",
      tiling.width, " at a time", tiling.odd ? ", even and odd windows" : "",
      tiling.draft_words == 0 ? ", y in fours" : "", tiling.blocks == 1 ? ", one block an SM" : "");
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_mma = {
    .supports = supports,
    .run = run,
    .tile = tile_of,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
