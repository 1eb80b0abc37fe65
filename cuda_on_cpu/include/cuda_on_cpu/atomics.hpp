/// @file
/// @brief Atomic functions, implemented by relaxed atomics of the CPU, like CUDA's. All return the
/// old value.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

namespace cuda_on_cpu {
namespace detail {

/// Encloses each atomic, so that a watching tool counts one event for it, whatever instructions the
/// CPU uses.
#if defined(CUDA_ON_CPU_INSPECT)
extern "C" void cuda_on_cpu_atomic_begins(const void* address, std::size_t bytes);
extern "C" void cuda_on_cpu_atomic_ended();
class AtomicEvent {
 public:
  AtomicEvent(const void* address, std::size_t bytes) { cuda_on_cpu_atomic_begins(address, bytes); }
  ~AtomicEvent() { cuda_on_cpu_atomic_ended(); }
  AtomicEvent(const AtomicEvent&) = delete;
  AtomicEvent& operator=(const AtomicEvent&) = delete;
};
#define CUDA_ON_CPU_ATOMIC(address) const detail::AtomicEvent event(address, sizeof *(address))
#else
#define CUDA_ON_CPU_ATOMIC(address)
#endif

/// Replaces the value by `change(value)`.
template <class T, class Change>
T atomic_change(T* address, Change change) {
  CUDA_ON_CPU_ATOMIC(address);
  const std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  return old;
}

template <class T>
concept AtomicInteger =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;
template <class T>
concept AtomicNumber = AtomicInteger<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
concept AtomicOrdered = AtomicInteger<T> || std::is_same_v<T, long long>;

}  // namespace detail

// The operand is not deduced: atomicAdd(&u, 1) converts 1 like CUDA's overloads.

template <detail::AtomicNumber T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
  requires std::is_same_v<T, int> || std::is_same_v<T, unsigned>
T atomicSub(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return std::atomic_ref<T>(*address).fetch_sub(value, std::memory_order_relaxed);
}
template <detail::AtomicOrdered T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return detail::atomic_change(address, [=](T old) { return value < old ? value : old; });
}
template <detail::AtomicOrdered T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return detail::atomic_change(address, [=](T old) { return old < value ? value : old; });
}
template <class T>
  requires detail::AtomicInteger<T> || std::is_same_v<T, float>
T atomicExch(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
  requires detail::AtomicInteger<T> || std::is_same_v<T, unsigned short>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  std::atomic_ref<T>(*address).compare_exchange_strong(compare, value, std::memory_order_relaxed);
  return compare;
}
template <detail::AtomicInteger T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return std::atomic_ref<T>(*address).fetch_and(value, std::memory_order_relaxed);
}
template <detail::AtomicInteger T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
}
template <detail::AtomicInteger T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  CUDA_ON_CPU_ATOMIC(address);
  return std::atomic_ref<T>(*address).fetch_xor(value, std::memory_order_relaxed);
}
/// Counts up to `limit`, then starts again at 0.
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  CUDA_ON_CPU_ATOMIC(address);
  return detail::atomic_change(address, [=](unsigned old) { return old >= limit ? 0 : old + 1; });
}
/// Counts down to 0, then starts again at `limit`.
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  CUDA_ON_CPU_ATOMIC(address);
  return detail::atomic_change(
      address, [=](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}

// The scopes are equivalent in the emulator.
template <class T>
T atomicAdd_block(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}
template <class T>
T atomicAdd_system(T* address, std::type_identity_t<T> value) {
  return atomicAdd(address, value);
}

#undef CUDA_ON_CPU_ATOMIC

}  // namespace cuda_on_cpu
