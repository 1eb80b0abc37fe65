/// @file
/// @brief The kernels under test. They are valid CUDA, and so is this header.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

// --- indices.cu
/// Writes the index of each thread of the grid, and counts how often it ran.
__global__ void record_indices(unsigned* grid_rank, unsigned* runs);
__global__ void store_arguments(char c, double d, float3 v, double* out);
/// Appends each thread's index to `order`, in the order in which the threads run.
__global__ void record_order(unsigned* count, unsigned* order);
/// Each thread reads the value that its neighbour wrote; the barrier in between is optional.
template <bool kWithBarrier>
__global__ void rotate_through_shared(int* out);
__global__ void unequal_work(unsigned long long* sum, int rounds);

// --- barriers.cu
__global__ void reduce_tree(const int* in, int* out);
__global__ void barrier_votes(const int* predicate, int* count, int* all, int* any);
__global__ void barriers_at_two_lines();
__global__ void barrier_after_return();
__global__ void barrier_in_loop_of_different_length();
__global__ void destroy_locals_in_failure(int* destroyed);
__global__ void recurse_deeply(int* out, int depth);
__global__ void call_trap();
__global__ void check_assertion(int value);
__global__ void print_hello();

// --- warps.cu
__global__ void shuffles(int* up, int* down, int* exchanged, int* broadcast, int width);
template <class T>
__global__ void reverse_lanes(const T* in, T* out);
__global__ void votes(const int* predicate, unsigned* ballot, int* any, int* all);
__global__ void matches(const int* value, unsigned* any, unsigned* all);
__global__ void shuffle_from_absent_lane(float* out);
__global__ void half_warps(int* out);
__global__ void shuffle_after_exit(int* out);
__global__ void lane_outside_its_mask();
__global__ void lane_missing_from_meeting();
template <bool kWithSync>
__global__ void rotate_in_warp(int* out);
__global__ void count_with_active_mask(unsigned* count);

// --- static_shared.cu, static_shared_more.cu
/// Counts the bytes of fresh shared memory that are not 0xFF, then overwrites all of it.
__global__ void static_shared_is_fresh(unsigned* stale);
template <int kFloats>
__global__ void template_shared_is_fresh(unsigned* stale);
__global__ void inline_shared_is_fresh(unsigned* stale);
__global__ void inline_shared_is_fresh_elsewhere(unsigned* stale);
__global__ void other_file_shared_is_fresh(unsigned* stale);
__global__ void aligned_shared(unsigned long long* misalignment);
/// Writes to a byte of one of three variables of 17, 32 and 12 bytes, or after it.
__global__ void write_static_shared(int variable, int byte);

// --- memory.cu
__global__ void write_int(int* where, int value);
__global__ void write_byte(char* where, char value);
__global__ void read_int(const int* from, int* out);
__global__ void scale_by_constants(const float* in, float* out);
/// Writes the constants that scale_by_constants() reads.
cudaError_t set_scales(const float* values, size_t bytes, size_t offset);
/// Reads the device variable that add_to_counter() increments; it starts at 5.
cudaError_t read_counter(int* value, size_t bytes);
__global__ void add_to_counter();

// --- async_copies.cu
template <bool kWithWait>
__global__ void copy_asynchronously(const float* in, float* out);
__global__ void zero_filled_copy(const float* in, float* out);
__global__ void two_batches(const float* in, float* first, float* second);
__global__ void misaligned_copy(const float* in);
/// Copies 16 bytes, of which the last `zero_filled` are not read.
__global__ void copy_behind(const float* in, int first, int zero_filled);
/// The first `copiers` threads copy a float each, and all wait.
__global__ void copy_by_some_threads(const float* in, float* out, int copiers);

// --- mbarriers.cu
/// A consumer warp reads stages of a ring that a producer warp fills, and reverses each 32 numbers.
__global__ void pass_through_ring(const int* in, int* out, int rounds);
__global__ void wait_in_vain(int arrivals);
__global__ void wait_for_phase_before(int* done);
__global__ void misuse_barrier(int how);
__global__ void meet_in_halves(int* out);
__global__ void meet_in_vain();
/// The second warp's threads copy 4 bytes each and exit; their copies arrive at a barrier for them.
/// With `how` 0 the first warp waits for it, otherwise it does not; 2: one thread arrives twice.
__global__ void copies_arrive(const int* in, int* early, int* out, int how);
/// A bulk load by TMA. `shift` misaligns the source.
__global__ void bulk_copy(const int* in, int* early, int* out, int shift);

// --- tensor_loads.cu
struct Coordinates {
  int of[5];
};
template <int kRank>
__global__ void load_box(CUtensorMap map, Coordinates at, int bytes, int floats, float* out);
template <int kRank>
__global__ void load_columns(CUtensorMap map, Coordinates at, Coordinates offset, int bytes,
                             int floats, float* out);
enum class BulkStore { right, no_wait, others_wait, overwritten };
/// Stores a box of floats 1, 2 ... that are contiguous in shared memory.
__global__ void store_to_array(CUtensorMap map, Coordinates at, int floats, BulkStore how);
/// Loads a box of 128 floats and makes mistake number `how`.
__global__ void misuse_load(CUtensorMap map, int how, float* out);

// --- clusters.cu
__global__ void cluster_ranks(unsigned* rank, unsigned* blocks);
/// In each iteration a block publishes its number, and records the number of its neighbour in the
/// cluster.
__global__ void meet_in_clusters(int* flags, int* seen, int rounds);
enum class ClusterMisuse {
  none,
  wait_first,
  arrives_twice,
  early_arrival,
  ended,
  rank_outside,
  in_vain
};
/// Two blocks of one warp: one arrives at a barrier of the other, optionally with a mistake.
__global__ void misuse_cluster(ClusterMisuse how);
enum class ShareMisuse { none, mask_outside, empty_mask, no_first_meeting, no_last_meeting };
/// In each iteration each block of a cluster loads 32 floats for all blocks, and all store them.
__global__ void share_boxes(CUtensorMap map, int rounds, float* out, ShareMisuse how);
/// Two blocks, one of which does not wait for the data that the other loads for both.
__global__ void share_with_one_that_ends(CUtensorMap map, bool waits);
enum class ExchangeMisuse {
  none,
  few_expected,
  no_first_meeting,
  unaligned,
  outside,
  barrier_elsewhere,
  ended,
  no_wait
};
/// In each iteration each thread of a cluster stores four numbers to each of its blocks, and sums
/// the received numbers in rank order.
__global__ void exchange_in_clusters(int rounds, float4* out, ExchangeMisuse how);
/// Like pass_backwards(), followed by a barrier of the cluster.
__global__ void pass_backwards_in_clusters(unsigned* next);
__global__ void poll_in_clusters_for_ever(unsigned* flag);

// --- wgmma.cu
/// An operand in shared memory; all sizes in bytes.
struct WgmmaFactor {
  int begin, leading, stride, swizzle;
};
enum class WgmmaNumbers { tf32, f16, bf16, e4m3 };
/// d += a * b, or d = a * b, in each warpgroup's own d [64][kN]; `steps` times 32 bytes along k.
template <int kN, WgmmaNumbers kType>
__global__ void multiply_in_warpgroup(const float* image, int floats, WgmmaFactor a, WgmmaFactor b,
                                      int steps, bool accumulate, float* d);
enum class WgmmaMisuse {
  none,
  no_fence,
  no_commit,
  no_wait,
  weak_wait,
  late_wait,
  overwritten_factor,
  touched_sums,
  other_factor,
  few_threads,
  beyond_shared
};
/// d [64][64] += a * b in TF32, `steps` times 8 along k, with a in registers, from unswizzled
/// shared memory: [64][32]. Optionally makes a mistake.
enum class RegistersMisuse { none, no_fence, overwritten };
__global__ void multiply_registers(const float* image, int floats, WgmmaFactor b, int steps,
                                   RegistersMisuse how, float* d);
__global__ void misuse_wgmma(const float* image, WgmmaMisuse how, float* out);

// --- ptx.cu
__global__ void load_matrices(const unsigned* in, unsigned* x1, unsigned* x2, unsigned* x4);
/// The same, each matrix transposed.
__global__ void load_transposed_matrices(const unsigned* in, unsigned* x2, unsigned* x4);
__global__ void load_misaligned_matrix();
__global__ void store_transposed_matrices(const unsigned* in, unsigned* out);
__global__ void store_misaligned_matrix();
/// d += a * b with a [16][8] and b [8][8], as bits, and d [16][8].
__global__ void multiply_matrices(const unsigned* a, const unsigned* b, float* d);
/// d += a * b with a [16][16] and b [16][8] of fp16 or bf16, as bits, and d [16][8].
__global__ void multiply_half_matrices(const unsigned short* a, const unsigned short* b,
                                       bool bfloat, float* d);
__global__ void multiply_in_part_of_a_warp();

// --- atomics.cu
__global__ void add_from_all(int* i, unsigned* u, unsigned long long* ull, float* f, double* d);
__global__ void other_atomics(int* min, int* max, unsigned* bits, unsigned* inc, unsigned* dec,
                              int* cas);
__global__ void math_functions(float* f, int* i, unsigned* u);

// --- naive_conv.cu
/// One thread per output: y[k][p][q] = sum over c, r, s of x[c][p + r][q + s] * w[k][c][r][s].
__global__ void naive_conv(const float* x, const float* w, float* y, int channels, int height,
                           int width, int filter);
__global__ void many_barriers(float* y, int rounds);
