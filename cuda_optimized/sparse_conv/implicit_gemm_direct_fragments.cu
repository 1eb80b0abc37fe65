/// @file implicit_gemm_direct_fragments.cu
/// @brief sparse_conv: direct-to-register operand A; gathered rows are loaded into mma fragments.
///
/// - Before: implicit_gemm_mma.cu
/// - The same maths: cpu_reference/sparse_conv/gather_gemm_scatter.cpp
///
/// **The idea.** mma.sync takes a row of operand A from four lanes. The order of k is free if
/// operand B uses the same order. So each lane loads eight neighbouring channels, 16 bytes, at
/// once. Rows of 32 channels are two MMAs along k, and so are two taps of 16 channels:
///
///     lane              0                1                 2                  3
///     32 channels   tap 3: 0 ... 7   tap 3: 8 ... 15   tap 3: 16 ... 23   tap 3: 24 ... 31
///     16 channels   tap 3: 0 ... 7   tap 3: 8 ... 15   tap 5:  0 ...  7   tap 5:  8 ... 15
///
/// Rows bypass shared memory, and L1 caches them: in site order, neighbours read the same rows.
/// That order executes more MMAs than the mask order, but with few channels MMAs are cheap.
///
/// **Expect.** In sweep-16-subm3, 32 rows have 19 taps, not 11. But the indices of a tap are one
/// line, 10 MB instead of 28 MB, and a block of 256 rows reads each row from L2 2.5 times, not 6.9:
/// 10 MB instead of 28 MB. With weights and y 31 MB in one launch: 12 us, sweep-32-subm3 18 us,
/// large-32-subm3 (20.5 taps per 32 rows, not 15.7) 110 us.
/// @expect on --shape 12,12,12 --sites 512 --cin 32 --cout 32 --dtype fp16
/// @expect loads_per_output.features 3838 * 4 / 16384 = 0.937, four lanes for each pair
/// @expect loads_per_output.nbr 16 * 27 * 32 / 16384 = 0.84375, 16 tiles of 32 rows have all taps
/// @expect bytes_per_lane.features.load 16, into registers
/// @expect excess.shared.load 0, of ldmatrix
/// @expect barriers_per_block 1, when the weights are there
/// **Costs.** 13 to 128 KB of shared memory per block. Rows of other than 16 or a multiple of 32
/// channels are read element by element. Not supported: float32; GPUs before sm_80.
/// **Try.** A quarter of the loop's instructions move registers of operand A. Make rows operand B
/// and weights operand A. Which moves disappear? What complicates the stores?
#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/needs.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/sparse_conv/shared/fragment_accumulators.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {
namespace {

using namespace fragments;

/// Taps that are multiplied together, and their rows.
template <class Shape>
struct Group {
  int tap;                         ///< In the mask's word: that whose weights this lane points to.
  std::int32_t met[Shape::kTaps];  ///< Rows, or -1, as look_up() distributes them over the lanes.
};

/// The bits that are set in any lane's word. The whole warp calls it.
__device__ inline unsigned bits_of_warp(unsigned word) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();  // no such reduction before sm_80, which supports() excludes
  return word;
#else
  return __reduce_or_sync(0xFFFFFFFF, word);
#endif
}

/// Block Shape::kThreads; grid: tiles_n times any number of blocks, which share the tiles of
/// kWarpRows rows: `each` of them a block, and one more for the first `left_over`.
template <class Shape, bool kWhole>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    sparse_conv_implicit_gemm_direct_fragments(GatheredRows<typename Shape::Number> conv,
                                               unsigned tiles_n, int each, int left_over) {
  char* const weights = dynamic_shared<char>();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int share = static_cast<int>(blockIdx.x / tiles_n);
  const int n0 = static_cast<int>(blockIdx.x % tiles_n) * Shape::N;
  const int begin = share * each + min(share, left_over);
  const int end = begin + each + (share < left_over ? 1 : 0);
  const int words = mask_words(conv.taps), chunks = ceil_div(conv.summed, Shape::kDepth);
  // A lane of ldmatrix points to row lane % 8 of a matrix: two neighbours of each of four lanes.
  const int lane_pointed_to = lane % 8 / 2;
  const int right_at = place_of<Shape>(
      lane_pointed_to * kOfLane % Shape::kDepth + lane / 8 % 2 * 2 + lane % 2, lane / 16);
  // Which of two adjacent taps this lane uses: as an ldmatrix address, for the channels that it
  // loads, and for the indices that it looks up.
  constexpr bool kTwo = Shape::kTaps == 2;
  const bool points_to_second = kTwo && lane_pointed_to >= 2, takes_second = kTwo && lane % 4 >= 2;
  const int looks_up = lane % Shape::kLanesOfTap;
  const bool looks_up_second = lane >= Shape::kLanesOfTap;
  const unsigned table_pitch = static_cast<unsigned>(conv.rows) * 4;

  const bool stay = words * chunks == 1;  // all weights fit
  if (stay) ask_for_weights<Shape, kWhole>(conv, 0, 0, n0, weights);
  // All warps execute the same number of iterations, for the barriers.
  for (int first_tile = begin; first_tile < end; first_tile += Shape::kWarps) {
    const int tile = first_tile + warp;
    const int row0 = tile < end ? tile * kWarpRows : conv.rows;
    FragmentSums<Shape> sums(conv, n0);
#pragma unroll 1
    for (int pass = 0; pass < words * chunks; ++pass) {
      const int word = chunks == 1 ? pass : pass % words;
      const int s0 = chunks == 1 ? 0 : pass / words * Shape::kDepth;
      unsigned mine = 0;
      if (row0 + lane < conv.rows) {
        mine = static_cast<unsigned>(conv.mask[std::int64_t{row0 + lane} * words + word]);
      }
      if (!stay) {
        __syncthreads();  // all warps have read the previous weights
        ask_for_weights<Shape, kWhole>(conv, word * kPart, s0, n0, weights);
      }
      unsigned left = bits_of_warp(mine);
      const auto* const table = reinterpret_cast<const char*>(
          conv.table + std::int64_t{word} * kPart * conv.rows + row0 + looks_up);
      // Of kTaps taps, lanes look up rows of 32 / kTaps lanes each.
      const auto look_up = [&] {
        Group<Shape> group;
        const unsigned rest = kTwo ? left & (left - 1) : 0;
        group.tap = __ffs(static_cast<int>(points_to_second && rest != 0 ? rest : left)) - 1;
        const int tap = __ffs(static_cast<int>(looks_up_second ? rest : left)) - 1;
#pragma unroll
        for (int e = 0; e < Shape::kTaps; ++e) {
          const int below = e * Shape::kLanesOfTap;
          group.met[e] = -1;
          // Unsigned 32-bit product and addition: one IMAD instruction.
          if (tap >= 0 && row0 + looks_up + below < conv.rows) {
            group.met[e] = reinterpret_cast<const std::int32_t*>(
                table + static_cast<unsigned>(tap) * std::uint64_t{table_pitch})[below];
          }
        }
        left = kTwo ? rest & (rest - 1) : left & (left - 1);
        return group;
      };
      bool more = left != 0;
      Group<Shape> next[Shape::kAhead];
#pragma unroll
      for (int j = 0; j < Shape::kAhead; ++j) next[j] = look_up();
      if (!stay || first_tile == begin) {
        ptx::cp_async_wait_group<0>();
        __syncthreads();  // makes the weights that all threads have copied visible to all
      }
#pragma unroll 1
      while (more) {
        uint4 rows[Shape::kAhead][4];
        int tap[Shape::kAhead];
#pragma unroll
        for (int j = 0; j < Shape::kAhead; ++j) {
          tap[j] = next[j].tap;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int from =
                8 * i % Shape::kLanesOfTap + lane / 4 + (takes_second ? Shape::kLanesOfTap : 0);
            const std::int32_t row =
                __shfl_sync(0xFFFFFFFF, next[j].met[8 * i / Shape::kLanesOfTap], from);
            rows[j][i] = channels_of<kWhole>(conv, row, s0 + lane % 4 * kOfLane % Shape::kDepth);
          }
        }
        more = left != 0;
#pragma unroll
        for (int j = 0; j < Shape::kAhead; ++j) next[j] = look_up();
#pragma unroll
        for (int j = 0; j < Shape::kAhead; ++j) {
          if (j > 0 && tap[j] < 0) break;
          sums.add(rows[j], weights + tap[j] * Shape::kTapBytes, right_at);
        }
      }
    }
    store_sums<Shape, kWhole>(conv, sums, row0, n0);
  }
}

/// Calls body(shape) with the shape that suits a problem.
template <class T, class Body>
void with_shape(const SparseConvProblem& conv, const Body& body) {
  const auto with_summed = [&]<int kSummed>() {
    if (conv.Cout <= 16) {
      body(FragmentShape<T, kSummed, 16>{});
    } else if (conv.Cout <= 32) {
      body(FragmentShape<T, kSummed, 32>{});
    } else {
      body(FragmentShape<T, kSummed, 64>{});
    }
  };
  if (conv.Cin <= 16) {
    with_summed.template operator()<16>();
  } else {
    with_summed.template operator()<32>();
  }
}

/// Whether rows can be read and written as pieces.
template <class Shape>
bool is_whole(const GatheredRows<typename Shape::Number>& conv) {
  return consists_of_pieces(conv) && conv.summed % Shape::kDepth == 0;
}

/// Dynamic shared memory of a block.
template <class Shape>
std::size_t shared_bytes(int taps) {
  return static_cast<std::size_t>(std::min(taps, kPart)) * Shape::kTapBytes;
}

Declined supports(const SparseConvProblem& conv) {
  if (conv.dtype == DType::f32) return "types of 16 bits only";
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (conv.M >= kMost || conv.Cin >= kMost) return "rows and channels below 2^30";
  if (const Declined why = why_not("sm_80")) return why;
  std::size_t bytes = 0;
  with_shape<Half>(conv, [&]<class Shape>(Shape) { bytes = shared_bytes<Shape>(conv.book.KV); });
  return why_no_shared(static_cast<std::int64_t>(bytes));
}

/// features [N][Cin], weights [KV][Cin][Cout], nbr [KV][M] with masks, y [M][Cout]; no order.
void run(const SparseConvProblem& problem, const SparseConvArrays& arrays, const Context&) {
  with_half_type(problem.dtype, [&]<class T>(T) {
    const GatheredRows<T> conv = gathered_rows<T>(problem, arrays);
    with_shape<T>(problem, [&]<class Shape>(Shape) {
      const int tiles = ceil_div(conv.rows, kWarpRows);
      const int tiles_n = ceil_div(conv.channels, Shape::N);
      const std::int64_t most = enough_blocks(multiprocessors() * Shape::kBlocks) / tiles_n;
      const int shares =
          static_cast<int>(std::clamp<std::int64_t>(tiles, 1, std::max<std::int64_t>(most, 1)));
      launch(is_whole<Shape>(conv) ? sparse_conv_implicit_gemm_direct_fragments<Shape, true>
                                   : sparse_conv_implicit_gemm_direct_fragments<Shape, false>,
             {blocks_for(std::int64_t{shares} * tiles_n, 1), Shape::kThreads,
              shared_bytes<Shape>(conv.taps)},
             conv, static_cast<unsigned>(tiles_n), tiles / shares, tiles % shares);
    });
  });
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return with_half_type(conv.dtype, [&]<class T>(T) {
    std::string words;
    with_shape<T>(conv, [&]<class Shape>(Shape) {
      const bool whole =
          would_consist_of_pieces<T>(conv.Cin, conv.Cout) && conv.Cin % Shape::kDepth == 0;
      words = text(dtype_name(conv), ", ", Shape::kDepth, " x ", Shape::N, " channels",
                   whole ? ", in pieces" : "");
    });
    return words;
  });
}

}  // namespace

extern const Implementation<SparseConvArrays> implicit_gemm_direct_fragments = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
