/// @file
/// @brief Functions that emulate the PTX instructions for tensor cores, asynchronous copies and
/// their barriers (NVIDIA, "PTX ISA" 9.0, section 9.7).
///
/// The instructions with `.sync.aligned` are executed by a whole warp: all 32 lanes must call the
/// same one. Below, lane is the calling thread's index in its warp, group = lane / 4 and place =
/// lane % 4.
#pragma once

#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>
#include <cuda_on_cpu/tensor_map.hpp>
#include <cuda_on_cpu/vector_types.hpp>

namespace cuda_on_cpu::ptx {

/// `ldmatrix.sync.aligned.m8n8.x1.shared.b16`: loads a matrix of 8 rows of 16 bytes from shared
/// memory, and gives each lane the 4 bytes at `place` in row `group`. Lane i passes the address of
/// row i, a multiple of 16 bytes; the addresses of lanes 8 to 31 are ignored.
void ldmatrix_x1(std::uint32_t (&fragment)[1], const void* row,
                 detail::Site site = detail::Site::current());
/// `.x2`: two matrices; lanes 8 to 15 pass the row addresses of the second.
void ldmatrix_x2(std::uint32_t (&fragment)[2], const void* row,
                 detail::Site site = detail::Site::current());
/// `.x4`: four matrices; lane 8 * m + i passes the address of row i of matrix m.
void ldmatrix_x4(std::uint32_t (&fragment)[4], const void* row,
                 detail::Site site = detail::Site::current());

/// `.x2.trans`: two matrices [8][8] of 16-bit elements, each transposed: a lane receives the
/// elements of rows 2 place and 2 place + 1 in column `group`, the first one in its low bits.
void ldmatrix_x2_trans(std::uint32_t (&fragment)[2], const void* row,
                       detail::Site site = detail::Site::current());
/// `.x4.trans`: four matrices.
void ldmatrix_x4_trans(std::uint32_t (&fragment)[4], const void* row,
                       detail::Site site = detail::Site::current());

/// `stmatrix.sync.aligned.m8n8.x4.trans.shared.b16`: the inverse of ldmatrix_x4_trans().
void stmatrix_x4_trans(void* row, const std::uint32_t (&fragment)[4],
                       detail::Site site = detail::Site::current());

/// `cvt.rna.tf32.f32`: rounds to the nearest value with 10 fraction bits, ties away from zero. The
/// 13 low bits of the result are zero.
std::uint32_t cvt_rna_tf32(float value);

/// `mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32`: d += a * b, with matrices a [16][8], b
/// [8][8] and d [16][8] distributed over the warp:
///
///     a[0], a[1], a[2], a[3]   a at (group, place), (group + 8, place), (group, place + 4),
///                                   (group + 8, place + 4)
///     b[0], b[1]               b at (place, group), (place + 4, group)
///     d[0], d[1], d[2], d[3]   d at (group, 2 place), (group, 2 place + 1), (group + 8, 2 place),
///                                   (group + 8, 2 place + 1)
///
/// The 13 low bits of a and b are ignored, as by the hardware: an operand that was not rounded
/// before is truncated. The products are exact; their sum with d is rounded once, towards zero.
/// (NVIDIA does not specify order and rounding. GPUs align the products of an instruction and d to
/// the largest exponent, truncate each after 25 fraction bits, and truncate the sum: MMA-Sim,
/// Microsoft.)
void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      detail::Site site = detail::Site::current());

/// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`: d += a * b, with matrices a [16][16] and b
/// [16][8] of fp16, and d [16][8] as above. A register of a or b holds two consecutive elements
/// along k, the first one in its low bits; it begins with
///
///     a[0], a[1], a[2], a[3]   a at (group, 2 place), (group + 8, 2 place), (group, 2 place + 8),
///                                   (group + 8, 2 place + 8)
///     b[0], b[1]               b at (2 place, group), (2 place + 8, group)
///
/// Subnormal numbers are not flushed. Sums are rounded as above.
void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      detail::Site site = detail::Site::current());
/// `...f32.bf16.bf16.f32`: the same in bf16.
void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       detail::Site site = detail::Site::current());

/// The element types of the operands.
enum class FactorType : std::uint8_t { tf32, f16, bf16, e4m3 };

// --- Barriers in shared memory: `mbarrier`

/// `cvta.to.shared`: the 18-bit shared-memory address that instructions take. It is synthetic,
/// except for its value modulo 1024.
unsigned shared_address(const void* shared, detail::Site site = detail::Site::current());

/// `mbarrier.init`: initialises a barrier whose phases each wait for this many arrivals. Phases are
/// counted from 0; the parity of a phase is the last bit of its number.
void mbarrier_init(std::uint64_t* barrier, int arrivals,
                   detail::Site site = detail::Site::current());
/// `mbarrier.inval`: ends the lifetime of a barrier, so that its memory can be reused.
void mbarrier_inval(std::uint64_t* object, detail::Site site = detail::Site::current());
/// `mbarrier.arrive`: one arrival in the current phase.
void mbarrier_arrive(std::uint64_t* object, detail::Site site = detail::Site::current());
/// `mbarrier.expect_tx`: the current phase waits for this many more bytes.
void mbarrier_expect_tx(std::uint64_t* object, int bytes,
                        detail::Site site = detail::Site::current());
/// `mbarrier.arrive.expect_tx`: both, the bytes first.
void mbarrier_arrive_expect_tx(std::uint64_t* object, int bytes,
                               detail::Site site = detail::Site::current());
/// `cp.async.mbarrier.arrive.noinc`: one arrival in the current phase when all copies that this
/// thread has issued by `cp.async` have completed. In the emulator they complete when a thread
/// waits for the phase and only these arrivals are missing.
void cp_async_mbarrier_arrive_noinc(std::uint64_t* object,
                                    detail::Site site = detail::Site::current());
/// A loop over `mbarrier.try_wait.parity`: waits until the phase with this parity is complete,
/// which must be the current phase or the preceding one. Loads that the phase waits for complete at
/// this point.
void mbarrier_wait(std::uint64_t* object, unsigned parity,
                   detail::Site site = detail::Site::current());
/// `bar.sync id, threads`: waits until this many threads, in whole warps, have arrived. `id` is 1
/// to 15.
void named_barrier_sync(int id, int threads, detail::Site site = detail::Site::current());

/// Fences for operations that are always ordered in the emulator.
inline void fence_mbarrier_init() {}
inline void fence_proxy_async() {}

// --- Clusters of blocks

/// `%cluster_ctarank`: the rank of the block in its cluster. `%cluster_nctarank`: blocks of a
/// cluster. In a launch without clusters, each block is a cluster of one.
unsigned cluster_ctarank();
unsigned cluster_nctarank();
/// `barrier.cluster.arrive`, `barrier.cluster.wait`: a thread arrives, and waits until all threads
/// of the cluster that have not exited have arrived. (`.release` and `.acquire`, the defaults.)
void barrier_cluster_arrive(detail::Site site = detail::Site::current());
/// `.relaxed`: the thread's preceding operations are not ordered.
void barrier_cluster_arrive_relaxed(detail::Site site = detail::Site::current());
void barrier_cluster_wait(detail::Site site = detail::Site::current());
/// `mapa.shared::cluster.u32`: the address that corresponds to `shared` in the shared memory of the
/// cluster's block with this rank.
unsigned mapa(const void* shared, unsigned rank, detail::Site site = detail::Site::current());
/// `mbarrier.arrive.release.cluster.shared::cluster`: one arrival at the barrier at an address
/// returned by mapa().
void mbarrier_arrive_cluster(unsigned address, detail::Site site = detail::Site::current());
/// `.relaxed`: the same in the emulator, although on a GPU it does not order writes.
void mbarrier_arrive_relaxed(unsigned address, detail::Site site = detail::Site::current());

/// `st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32`: stores four floats at an address
/// of mapa(), a multiple of 16, and counts 16 bytes at the barrier at another such address in the
/// same block. The destination holds NaNs until a thread waits for the phase in which the bytes are
/// counted, which must expect them.
void st_async(unsigned address, const float4& value, unsigned barrier_address,
              detail::Site site = detail::Site::current());

// --- The Tensor Memory Accelerator (TMA): `cp.async.bulk`, `cp.async.bulk.tensor`

/// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes`: copies contiguous bytes.
/// Both addresses and the count are multiples of 16. The destination holds NaNs until a thread
/// waits for a phase of `barrier` that expects these bytes.
void cp_async_bulk(void* shared_to, const void* global_from, int bytes, std::uint64_t* barrier,
                   detail::Site site = detail::Site::current());

namespace detail_of_ptx {

void tma_load_multicast(void* shared_to, const CUtensorMap* map, std::uint64_t* object,
                        const int* at, unsigned rank, unsigned blocks, const detail::Site& site);
void tma_load(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier, const int* at,
              unsigned rank, const detail::Site& site);
void tma_load_im2col(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier, const int* at,
                     const unsigned short* offset, unsigned rank, const detail::Site& site);
void tma_store(const CUtensorMap* map, const void* shared_from, const int* at, unsigned rank,
               const detail::Site& site);
void cp_async_bulk_wait_group_read(unsigned groups, const detail::Site& site);
void wgmma(FactorType type, float* d, unsigned n, std::uint64_t a, std::uint64_t b,
           bool column_major_a, bool row_major_b, bool accumulate, const detail::Site& site);
/// With a in registers.
void wgmma(FactorType type, float* d, unsigned n, const std::uint32_t* a, std::uint64_t b,
           bool accumulate, const detail::Site& site);
void wgmma_wait_group(unsigned groups, const detail::Site& site);
void setmaxnreg(const detail::Site& site);

}  // namespace detail_of_ptx

/// `prefetch.tensormap`: checks that the argument is a tensor map.
void prefetch_tensor_map(const CUtensorMap* map, detail::Site site = detail::Site::current());

/// Loads the box of the map that begins at these coordinates, the innermost first; elements outside
/// of the array become zero. The destination holds NaNs until a thread waits for a phase of
/// `barrier` that expects these bytes.
template <int kRank>
void tma_load(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier,
              const int (&at)[kRank], detail::Site site = detail::Site::current()) {
  static_assert(kRank >= 1 && kRank <= 5);
  detail_of_ptx::tma_load(shared_to, map, barrier, at, kRank, site);
}

/// `.multicast::cluster`: loads into several blocks of the cluster, those whose rank's bit is set
/// in `blocks`. The destination and the barrier have the same offset in the shared memory of each
/// block.
template <int kRank>
void tma_load_multicast(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier,
                        const int (&at)[kRank], unsigned blocks,
                        detail::Site site = detail::Site::current()) {
  static_assert(kRank >= 1 && kRank <= 5);
  detail_of_ptx::tma_load_multicast(shared_to, map, barrier, at, kRank, blocks, site);
}

/// Stores a box from shared memory, in the layout of tma_load(), to the array; elements outside of
/// the array are not stored. Shared memory is read when the calling thread waits for the group, so
/// an earlier write to it corrupts the result. (A missing fence_proxy_async() is not detected.)
template <int kRank>
void tma_store(const CUtensorMap* map, const void* shared_from, const int (&at)[kRank],
               detail::Site site = detail::Site::current()) {
  static_assert(kRank >= 1 && kRank <= 5);
  detail_of_ptx::tma_store(map, shared_from, at, kRank, site);
}
/// `cp.async.bulk.commit_group`: closes the calling thread's group of stores.
void cp_async_bulk_commit_group(detail::Site site = detail::Site::current());
/// `cp.async.bulk.wait_group.read`: waits until all but the calling thread's last kGroups groups
/// have read shared memory. Groups of other threads do not count.
template <int kGroups>
void cp_async_bulk_wait_group_read(detail::Site site = detail::Site::current()) {
  detail_of_ptx::cp_async_bulk_wait_group_read(kGroups, site);
}

/// Loads channels from `c` on of the map's number of pixels of an array [N][H][W][C]: the pixels
/// that the filter's tap at (offset_w, offset_h) reads while its first tap traverses the map's
/// bounding box from (w, h) in image n on, row by row and image by image.
inline void tma_load_im2col(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier, int c,
                            int w, int h, int n, unsigned short offset_w, unsigned short offset_h,
                            detail::Site site = detail::Site::current()) {
  const int at[] = {c, w, h, n};
  const unsigned short offset[] = {offset_w, offset_h};
  detail_of_ptx::tma_load_im2col(shared_to, map, barrier, at, offset, 4, site);
}
/// The same for an array [N][W][C].
inline void tma_load_im2col(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier, int c,
                            int w, int n, unsigned short offset_w,
                            detail::Site site = detail::Site::current()) {
  const int at[] = {c, w, n};
  detail_of_ptx::tma_load_im2col(shared_to, map, barrier, at, &offset_w, 3, site);
}
/// The same for an array [N][D][H][W][C].
inline void tma_load_im2col(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier, int c,
                            int w, int h, int d, int n, unsigned short offset_w,
                            unsigned short offset_h, unsigned short offset_d,
                            detail::Site site = detail::Site::current()) {
  const int at[] = {c, w, h, d, n};
  const unsigned short offset[] = {offset_w, offset_h, offset_d};
  detail_of_ptx::tma_load_im2col(shared_to, map, barrier, at, offset, 5, site);
}

// --- Asynchronous matrix multiplication by a warpgroup of 128 threads: `wgmma`

/// The descriptor of a K-major operand: rows are contiguous along k, in groups of 8 rows that are
/// `stride_bytes` apart. With a swizzle of 32, 64 or 128 bytes, rows have that length and are
/// contiguous; `leading_bytes` is ignored. Without a swizzle, rows are divided into parts of 16
/// bytes: the parts of 8 rows are contiguous, and the next parts are `leading_bytes` away.
///
/// For an MN-major operand (a row-major b or a column-major a) with a swizzle, spans of that many
/// bytes hold some columns of one k-step. Spans of 8 k-steps are contiguous, the next 8 k-steps are
/// `stride_bytes` away, and the next columns `leading_bytes`.
std::uint64_t wgmma_descriptor(const void* shared, int leading_bytes, int stride_bytes,
                               int swizzle_bytes, detail::Site site = detail::Site::current());

/// `wgmma.fence`: required between accesses to registers and a wgmma that takes them as
/// accumulators. Its effect on shared memory is not emulated.
void wgmma_fence(detail::Site site = detail::Site::current());
/// `wgmma.commit_group`: closes the group of the wgmma instructions issued so far.
void wgmma_commit_group(detail::Site site = detail::Site::current());
/// `wgmma.wait_group`: waits until all groups but the last kGroups are done.
template <int kGroups>
void wgmma_wait_group(detail::Site site = detail::Site::current()) {
  static_assert(kGroups >= 0 && kGroups <= 7);
  detail_of_ptx::wgmma_wait_group(kGroups, site);
}

/// `wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32`: d = a * b, or d += a * b, with a [64][8],
/// b [8][kN] and d [64][kN], which is distributed over the warpgroup. In warp w of the four, with
/// group and place as above, a thread's d[i] is the element of d at
///
///     row 16 w + group + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 place + i % 2
///
/// d holds NaNs from this call to the wait. It must be the same array in all instructions that
/// accumulate into it, and must exist unmodified until then; the operands must be unmodified, too.
/// The arithmetic is that of mma_m16n8k8_tf32().
template <int kN>
void wgmma_m64k8_tf32(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b, bool accumulate,
                      detail::Site site = detail::Site::current()) {
  static_assert(kN >= 8 && kN <= 256 && kN % 8 == 0);
  detail_of_ptx::wgmma(FactorType::tf32, d, kN, a, b, false, false, accumulate, site);
}

/// The same with a in registers: a thread's a[i] is the element of a at
///
///     row 16 w + group + 8 * (i % 2), column place + 4 * (i / 2)
///
/// A wgmma_fence() is required between the last wait and such an instruction, because its registers
/// have been written in between; they must not change until the wait, like operands in shared
/// memory.
template <int kN>
void wgmma_m64k8_tf32(float (&d)[kN / 2], const std::uint32_t (&a)[4], std::uint64_t b,
                      bool accumulate, detail::Site site = detail::Site::current()) {
  static_assert(kN >= 8 && kN <= 256 && kN % 8 == 0);
  detail_of_ptx::wgmma(FactorType::tf32, d, kN, a, b, accumulate, site);
}

/// `wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16`: the same with a [64][16] and b [16][kN] in
/// fp16. Both are K-major, but b is row-major with kRowMajorB, and a column-major with
/// kColumnMajorA: the "transpose" bits of the instruction.
template <int kN, bool kRowMajorB = false, bool kColumnMajorA = false>
void wgmma_m64k16_f16(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b, bool accumulate,
                      detail::Site site = detail::Site::current()) {
  static_assert(kN >= 8 && kN <= 256 && kN % 8 == 0);
  detail_of_ptx::wgmma(FactorType::f16, d, kN, a, b, kColumnMajorA, kRowMajorB, accumulate, site);
}
/// `...f32.bf16.bf16`: in bf16.
template <int kN, bool kRowMajorB = false, bool kColumnMajorA = false>
void wgmma_m64k16_bf16(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b, bool accumulate,
                       detail::Site site = detail::Site::current()) {
  static_assert(kN >= 8 && kN <= 256 && kN % 8 == 0);
  detail_of_ptx::wgmma(FactorType::bf16, d, kN, a, b, kColumnMajorA, kRowMajorB, accumulate, site);
}

/// `wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3`: the same with a [64][32] and b [32][kN]
/// in FP8, both K-major. The arithmetic is the hardware's, which is less accurate than FP32: all
/// products and the old accumulator are truncated after 13 fraction bits relative to the largest
/// exponent among them (for a product, the sum of its operands' exponents) and added as integers;
/// the sum keeps 13 fraction bits.
template <int kN>
void wgmma_m64k32_e4m3(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b, bool accumulate,
                       detail::Site site = detail::Site::current()) {
  static_assert(kN >= 8 && kN <= 256 && kN % 8 == 0);
  detail_of_ptx::wgmma(FactorType::e4m3, d, kN, a, b, false, false, accumulate, site);
}

/// `setmaxnreg`: has no effect, because registers are not counted.
template <int kRegisters>
void setmaxnreg_inc(detail::Site site = detail::Site::current()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
  detail_of_ptx::setmaxnreg(site);
}
template <int kRegisters>
void setmaxnreg_dec(detail::Site site = detail::Site::current()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
  detail_of_ptx::setmaxnreg(site);
}

}  // namespace cuda_on_cpu::ptx
