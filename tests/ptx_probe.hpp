/// @file ptx_probe.hpp
/// @brief Kernels that run one instruction of core/cuda/ptx.hpp on given registers and store what
/// comes out: compiled for cuda_on_cpu and, where there is nvcc, for the GPU.
#pragma once

#include <cstdint>
#include <vector>

/// The registers of a warp, by lane.
using Registers = std::vector<std::uint32_t>;

/// A load of the tensor memory accelerator. Dimensions and coordinates are innermost first.
struct TensorLoad {
  std::vector<std::uint64_t> dims = {};   ///< of a dense array of 32-bit elements
  std::vector<std::uint32_t> box = {};    ///< tiled mode: of each dimension; im2col: see below
  std::vector<std::uint32_t> steps = {};  ///< element strides
  std::vector<int> at = {};               ///< coordinates
  std::vector<int> lower = {}, upper = {},
                   offset = {};            ///< im2col mode: corners and filter offsets, of W and H
  std::uint32_t channels = 0, pixels = 0;  ///< im2col mode: of a pixel, of a column
  int swizzle = 0;                         ///< bytes
  bool round_to_tf32 = false;
  int bytes = 0;          ///< that it brings
  std::size_t words = 0;  ///< that it may touch in shared memory
};

/// A factor of wgmma in shared memory, with rows of 128, 64 or 32 bytes, swizzled.
struct WgmmaFactor {
  int begin;            ///< bytes from a multiple of 1024
  int group_bytes;      ///< between groups of 8 rows
  int row_bytes = 128;  ///< and of the swizzle
  int piece_bytes = 0;  ///< row-major b, of 16 bits: from 64 columns to the next; 0: rows along k
  bool in_registers = false;  ///< a, in TF32: threads load it from there, without the swizzle
};

/// The numbers that tensor cores multiply.
enum class FactorType { tf32, f16, bf16, e4m3 };

/// The ways to launch a kernel.
enum class LaunchedBy { launch, launch_early, launch_cooperatively };

/// Declares the probes of one place.
#define PTX_PROBES                                                                                 \
  /** Whether the device there has mma.sync in TF32. */                                            \
  bool has_tensor_cores();                                                                         \
  /** ldmatrix.x4 (or .x2, .trans): lane l names `rows` + 4 * first[l]; [32][matrices]. */         \
  Registers load_matrices(const Registers& rows, const Registers& first, int matrices,             \
                          bool transposed);                                                        \
  /** stmatrix.x4.trans of `fragments` [32][4] to rows [32][4]; lane l names row first[l]. */      \
  Registers store_matrices(const Registers& fragments, const Registers& first);                    \
  /** mma.sync m16n8k8 or k16 with a [32][4], b [32][2], d [32][4] as the lanes hold them. */      \
  Registers multiply(FactorType type, const Registers& a, const Registers& b, const Registers& d); \
  /** cvt.rna.tf32.f32 of 32 floats. */                                                            \
  Registers round_to_tf32(const Registers& values);                                                \
  /** Whether the device there has tensor loads and wgmma, and this program code for them. */      \
  bool has_wgmma();                                                                                \
  /** cp.async.bulk.tensor; words that it leaves alone are kUntouched. */                          \
  Registers load_box(const TensorLoad& load, const Registers& array);                              \
  /** cp.async of `rows` [32][4], then cp.async.bulk of them; both arrive at a barrier: [64][4].   \
   */                                                                                              \
  Registers copy_to_barrier(const Registers& rows);                                                \
  /** Rows of 32 words, three a block, which clusters of `blocks` share by multicast, a row of     \
   * each                                                                                          \
   */                                                                                              \
  /** block a round: [blocks of the grid][3][blocks][32]. */                                       \
  Registers share_in_clusters(const Registers& rows, int blocks);                                  \
  /** st.async of four words by each thread to each block: [blocks of the grid][blocks][32][4],    \
   * and                                                                                           \
   */                                                                                              \
  /** what has come there, by ranks. */                                                            \
  Registers exchange_in_clusters(const Registers& words, int blocks);                              \
  /** wgmma m64nN, `steps` times, with factors in `image` and d [128][n / 2]. */                   \
  Registers multiply_in_warpgroup(FactorType type, const Registers& image, const WgmmaFactor& a,   \
                                  const WgmmaFactor& b, int n, int steps, const Registers& d);     \
  /** Words 0, 1 ... that a kernel has stored in the 40 KB of shared memory that it declares, and  \
   */                                                                                              \
  /** behind them in `bytes` of dynamic shared memory, and then read. */                           \
  Registers through_shared_memory(LaunchedBy how, std::size_t bytes);

constexpr std::uint32_t kUntouched = 0xdeadbeefu;

namespace convladder::emulated::ptx_probe {
PTX_PROBES
}
namespace convladder::gpu::ptx_probe {
PTX_PROBES
}
