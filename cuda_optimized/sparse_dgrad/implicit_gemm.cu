/// @file implicit_gemm.cu
/// @brief sparse_dgrad: implicit GEMM on mask-sorted rows; dy is gathered into shared-memory tiles.
///
/// - Before: output_stationary.cu
/// - After: implicit_gemm_mma.cu, mirrored_table.cu
/// - The same maths: cpu_reference/sparse_dgrad/gather_gemm_scatter.cpp
///
/// **The idea.** A block computes a tile of dx in registers, 128 rows x 64 channels or 64 x 128.
/// For each tap it multiplies the gathered rows of dy by the tap's transposed matrix. Rows are
/// gathered and matrices transposed while they are copied to shared memory.
///
///     tile of dx         tap k:   nbr_back[k]     dy            W_k [ci][co]
///       row  6   + - - +             12   - - >  row 12   x     copied as [co][ci]
///       row 41   |     |  +=         -1          zeros
///       row  9   + - - +              3   - - >  row  3
///
/// A tile executes every tap that any of its rows has, so rows with the same taps belong together.
/// `split_order_back` sorts rows by mask, once per half of the taps. Each half is a launch; the
/// second adds to the results of the first.
///
/// **Expect.** In sweep-64-subm3 a row has 6.9 of 27 taps. 128 rows have 22 of them in site order,
/// 13.5 in the order of whole masks, and 9 in the two orders. A warp of 32 rows skips taps that
/// none of its rows has: 7.9 remain, 8.1 GFLOP for 7.1 useful ones. Predicted on an H200: 190 us.
/// @expect loads_per_output.dy 3838 * 8 / 16384 = 1.8740, a load for each pair, in vectors
/// @expect loads_per_output.weights 328 / 16 = 20.5, of 32 * 27
/// @expect launches 2, two halves of the taps
/// @expect loads_per_output.nbr_back 3838 / 16384 = 0.234, of pairs alone
/// **Costs.** The second launch reads and writes dx again: 64 MB, mostly in L2. Float32 only.
/// **Try.** Use order_back and one launch. How many taps does a tile execute?
#include <algorithm>

#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/text.hpp"
#include "cuda_optimized/gemm/shared/thread_tile.cuh"
#include "cuda_optimized/sparse_dgrad/shared/implicit_gemm.cuh"
#include "cuda_optimized/sparse_dgrad/shared/tile_taps.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_dgrad {
namespace {

constexpr int kStep = 16;   ///< Channels of dy that are multiplied at a time.
constexpr int kStages = 3;  ///< Steps whose tiles are in shared memory or in flight.

// Tiles of rows x channels of dx. A warp has 32 of the rows, in the first one 16.
using Wide = gemm::ThreadTile<64, 128, kStep, 8, 8, 2>;
using Medium = gemm::ThreadTile<128, 64, kStep, 8, 8, 4>;
using Narrow = gemm::ThreadTile<128, 32, kStep, 8, 4, 4>;
using Small = gemm::ThreadTile<32, 32, kStep, 8, 4, 4>;
[[maybe_unused]] constexpr int kThreadsPerSm = 384;  ///< With up to 168 registers each.
constexpr std::int64_t kEnoughTiles = 64;            ///< Number of tiles of 128 rows below which
                                                     ///< smaller tiles are used.

/// A half of the taps, and whether it adds to dx.
struct Half {
  int first, end;             ///< taps
  const std::int32_t* order;  ///< [rows]
  bool accumulate;            ///< whether dx already has the result of the other half
};

/// What a block has in shared memory.
template <class Tile>
struct Shared {
  /// dy's rows in the layout of memory, [row][co]; padded by 4 floats: see
  /// ThreadTile::multiply_along_k().
  static constexpr int kPitchA = kStep + 4;
  /// The weights transposed, [co][ci]; a warp copies 8 co of 4 ci at once: with rows padded by 4
  /// floats, its 32 stores access 32 different banks.
  static constexpr int kPitchB = Tile::kBlockN + 4;

  float a[kStages][Tile::kBlockM * kPitchA];   ///< dy
  float b[kStages][kStep * kPitchB];           ///< weights
  TileTaps<Tile::kBlockM, Tile::kWarpM> taps;  ///< which rows of dy
};

/// Copies the tiles of one step after the other: through all channels of a tap, then the next tap.
template <class Tile, bool kAligned>
class TapCopies {
 public:
  __device__ TapCopies(const ImplicitGemm& gemm, Shared<Tile>& shared, int word, unsigned taps,
                       int ci0)
      : gemm_(gemm), shared_(shared), left_(taps), word_(word), ci0_(ci0) {}

  /// Starts the copies of the next step's tiles, if there is one, and commits the group.
  __device__ void ask_for_next() {
    if (left_ != 0) {
      copy_rows(shared_.a[stage_]);
      copy_weights(shared_.b[stage_]);
      co0_ += kStep;
      if (co0_ >= gemm_.Cout) {
        co0_ = 0;
        left_ &= left_ - 1;
        ++ordinal_;
      }
      stage_ = stage_ + 1 == kStages ? 0 : stage_ + 1;
    }
    ptx::cp_async_commit_group();  // committed even without copies, since the waits count groups
  }

 private:
  static constexpr int kFloats = kAligned ? 4 : 1;           // of a copy of dy
  static constexpr int kPieces = kStep / kFloats;            // copies of a row
  static constexpr int kRows = Tile::kThreads / kPieces;     // that a block copies at once
  static constexpr int kColumnsB = 8;                        // co that a warp copies at once,
  static constexpr int kRowsB = Tile::kThreads / kColumnsB;  // ci that a block copies at once
  static_assert(Tile::kBlockM % kRows == 0 && Tile::kBlockN % kRowsB == 0);

  __device__ void copy_rows(float* tile) const {
    const int piece = static_cast<int>(threadIdx.x) % kPieces * kFloats;
    const int first = static_cast<int>(threadIdx.x) / kPieces;
    const bool inside = co0_ + piece < gemm_.Cout;
#pragma unroll
    for (int i = 0; i < Tile::kBlockM; i += kRows) {
      const int from = shared_.taps.met[ordinal_][first + i];
      const bool exists = inside && from >= 0;
      ptx::cp_async<4 * kFloats>(
          tile + (first + i) * Shared<Tile>::kPitchA + piece,
          gemm_.dy + (exists ? std::int64_t{from} * gemm_.Cout + co0_ + piece : 0),
          exists ? 4 * kFloats : 0);
    }
  }

  __device__ void copy_weights(float* tile) const {
    const int bit = __ffs(static_cast<int>(left_)) - 1, k = 32 * word_ + bit;
    const int co = static_cast<int>(threadIdx.x) % kColumnsB;
    const int first = static_cast<int>(threadIdx.x) / kColumnsB;
    const std::int64_t tap = gemm_.opposite ? gemm_.KV - 1 - k : k;
    const float* const from = gemm_.weights + tap * gemm_.Cin * gemm_.Cout;
#pragma unroll
    for (int i = 0; i < Tile::kBlockN; i += kRowsB) {
      const std::int64_t ci = ci0_ + first + i;
#pragma unroll
      for (int j = 0; j < kStep; j += kColumnsB) {
        const bool exists = ci < gemm_.Cin && co0_ + co + j < gemm_.Cout;
        ptx::cp_async<4>(tile + (co + j) * Shared<Tile>::kPitchB + first + i,
                         from + (exists ? ci * gemm_.Cout + co0_ + co + j : 0), exists ? 4 : 0);
      }
    }
  }

  const ImplicitGemm& gemm_;
  Shared<Tile>& shared_;
  unsigned left_;  // taps whose copies have not all been started
  int word_, ci0_;
  int co0_ = 0, ordinal_ = 0, stage_ = 0;  // of the next step
};

/// Grid (tiles of rows or fewer, tiles of channels), block (Tile::kThreads).
/// @tparam kAligned rows of dy and dx can be moved in pieces of 16 bytes
template <class Tile, bool kAligned>
__global__ void __launch_bounds__(Tile::kThreads, kThreadsPerSm / Tile::kThreads)
    sparse_dgrad_implicit_gemm(ImplicitGemm gemm, Half half) {
  auto& shared = *dynamic_shared<Shared<Tile>>();
  const Tile tile(threadIdx.x);
  const int group = tile.m / Tile::kWarpM;
  const int ci0 = static_cast<int>(blockIdx.y) * Tile::kBlockN;
  const int words = mask_words(gemm.KV);
  const int steps_of_tap = ceil_div(gemm.Cout, kStep);

  const int tiles = ceil_div(gemm.rows, Tile::kBlockM);
  for (int index = static_cast<int>(blockIdx.x); index < tiles;
       index += static_cast<int>(gridDim.x)) {
    // The last rows have the largest masks and mostly the most taps. Their tiles start first, so
    // that no long tile runs alone at the end.
    const std::int64_t first = std::int64_t{tiles - 1 - index} * Tile::kBlockM;
    __syncthreads();  // all threads have finished with the rows of the previous tile
    shared.taps.choose_rows(half.order, first, gemm.rows);
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    for (int word = half.first / 32; 32 * word < half.end; ++word) {
      const unsigned taps = shared.taps.find(gemm.table, gemm.mask, words, word,
                                             taps_between(half.first, half.end, word), gemm.rows);
      const unsigned mine = shared.taps.groups[group];
      // Without the pipeline:
      //
      //     for the taps k of the word, for chunks of 16 channels:
      //       a[m][s] = dy[table[k][row m]][chunk + s], or 0
      //       b[s][n] = W_k[ci0 + n][chunk + s];   __syncthreads()
      //       for s, i, j:  sums[i][j] += a[row i of this thread][s] * b[s][column j]
      TapCopies<Tile, kAligned> copies(gemm, shared, word, taps, ci0);
      for (int stage = 0; stage < kStages - 1; ++stage) copies.ask_for_next();
      int stage = 0;
      for (unsigned left = taps; left != 0; left &= left - 1) {
        const bool skipped = (mine & left & (~left + 1)) == 0;  // no row of this warp has the tap
        for (int step = 0; step < steps_of_tap; ++step) {
          ptx::cp_async_wait_group<kStages - 2>();
          // This thread's copies of the step have landed. The barrier makes those of all threads
          // visible, and separates the loads of the previous step from the copies into its stage.
          __syncthreads();
          copies.ask_for_next();
          if (!skipped) {
            tile.template multiply_along_k<Shared<Tile>::kPitchA, Shared<Tile>::kPitchB>(
                shared.a[stage], shared.b[stage], sums);
          }
          stage = stage + 1 == kStages ? 0 : stage + 1;
        }
      }
    }

    tile.for_each_four_along_k(sums, [&](int m, int n, float4 four) {
      const int row = shared.taps.row[m];
      if (row < 0 || ci0 + n >= gemm.Cin) return;
      float* const to = gemm.dx + std::int64_t{row} * gemm.Cin + ci0 + n;
      if constexpr (kAligned) {
        if (half.accumulate) {
          const float4 before = *reinterpret_cast<const float4*>(to);
          four = {before.x + four.x, before.y + four.y, before.z + four.z, before.w + four.w};
        }
        *reinterpret_cast<float4*>(to) = four;
      } else {
        const float of[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (ci0 + n + j < gemm.Cin) to[j] = half.accumulate ? to[j] + of[j] : of[j];
        }
      }
    });
  }
}

bool rows_are_aligned(const ImplicitGemm& gemm) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(gemm.dy) | reinterpret_cast<std::uintptr_t>(gemm.dx);
  return (gemm.Cin | gemm.Cout) % 4 == 0 && address % 16 == 0;
}

/// A type as a value.
template <class T>
struct Tag {};

/// Calls body(Tag<Tile>) for the tile that suits so many rows and channels of dx.
template <class Body>
void with_tile(int rows, int Cin, const Body& body) {
  if (ceil_div(rows, Medium::kBlockM) < enough_blocks(kEnoughTiles)) {
    body(Tag<Small>{});
  } else if (Cin <= 32) {
    body(Tag<Narrow>{});
  } else if (Cin <= 64) {
    body(Tag<Medium>{});
  } else {
    body(Tag<Wide>{});
  }
}

/// Where the second half of the taps begins.
int middle_tap(int KV) { return first_tap(KV, 2, 1); }

template <class Tile>
void launch_with(const ImplicitGemm& gemm) {
  const auto kernel = rows_are_aligned(gemm) ? sparse_dgrad_implicit_gemm<Tile, true>
                                             : sparse_dgrad_implicit_gemm<Tile, false>;
  const LaunchConfig config = {dim3(blocks_for(gemm.rows, Tile::kBlockM, kMaxGridYZ),
                                    static_cast<unsigned>(ceil_div(gemm.Cin, Tile::kBlockN))),
                               dim3(Tile::kThreads), sizeof(Shared<Tile>)};
  const int middle = middle_tap(gemm.KV);
  launch(kernel, config, gemm, Half{0, middle, gemm.orders, false});
  if (middle == gemm.KV) return;  // one tap has no second half
  launch(kernel, config, gemm, Half{middle, gemm.KV, gemm.orders + gemm.rows, true});
}

Declined supports(const SparseConvProblem& conv) { return declined_by_implicit_gemm(conv); }

/// dy [M][Cout], weights [KV][Cin][Cout], nbr_back [KV][N] with masks and orders, dx [N][Cin].
void run(const SparseConvProblem& conv, const SparseDgradArrays& arrays, const Context&) {
  launch_implicit_gemm({.KV = conv.book.KV,
                        .rows = conv.N,
                        .Cin = conv.Cin,
                        .Cout = conv.Cout,
                        .opposite = false,
                        .table = arrays.nbr_back,
                        .mask = arrays.mask_back,
                        .orders = arrays.split_order_back,
                        .dy = arrays.dy,
                        .weights = arrays.weights,
                        .dx = arrays.dx});
}

std::string choice_in_words(const SparseConvProblem& conv) {
  return implicit_gemm_in_words(conv, conv.N);
}

}  // namespace

void launch_implicit_gemm(const ImplicitGemm& gemm) {
  with_tile(gemm.rows, gemm.Cin, [&]<class Tile>(Tag<Tile>) { launch_with<Tile>(gemm); });
}

std::string implicit_gemm_in_words(const SparseConvProblem& conv, int rows) {
  ImplicitGemm gemm{};  // null arrays count as aligned
  gemm.Cin = conv.Cin;
  gemm.Cout = conv.Cout;
  std::string words;
  with_tile(rows, conv.Cin, [&]<class Tile>(Tag<Tile>) {
    words = text(Tile::kBlockM, " x ", Tile::kBlockN,
                 rows_are_aligned(gemm) ? ", channels in fours" : "",
                 middle_tap(conv.book.KV) == conv.book.KV ? ", one half" : "");
  });
  return words;
}

extern const Implementation<SparseDgradArrays> implicit_gemm = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::sparse_dgrad
