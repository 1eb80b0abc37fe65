/// @file
/// @brief The functions that the compiler's instrumentation calls: -fsanitize=thread and
/// -fsanitize-coverage=trace-pc. The names are those of the sanitizers' own libraries, which are
/// not linked.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "state.hpp"

namespace {

using cuda_on_cpu::microscope::Block;
using cuda_on_cpu::microscope::Operation;
using cuda_on_cpu::microscope::State;

/// Calls `tell(state, block)` if an observed kernel runs.
template <class Tell>
void in_kernel(Tell tell) {
  State* const state = State::active();
  if (state == nullptr) return;
  if (Block* const block = State::running()) tell(*state, *block);
}

void access(Operation operation, const void* address, std::size_t bytes, const void* pc) {
  in_kernel([&](State& state, Block& block) {
    state.access(block, operation, reinterpret_cast<std::uintptr_t>(address), bytes,
                 reinterpret_cast<std::uintptr_t>(pc));
  });
}

void wrote(const void* address, std::size_t bytes) {
  in_kernel([&](State& state, Block& block) {
    state.wrote(block, reinterpret_cast<std::uintptr_t>(address), bytes);
  });
}

}  // namespace

#define PC __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

void __tsan_func_entry(void* call) {
  in_kernel([&](State& state, Block& block) {
    state.called(block, reinterpret_cast<std::uintptr_t>(call));
  });
}
void __tsan_func_exit() {
  const void* const pc = PC;
  in_kernel([&](State& state, Block& block) {
    state.returned(block, reinterpret_cast<std::uintptr_t>(pc));
  });
}
void __sanitizer_cov_trace_pc() {
  const void* const pc = PC;
  in_kernel(
      [&](State&, Block& block) { State::entered(block, reinterpret_cast<std::uintptr_t>(pc)); });
}

#define PLAIN_ACCESS(bytes)                                                                 \
  void __tsan_read##bytes(void* address) { access(Operation::load, address, bytes, PC); }   \
  void __tsan_write##bytes(void* address) { access(Operation::store, address, bytes, PC); } \
  void __tsan_unaligned_read##bytes(void* address) {                                        \
    access(Operation::load, address, bytes, PC);                                            \
  }                                                                                         \
  void __tsan_unaligned_write##bytes(void* address) {                                       \
    access(Operation::store, address, bytes, PC);                                           \
  }
PLAIN_ACCESS(1)
PLAIN_ACCESS(2)
PLAIN_ACCESS(4)
PLAIN_ACCESS(8)
PLAIN_ACCESS(16)
#undef PLAIN_ACCESS

void __tsan_read_range(void* address, std::size_t bytes) {
  access(Operation::load, address, bytes, PC);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  access(Operation::store, address, bytes, PC);
}

// Calls of these functions in kernels: their bytes are recorded as written, but not counted.
// (Unoptimised code also copies structs this way, after it has reported them.)
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  wrote(to, bytes);
  return std::memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  wrote(to, bytes);
  return std::memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int byte, std::size_t bytes) {
  wrote(to, bytes);
  return std::memset(to, byte, bytes);
}

// Called before and after each of CUDA's atomic functions (atomics.hpp).
void cuda_on_cpu_atomic_begins(const void* address, std::size_t bytes) {
  const void* const pc = PC;
  in_kernel([&](State& state, Block& block) {
    state.atomic_begins(block, reinterpret_cast<std::uintptr_t>(address), bytes,
                        reinterpret_cast<std::uintptr_t>(pc));
  });
}
void cuda_on_cpu_atomic_ended() {
  in_kernel([&](State&, Block& block) { State::atomic_ended(block); });
}

// The CPU's atomics, which implement CUDA's; host code in a kernel's file may also use them.
#define ATOMICS(bits, T)                                                                    \
  T __tsan_atomic##bits##_load(const volatile T* a, int) {                                  \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int) {                               \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int) {                               \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int) {                              \
    return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int) {                              \
    return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int) {                              \
    return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int) {                               \
    return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST);                                       \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int) {                              \
    return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* c, T v, int, int) {   \
    return __atomic_compare_exchange_n(a, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* c, T v, int, int) {     \
    return __atomic_compare_exchange_n(a, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }
ATOMICS(8, std::uint8_t)
ATOMICS(16, std::uint16_t)
ATOMICS(32, std::uint32_t)
ATOMICS(64, std::uint64_t)
#undef ATOMICS
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"
