/// @file implicit_gemm_async.cuh
/// @brief An implicit product whose rows and weights are copied asynchronously, and whose warps
/// skip taps on their own; cuda_optimized/sparse_conv/implicit_gemm_cp_async.cu explains it.
#pragma once

#include "core/cuda/early_launch.hpp"
#include "core/cuda/ptx.hpp"
#include "core/fast_division.hpp"
#include "core/rulebook_problem.hpp"
#include "cuda_optimized/gemm/thread_tile.cuh"
#include "cuda_optimized/sparse_conv/implicit_gemm.cuh"
#include "cuda_optimized/sparse_conv/tile_queue.cuh"

namespace convladder::BACKEND::cuda_optimized::sparse_conv {

/// Computes all of `to` in one launch, by a shape of tile that suits rows and channels; defined in
/// implicit_gemm_cp_async.cu. What conv.add adds to must be the work of the launch before: this one
/// begins beside its end.
/// @param queue of tiles with async_tile_rows() rows, or none; its first launch must follow the
/// kernel that fills it
void launch_implicit_gemm_async(const ImplicitGemm& conv, const TileQueue& queue = {});

/// Whether tiles of 128 rows keep a large GPU busy for so long that its last ones do not count.
/// Tests lower max_strided_blocks, which here means a small machine: so small problems have many
/// rows, too.
bool has_many_rows(std::int64_t rows);

/// The rows of a tile that it chooses.
int async_tile_rows(std::int64_t rows, int channels);

/// What both of its rungs decline: the list of a tile's taps lies in shared memory, which bounds
/// their number, and rows, tiles and bytes of a row are counted in 32 bits.
Declined supports_listed_taps(const SparseConvProblem& conv);

/// What launch_implicit_gemm_async() chooses for a problem's halves, in a few words.
std::string implicit_gemm_async_in_words(const SparseConvProblem& conv);

/// The shape of a block's work, and its shared memory: first the stages, then the rest.
/// @tparam Tile_ a gemm::ThreadTile: rows x channels of the output, and how deep a step is
/// @tparam kStages_ steps whose tiles are in shared memory, or on their way; at least 2
template <class Tile_, int kStages_>
struct AsyncRows {
  using Tile = Tile_;                                         ///< Of the output.
  static constexpr int kStages = kStages_;                    ///< See above.
  static constexpr int kWarps = Tile::kThreads / 32;          ///< Of a block.
  static constexpr int kWarpRows = Tile::kWarpM;              ///< Rows that skip together.
  static constexpr int kGathered = Tile::kBlockM / kWarps;    ///< Rows that a warp copies.
  static constexpr int kPitchA = Tile::kBlockK + 4;           ///< Of the gathered rows.
  static constexpr int kPitchB = Tile::kBlockN;               ///< Of the weights.
  static constexpr int kRowFloats = Tile::kBlockM * kPitchA;  ///< Of a stage's gathered rows.
  static constexpr int kStageFloats = kRowFloats + Tile::kBlockK * kPitchB;  ///< Of a stage.
  static_assert(Tile::kBlockK % 8 == 0 && kWarpRows <= 32 && kGathered <= kWarpRows);
  static_assert(Tile::kWarpsM <= 16, "a list's entry has 16 bits for them");

  /// 4-byte words behind the stages: rows, their inputs at kStages taps, masks, the list of taps.
  static constexpr int words_behind(int taps) {
    const int words = mask_words(taps);
    return Tile::kBlockM * (1 + kStages) + Tile::kWarpsM * words + 32 * words + 1;
  }
  /// Dynamic shared memory of a block.
  static constexpr std::size_t shared_bytes(int taps) {
    return (static_cast<std::size_t>(kStages) * kStageFloats +
            static_cast<std::size_t>(words_behind(taps))) *
           sizeof(float);
  }
};

/// One tile of the output: its taps, and what is copied for them.
/// @tparam kAligned rows of `from`, `weights` and `to` consist of 16-byte pieces
template <class Shape, bool kAligned>
class AsyncRowsTile {
 public:
  /// The tile of rows and channels.
  using Tile = typename Shape::Tile;
  static constexpr int kStages = Shape::kStages;  ///< Stages of copies.

  /// All threads of the block call it. It waits twice for the others, and before that writes into
  /// what the tile before has read: a barrier must lie between.
  __device__ AsyncRowsTile(const ImplicitGemm& conv, std::int64_t first_row, int first_channel)
      : conv_(conv), first_channel_(first_channel), warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32), words_(mask_words(conv.taps)),
        chunks_(ceil_div(conv.summed, Tile::kBlockK)) {
    const auto row_at = [&](int m) {
      const std::int64_t at = first_row + m;
      if (at >= conv.rows) return -1;
      return conv.order != nullptr ? conv.order[at] : static_cast<int>(at);
    };
    const int gathered = warp_ * Shape::kGathered + lane_;  // a row of the tile
    if (lane_ < Shape::kGathered) rows()[gathered] = row_ = row_at(gathered);
    // A lane's row of those that this warp multiplies. They are those that it copies, unless warps
    // side by side share them.
    const int warp_m = warp_ / Tile::kWarpsN;
    int mine = row_;
    if (Tile::kWarpsN > 1 && lane_ < Shape::kWarpRows) {
      mine = row_at(warp_m * Shape::kWarpRows + lane_);
    }
    for (int word = 0; word < words_; ++word) {
      unsigned bits = 0;
      if (mine >= 0) bits = static_cast<unsigned>(conv.mask[std::int64_t{mine} * words_ + word]);
      for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(~0u, bits, apart);
      if (lane_ == 0 && warp_ % Tile::kWarpsN == 0)
        masks()[warp_m * words_ + word] = bits & taps_in_word(conv, word);
    }
    __syncthreads();  // all masks are there before warp 0 reads them
    if (warp_ == 0) list_taps();
    __syncthreads();  // the list is there before anybody asks for its length
    listed_ = static_cast<int>(list()[32 * words_]);
  }

  /// Adds all taps to the sums.
  __device__ void add_taps(const Tile& tile, float (&sums)[Tile::kThreadM][Tile::kThreadN]) {
    for (int step = 0; step < kStages - 1; ++step) find_inputs();
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncwarp();  // the inputs that one lane has copied are read by others
    for (int step = 0; step < kStages - 1; ++step) {
      copy();
      __syncwarp();  // all lanes have read where this step's rows are; with more than two stages
                     // the next copies may bring inputs of a later step to the same place
    }

    for (Place now; now.entry < listed_; advance(now)) {
      ptx::cp_async_wait_group<kStages - 2>();
      // Now this thread's copies have landed. The barrier: those of the others, too, and all have
      // read what they need of the step before, into whose stage the next copies go.
      __syncthreads();
      copy();
      if (has(list()[now.entry])) {  // else no row of this warp has the tap
        tile.template multiply_along_k<Shape::kPitchA, Shape::kPitchB>(
            stage_at(now.stage), stage_at(now.stage) + Shape::kRowFloats, sums);
      }
    }
  }

  /// Stores the sums.
  __device__ void store(const Tile& tile, const float (&sums)[Tile::kThreadM][Tile::kThreadN]) {
    tile.for_each_four_along_k(sums, [&](int m, int n, float4 four) {
      const int row = rows()[m], c = first_channel_ + n;
      if (row >= 0 && c < conv_.channels) store_sums<kAligned>(conv_, row, c, four);
    });
  }

 private:
  static __device__ float* stage_at(int stage) {
    return dynamic_shared<float>() + stage * Shape::kStageFloats;
  }
  static __device__ std::int32_t* rows() {  // [kBlockM]: numbers of the tile's rows, or -1
    return dynamic_shared<std::int32_t>() + kStages * Shape::kStageFloats;
  }
  static __device__ std::int32_t* inputs(int slot) {  // [kStages][kBlockM]: the table at some taps
    return rows() + (1 + slot) * Tile::kBlockM;
  }
  static __device__ unsigned* masks() {  // [kWarpsM][words]: taps that any row of a warp has
    return reinterpret_cast<unsigned*>(inputs(kStages));
  }
  /// [32 * words + 1]: taps that the block does, with a bit from 16 on for each row of warps that
  /// has it; last their number.
  __device__ unsigned* list() const { return masks() + Tile::kWarpsM * words_; }

  /// Warp 0 lists the taps that any warp has.
  __device__ void list_taps() {
    int listed = 0;
    for (int word = 0; word < words_; ++word) {
      unsigned warps = 0;
#pragma unroll
      for (int w = 0; w < Tile::kWarpsM; ++w)
        warps |= (masks()[w * words_ + word] >> lane_ & 1) << w;
      const unsigned any = __ballot_sync(~0u, warps != 0);
      if (warps != 0) {
        list()[listed + __popc(any & ((1u << lane_) - 1))] =
            static_cast<unsigned>(32 * word + lane_) | warps << 16;
      }
      listed += __popc(any);
    }
    if (lane_ == 0) list()[32 * words_] = static_cast<unsigned>(listed);
  }

  __device__ bool has(unsigned entry) const {
    return (entry >> (16 + warp_ / Tile::kWarpsN) & 1) != 0;
  }

  /// A step, counted without divisions.
  struct Place {
    int entry = 0, chunk = 0;  // of the list, and of the entry's tap
    int stage = 0;             // whose memory it has: steps modulo kStages
    int slot = 0;              // of the inputs: entries modulo kStages
  };
  __device__ void advance(Place& place) const {
    place.stage = place.stage + 1 == kStages ? 0 : place.stage + 1;
    if (++place.chunk < chunks_) return;
    place.chunk = 0;
    ++place.entry;
    place.slot = place.slot + 1 == kStages ? 0 : place.slot + 1;
  }

  /// Starts to copy which inputs this warp's rows have at the next step, if a tap begins there.
  __device__ void find_inputs() {
    if (found_.entry >= listed_) return;
    const unsigned entry = list()[found_.entry];
    if (found_.chunk == 0 && has(entry) && lane_ < Shape::kGathered) {
      // A row past the end gets input 0: its sums are not stored.
      ptx::cp_async<4>(inputs(found_.slot) + warp_ * Shape::kGathered + lane_,
                       conv_.table + (entry & 0xffff) * std::int64_t{conv_.rows} + max(row_, 0),
                       row_ >= 0 ? 4 : 0);
    }
    advance(found_);
  }

  /// Starts the copies of the next step, and those that tell what the step kStages - 1 later will
  /// copy.
  __device__ void copy() {
    if (copied_.entry < listed_) {
      const int first = copied_.chunk * Tile::kBlockK;
      const unsigned entry = list()[copied_.entry];
      float* const to = stage_at(copied_.stage);
      if (has(entry)) copy_rows(copied_.slot, first, to);
      copy_weights(static_cast<int>(entry & 0xffff), first, to + Shape::kRowFloats);
      advance(copied_);
      find_inputs();
    }
    ptx::cp_async_commit_group();  // also without copies: the waits count groups
  }

  static constexpr int kFloats = kAligned ? 4 : 1;  // of one copy

  /// This warp's rows, zeros where a row has no input.
  __device__ void copy_rows(int slot, int first, float* to) const {
    constexpr int kPieces = Tile::kBlockK / kFloats;  // of a row
    constexpr int kAtOnce = 32 / kPieces;             // rows of a warp's copy
    static_assert(Shape::kGathered % kAtOnce == 0);
    const int s = lane_ % kPieces * kFloats, begin = warp_ * Shape::kGathered + lane_ / kPieces;
    const bool inside = first + s < conv_.summed;
    const auto* const from = reinterpret_cast<const char*>(conv_.from + (inside ? first + s : 0));
    const std::uint64_t pitch = static_cast<unsigned>(conv_.summed) * 4;
    // First all loads, then all copies: in turns, each copy would wait for its load.
    std::int32_t met[Shape::kGathered / kAtOnce];
#pragma unroll
    for (int i = 0; i < Shape::kGathered; i += kAtOnce) {
      met[i / kAtOnce] = inputs(slot)[begin + i];
    }
#pragma unroll
    for (int i = 0; i < Shape::kGathered; i += kAtOnce) {
      const int input = met[i / kAtOnce];
      // The product of unsigned numbers of 32 bits, and the sum, are one instruction.
      ptx::cp_async<4 * kFloats>(to + (begin + i) * Shape::kPitchA + s,
                                 from + static_cast<unsigned>(max(input, 0)) * pitch,
                                 inside && input >= 0 ? 4 * kFloats : 0);
    }
  }

  /// This thread's share of the weights, zeros past the channels.
  __device__ void copy_weights(int tap, int first, float* to) const {
    constexpr int kPieces = Tile::kBlockN / kFloats;   // of a row
    constexpr int kAtOnce = Tile::kThreads / kPieces;  // rows of a block's copy
    static_assert(Tile::kThreads % kPieces == 0 && Tile::kBlockK % kAtOnce == 0);
    const int s = static_cast<int>(threadIdx.x) / kPieces;
    const int c = static_cast<int>(threadIdx.x) % kPieces * kFloats;
    const bool inside = first_channel_ + c < conv_.channels;
    const auto* const weights = reinterpret_cast<const char*>(conv_.weights);
    const std::uint64_t pitch = static_cast<unsigned>(conv_.channels) * 4;
    const std::uint64_t at = static_cast<unsigned>(tap * conv_.summed + first + s) * pitch +
                             static_cast<unsigned>(first_channel_ + c) * std::uint64_t{4};
    to += s * Shape::kPitchB + c;
    if (inside && first + Tile::kBlockK <= conv_.summed) {  // all of them exist
#pragma unroll
      for (int i = 0; i < Tile::kBlockK; i += kAtOnce) {
        ptx::cp_async<4 * kFloats>(to + i * Shape::kPitchB,
                                   weights + (at + static_cast<unsigned>(i) * pitch));
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < Tile::kBlockK; i += kAtOnce) {
        const bool exists = inside && first + s + i < conv_.summed;
        ptx::cp_async<4 * kFloats>(to + i * Shape::kPitchB,
                                   weights + (exists ? at + static_cast<unsigned>(i) * pitch : 0),
                                   exists ? 4 * kFloats : 0);
      }
    }
  }

  const ImplicitGemm& conv_;
  int first_channel_;
  int warp_, lane_;
  int words_;             // of a mask
  int chunks_;            // steps of a tap
  int listed_;            // taps
  int row_ = -1;          // that this lane finds inputs for
  Place found_, copied_;  // the next step to find inputs for, and the next one to copy
};

/// Which of a ThreadTile's threads a thread is, such that four lanes that are neighbours multiply a
/// square of 2 x 2 of its places, and not four side by side:
///
///     lanes 0  1  4  5  8  9 12 13     instead of     lanes 0  1  2  3  4  5  6  7
///           2  3  6  7 10 11 14 15                          8  9 10 11 12 13 14 15
///          16 17 ...                                       16 17 ...
///
/// A profiler shows on an H200: the lanes of a load of 16 bytes are served 8 at a time, but 16 at a
/// time where each lane reads the same as its neighbour, or as the lane after that. In a square
/// this holds for rows and for weights.
template <int kLanesN>
__device__ unsigned thread_in_squares(unsigned thread) {
  const unsigned lane = thread % 32, square = lane / 4, squares_n = kLanesN / 2;
  const unsigned m = square / squares_n * 2 + lane / 2 % 2, n = square % squares_n * 2 + lane % 2;
  return thread - lane + m * kLanesN + n;
}

/// Block (Tile::kThreads), any one-dimensional grid: it strides over the tiles. Without a queue,
/// from the last rows in the order back to the first: the largest masks stand last, many of them
/// with many taps.
/// @param across divides by the tiles side by side @param tiles all of them
template <class Shape, bool kAligned, int kBlocks>
__global__ void __launch_bounds__(Shape::Tile::kThreads, kBlocks)
    implicit_gemm_async_rows(ImplicitGemm conv, FastDivision across, int tiles, TileQueue queue) {
  using Tile = typename Shape::Tile;
  if (queue.counts != nullptr && !conv.add) wait_for_kernel_before();  // which filled the queue
  let_next_kernel_begin();  // which takes from the queue, too, and waits only before it stores
  const int last = across.quotient(tiles - 1);
  const Tile tile(thread_in_squares<Tile::kLanesN>(threadIdx.x));
  for (std::int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const int place = across.quotient(static_cast<int>(i));
    const std::int64_t number = queue.counts != nullptr ? queue.tile_at(place) : last - place;
    const int n = across.remainder(static_cast<int>(i), place);
    float sums[Tile::kThreadM][Tile::kThreadN] = {};
    AsyncRowsTile<Shape, kAligned> work(conv, number * Tile::kBlockM, n * Tile::kBlockN);
    work.add_taps(tile, sums);
    if (conv.add) wait_for_kernel_before();  // which stored what is added to
    work.store(tile, sums);
    __syncthreads();  // all have read rows and list before the next tile's overwrite them
  }
}

inline constexpr std::int64_t kMaxTileBlocks = 1 << 20;  ///< More tiles than these: blocks stride.

/// Whether rows and weights consist of float4, if they begin at multiples of 16 bytes.
inline bool channels_in_fours(int summed, int channels) {
  return summed % 4 == 0 && channels % 4 == 0;
}

/// Computes all of `to` in one launch.
/// @tparam kBlocks of them an SM runs at once: bounds registers
/// @param queue of tiles with the shape's rows, or none
template <class Shape, int kBlocks>
void launch_async_rows(const ImplicitGemm& conv, const TileQueue& queue) {
  using Tile = typename Shape::Tile;
  const auto at_16 = [](const float* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  const bool aligned = channels_in_fours(conv.summed, conv.channels) && at_16(conv.from) &&
                       at_16(conv.weights) && at_16(conv.to);
  const std::int64_t tiles =
      ceil_div<std::int64_t>(conv.rows, Tile::kBlockM) * ceil_div(conv.channels, Tile::kBlockN);
  const auto kernel = aligned ? implicit_gemm_async_rows<Shape, true, kBlocks>
                              : implicit_gemm_async_rows<Shape, false, kBlocks>;
  const LaunchConfig config = {blocks_for(tiles, 1, kMaxTileBlocks), Tile::kThreads,
                               Shape::shared_bytes(conv.taps)};
  const FastDivision across(ceil_div(conv.channels, Tile::kBlockN));
  if (conv.add || queue.counts != nullptr) {
    launch_early(kernel, config, conv, across, static_cast<int>(tiles), queue);
  } else {
    launch(kernel, config, conv, across, static_cast<int>(tiles), queue);
  }
}

}  // namespace convladder::BACKEND::cuda_optimized::sparse_conv
