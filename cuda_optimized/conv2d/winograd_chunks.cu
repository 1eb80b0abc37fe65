/// @file winograd_chunks.cu
/// @brief conv2d by F(4 x 4, 3 x 3), as many tiles at a time as the L2 cache keeps.
///
/// - Before: im2col_gemm_chunks.cu
/// - The same maths: cpu_reference/conv2d/winograd_4x4.cpp
///
/// **The idea.** That of im2col_gemm_chunks, for the same reason: what one kernel writes, the next
/// one reads, and a cache that still holds it saves both ways. V and M of some tiles are made,
/// multiplied and used up in 48 MB, as much as an H200's L2 cache; then those of the next tiles, in
/// the same place. Half of that is V, which is used up while M is made: fewer tiles would be surer
/// to stay, but are products too small for all SMs. U is made once, and stays.
///
///     B4: 6272 tiles, 116 MB of V and M         48 MB of it at a time: 2688 tiles
///
///       V [ |2688| 2688 |896]     x -> V -> M -> y, tiles    0 ... 2687     U
///                                 x -> V -> M -> y, tiles 2688 ... 5375     |  the same 48 MB
///
/// **Expect.** DRAM has x, y and U left: 52 MB for B4 (32x64x56x56, 64 filters), 12 us instead of
/// 68 us, and the L2 cache's bytes, at some 5.5 TB/s 49 us; with the products, which do not overlap
/// with them, 98 us. B9 780 (winograd_4x4: 850). Where all of V and M fits, as for B6 and B7, it
/// does what winograd_4x4 does.
/// @expect on --n 1 --c 16 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1
/// @expect launches 1 + 3 = 4, one chunk: as winograd_4x4
/// @expect bytes_per_lane.workspace.async 16
/// @expect loads_per_output.x 16 * 22 * 22 / 16384 = 0.4727, windows of 6, 22 of 24 rows inside
/// **Costs.** Three launches a chunk, 3 chunks for B4 and 19 for B9, and at the end of each the SMs
/// run empty. Otherwise as winograd_4x4.
/// **Try.** Give it 12, 24 and 96 MB. At which size is B4 fastest, and what does B9 say?
#include "core/cuda/device_attribute.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/winograd_4x4.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

constexpr int kM = 4;  ///< Outputs of a tile along each axis.
/// V and M at a time. An H200 keeps 50 MB in L2, in two halves.
constexpr std::int64_t kChunkBytes = std::int64_t{48} << 20;
/// Of these, so many bytes belong to a block.
constexpr std::int64_t kBlockBytes = 64 << 10;
/// A chunk is whole tiles of the product, of every shape.
constexpr std::int64_t kWholeTiles = 128;

/// How many tiles are computed at a time.
std::int64_t chunk_of(const Conv2dProblem& conv) {
  const std::int64_t budget = enough_blocks(kChunkBytes / kBlockBytes) * kBlockBytes;
  const std::int64_t tiles = std::max<std::int64_t>(1, WinogradTiles(conv, kM).all);
  const WinogradProduct product = product_4x4(conv, tiles);
  const std::int64_t rows = checked_product({product.products, product.k + product.m}, "rows");
  const std::int64_t fit =
      budget / (rows * std::int64_t{sizeof(float)}) / kWholeTiles * kWholeTiles;
  return std::min(tiles, std::max(fit, kWholeTiles));
}

Declined supports(const Conv2dProblem& conv) { return why_no_tiles_4x4(conv); }

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return product_4x4(conv, chunk_of(conv)).workspace_bytes();
}

/// x [N][C][H][W], weights [K][C/groups][3][3], bias [K] or null, y [N][K][P][Q].
void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context& context) {
  if (conv.N == 0) return;
  const std::int64_t tiles = WinogradTiles(conv, kM).all, chunk = chunk_of(conv);
  const WinogradProduct product = product_4x4(conv, chunk);
  float* const u = context.workspace_as<float>();
  launch_weights_4x4(conv, product, arrays.weights, WeightsOrder::as_they_are, u);
  for (std::int64_t first = 0; first < tiles; first += chunk) {  // one stream: each waits
    launch_tiles_4x4(conv, product, first, std::min(chunk, tiles - first), arrays, u,
                     u + product.u_floats());
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const std::int64_t chunk = chunk_of(conv);
  return text(chunk < WinogradTiles(conv, kM).all ? "some" : "all", " tiles at a time, ",
              product_4x4_in_words(conv, chunk));
}

}  // namespace

extern const Implementation<Conv2dArrays> winograd_chunks = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
