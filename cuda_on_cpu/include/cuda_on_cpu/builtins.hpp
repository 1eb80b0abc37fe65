/// @file
/// @brief The built-ins of a kernel: indices, barriers, warp functions, fences, dynamic shared
/// memory.
///
/// Each barrier and warp function takes its call site as a hidden last argument, so that reports
/// can name source lines.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <cuda_on_cpu/vector_types.hpp>
#include <limits>
#include <source_location>
#include <type_traits>

namespace cuda_on_cpu {

/// threadIdx and similar variables: readable like a uint3, but not assignable.
struct BuiltinIndex {
  const unsigned x = 0, y = 0, z = 0;
  constexpr operator uint3() const { return {x, y, z}; }
  constexpr operator dim3() const { return {x, y, z}; }
};

// constinit avoids the check for a dynamic initializer at each access; initial-exec avoids a call
// in shared objects.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local BuiltinIndex threadIdx;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local BuiltinIndex blockIdx;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local BuiltinIndex blockDim;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local BuiltinIndex gridDim;
inline constexpr int warpSize = 32;

/// This block's dynamic shared memory, aligned to 1024 bytes.
void* dynamic_shared_memory();

namespace detail {

using Site = std::source_location;

enum class BarrierKind : std::uint8_t { sync, count, all, any };

/// Waits for all threads of the block and returns the reduction of `predicate` selected by `kind`.
int block_barrier(BarrierKind kind, bool predicate, const Site& site);

/// The warp functions at which lanes meet.
enum class WarpFunction : std::uint8_t {
  sync,
  shuffle,
  vote,
  match,
  reduce,
  ldmatrix_x1,
  ldmatrix_x2,
  ldmatrix_x4,
  ldmatrix_x2_trans,
  ldmatrix_x4_trans,
  stmatrix_x4_trans,
  mma_m16n8k8_tf32,
  mma_m16n8k16_f16,
  mma_m16n8k16_bf16
};

constexpr unsigned kFullWarp = 0xffffffffu;

/// The operands of the lanes that met in a warp function.
struct WarpValues {
  std::uint64_t value[32];
  unsigned lanes;    ///< that took part
  unsigned readers;  ///< lanes that have not yet read them
};

/// Waits for the lanes in `mask` that have not exited; they must call the same function with the
/// same mask.
WarpValues& warp_meeting(WarpFunction function, unsigned mask, std::uint64_t value,
                         const Site& site);

/// One lane's view of a meeting; the values live until its last reader is gone.
class WarpMeeting {
 public:
  WarpMeeting(WarpFunction function, unsigned mask, std::uint64_t value, const Site& site)
      : values_(warp_meeting(function, mask, value, site)) {}
  ~WarpMeeting() { --values_.readers; }
  WarpMeeting(const WarpMeeting&) = delete;
  WarpMeeting& operator=(const WarpMeeting&) = delete;

  unsigned lanes() const { return values_.lanes; }
  /// Whether the calling lane is the first to leave. All other lanes are then still suspended in
  /// the meeting.
  bool is_first() const {
    return values_.readers == static_cast<unsigned>(std::popcount(values_.lanes));
  }
  /// The operand of `lane`; all bits set (a NaN, for floats) if it did not take part.
  std::uint64_t of(unsigned lane) const {
    return values_.lanes >> lane & 1u ? values_.value[lane] : ~std::uint64_t{0};
  }
  template <class Predicate>
  unsigned lanes_where(Predicate predicate) const {
    unsigned found = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((values_.lanes >> lane & 1u) && predicate(values_.value[lane])) found |= 1u << lane;
    }
    return found;
  }

 private:
  WarpValues& values_;
};

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(std::is_arithmetic_v<T>, "warp functions take integers, float or double");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Index of the calling thread in its warp.
unsigned lane();

/// Waits for all threads of a grid that was launched cooperatively.
void grid_barrier(const Site& site);
bool grid_is_cooperative();

/// Yields to other threads and blocks.
void yield_thread(const Site& site);
/// Reports that a thread no longer waits for other blocks, which counts as progress for the
/// deadlock detection.
void note_wait_ended();

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const Site& site) {
  const WarpMeeting meeting(WarpFunction::shuffle, mask, to_bits(value), site);
  return from_bits<T>(meeting.of(source));
}

/// Reduces the operands of the lanes, in lane order.
template <class T, class Fold>
T reduce(unsigned mask, T value, Fold fold, const Site& site) {
  static_assert(std::is_integral_v<T>, "__reduce_*_sync takes integers");
  const WarpMeeting meeting(WarpFunction::reduce, mask, to_bits(value), site);
  bool first = true;
  T result{};
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(meeting.lanes() >> lane & 1u)) continue;
    const T other = from_bits<T>(meeting.of(lane));
    result = first ? other : static_cast<T>(fold(result, other));
    first = false;
  }
  return result;
}

}  // namespace detail

// --- Block barriers

inline void __syncthreads(detail::Site site = detail::Site::current()) {
  detail::block_barrier(detail::BarrierKind::sync, false, site);
}
inline int __syncthreads_count(int predicate, detail::Site site = detail::Site::current()) {
  return detail::block_barrier(detail::BarrierKind::count, predicate != 0, site);
}
inline int __syncthreads_and(int predicate, detail::Site site = detail::Site::current()) {
  return detail::block_barrier(detail::BarrierKind::all, predicate != 0, site);
}
inline int __syncthreads_or(int predicate, detail::Site site = detail::Site::current()) {
  return detail::block_barrier(detail::BarrierKind::any, predicate != 0, site);
}

// --- Warp functions

inline void __syncwarp(unsigned mask = detail::kFullWarp,
                       detail::Site site = detail::Site::current()) {
  const detail::WarpMeeting meeting(detail::WarpFunction::sync, mask, 0, site);
}

/// The value of the lane `source`, counted from the start of this lane's segment of `width` lanes.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              detail::Site site = detail::Site::current()) {
  const unsigned segment = detail::lane() & ~static_cast<unsigned>(width - 1);
  const unsigned offset = static_cast<unsigned>(source) & static_cast<unsigned>(width - 1);
  return detail::shuffle(mask, value, segment + offset, site);
}
/// The value of the lane `delta` below, or the calling lane's own value at the start of the
/// segment.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 detail::Site site = detail::Site::current()) {
  const unsigned offset = detail::lane() & static_cast<unsigned>(width - 1);
  return detail::shuffle(mask, value, detail::lane() - (delta <= offset ? delta : 0), site);
}
/// The value of the lane `delta` above, or the calling lane's own value at the end of the segment.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   detail::Site site = detail::Site::current()) {
  const unsigned offset = detail::lane() & static_cast<unsigned>(width - 1);
  const bool inside = delta < static_cast<unsigned>(width) - offset;
  return detail::shuffle(mask, value, detail::lane() + (inside ? delta : 0), site);
}
/// The value of lane `this ^ lane_mask`; lanes of higher segments cannot be read.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  detail::Site site = detail::Site::current()) {
  const unsigned source = detail::lane() ^ static_cast<unsigned>(lane_mask);
  const unsigned segment_end =
      (detail::lane() & ~static_cast<unsigned>(width - 1)) + static_cast<unsigned>(width);
  return detail::shuffle(mask, value, source < segment_end ? source : detail::lane(), site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              detail::Site site = detail::Site::current()) {
  const detail::WarpMeeting meeting(detail::WarpFunction::vote, mask, predicate != 0, site);
  return meeting.lanes_where([](std::uint64_t v) { return v != 0; });
}
inline int __any_sync(unsigned mask, int predicate, detail::Site site = detail::Site::current()) {
  return __ballot_sync(mask, predicate, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, detail::Site site = detail::Site::current()) {
  return __ballot_sync(mask, !predicate, site) == 0;
}
/// The mask of the calling lane only: emulated threads run one after another, and CUDA guarantees
/// no more.
inline unsigned __activemask() { return 1u << detail::lane(); }

template <class T>
unsigned __match_any_sync(unsigned mask, T value, detail::Site site = detail::Site::current()) {
  const std::uint64_t mine = detail::to_bits(value);
  const detail::WarpMeeting meeting(detail::WarpFunction::match, mask, mine, site);
  return meeting.lanes_where([mine](std::uint64_t v) { return v == mine; });
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* predicate,
                          detail::Site site = detail::Site::current()) {
  const std::uint64_t mine = detail::to_bits(value);
  const detail::WarpMeeting meeting(detail::WarpFunction::match, mask, mine, site);
  *predicate =
      meeting.lanes_where([mine](std::uint64_t v) { return v == mine; }) == meeting.lanes();
  return *predicate ? meeting.lanes() : 0;
}

template <class T>
T __reduce_add_sync(unsigned mask, T value, detail::Site site = detail::Site::current()) {
  return detail::reduce(
      mask, value, [](T a, T b) { return a + b; }, site);
}
template <class T>
T __reduce_min_sync(unsigned mask, T value, detail::Site site = detail::Site::current()) {
  return detail::reduce(
      mask, value, [](T a, T b) { return a < b ? a : b; }, site);
}
template <class T>
T __reduce_max_sync(unsigned mask, T value, detail::Site site = detail::Site::current()) {
  return detail::reduce(
      mask, value, [](T a, T b) { return a < b ? b : a; }, site);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value,
                                  detail::Site site = detail::Site::current()) {
  return detail::reduce(
      mask, value, [](unsigned a, unsigned b) { return a & b; }, site);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value,
                                 detail::Site site = detail::Site::current()) {
  return detail::reduce(
      mask, value, [](unsigned a, unsigned b) { return a | b; }, site);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value,
                                  detail::Site site = detail::Site::current()) {
  return detail::reduce(
      mask, value, [](unsigned a, unsigned b) { return a ^ b; }, site);
}

// --- Waiting for other blocks, fences, traps, clocks

/// Waits until `predicate()` holds and lets the other threads and blocks run meanwhile: the means
/// for a block to wait for another. If all blocks wait forever, a deadlock is reported.
template <class Predicate>
void wait_until(Predicate predicate, detail::Site site = detail::Site::current()) {
  if (predicate()) return;
  do {
    detail::yield_thread(site);
  } while (!predicate());
  detail::note_wait_ended();
}
/// Lets the other threads and blocks run, once.
inline void __nanosleep(unsigned /*nanoseconds*/, detail::Site site = detail::Site::current()) {
  detail::yield_thread(site);
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/// Ends the kernel with cudaErrorLaunchFailure.
[[noreturn]] void __trap(detail::Site site = detail::Site::current());

/// Ticks of the host's clock: they order events, but are no measure of GPU time.
long long clock64();
inline int clock() { return static_cast<int>(clock64()); }

}  // namespace cuda_on_cpu
