/// @file host_message.hpp
/// @brief A few numbers that kernels send to the host during a run.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <vector>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// The place of a message: pinned host memory, and an event after the operation that writes it.
/// Both take longer to create than most kernels run, so they are kept for the next message.
struct MessageSlot {
  static constexpr std::size_t kBytes = 64;  ///< Of the memory.

  void* memory = nullptr;         ///< The device's address of the same memory.
  cudaEvent_t written = nullptr;  ///< Without timing.
};

/// The slots that no message uses. They are kept until the program ends: CUDA may be shut down
/// before them.
class MessageSlots {
 public:
  /// The free slots of the process.
  static MessageSlots& instance() {
    static auto* const slots = new MessageSlots;
    return *slots;
  }

  /// A slot that no other message uses.
  MessageSlot take() {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) return made();
    const MessageSlot slot = unused_.back();
    unused_.pop_back();
    return slot;
  }
  /// No operation writes to the slot any more.
  void give_back(const MessageSlot& slot) noexcept {
    const std::lock_guard lock(mutex_);
    unused_.push_back(slot);  // there is room: see made()
  }

 private:
  MessageSlot made() {
    unused_.reserve(++count_);
    MessageSlot slot;
    check(cudaHostAlloc(&slot.memory, MessageSlot::kBytes, cudaHostAllocPortable));
    check(cudaEventCreateWithFlags(&slot.written, cudaEventDisableTiming));
    return slot;
  }

  std::mutex mutex_;
  std::vector<MessageSlot> unused_;
  std::size_t count_ = 0;  ///< The number of slots, used or free.
};

/// A message in host memory, as kernels access it.
template <class T>
struct Letter {
  T value;                ///< The content.
  std::uint32_t is_sent;  ///< 1 when the value is present.

  /// Called by one thread of a kernel. The host need not wait for the kernel's end.
  __device__ void send(const T& told) {
    value = told;
    __threadfence_system();  // the value must be visible to the host before the flag
    *static_cast<volatile std::uint32_t*>(&is_sent) = 1;
  }
};

/// A number, or a few numbers, that a kernel computes and the host needs before the run can
/// continue.
///
///     HostMessage<Count> count;
///     launch(count_sites, ..., count.letter());  // a thread of it calls letter->send(...)
///     count.expect();
///     launch(what_needs_no_count, ...);          // runs while the host waits
///     const Count found = count.received();      // waits for the letter, and for no more
///
/// A copy to pageable host memory uses a buffer of the driver, can start only when all earlier work
/// has ended, and takes as long as a small kernel. A message needs no copy, is not ordered behind
/// other work in the stream, and arrives before its kernel ends.
///
/// It is all zeros until it is written. A run that waits for a message cannot be recorded in a CUDA
/// graph.
template <class T>
class HostMessage {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(Letter<T>) <= MessageSlot::kBytes);

 public:
  HostMessage() : slot_(MessageSlots::instance().take()) { *letter() = Letter<T>{}; }
  HostMessage(const HostMessage&) = delete;
  HostMessage& operator=(const HostMessage&) = delete;
  ~HostMessage() {
    // After an exception a kernel may still write to the slot, so it is not reused.
    if (is_received_) MessageSlots::instance().give_back(slot_);
  }

  /// The device address to write to.
  Letter<T>* letter() const { return static_cast<Letter<T>*>(slot_.memory); }
  /// Must be called after the launch, or the copy to letter()->value, that writes it.
  void expect() const { check(cudaEventRecord(slot_.written, current_stream())); }
  /// Waits for the message, or for the end of the work launched before expect().
  T received() {
    const volatile std::uint32_t* const is_sent = &letter()->is_sent;
    // The event ends the wait if a copy wrote the value, or if a kernel failed.
    for (cudaError_t state = cudaErrorNotReady; *is_sent == 0 && state != cudaSuccess;) {
      for (int i = 0; i < kLooksBetweenQueries && *is_sent == 0; ++i) {
      }
      state = cudaEventQuery(slot_.written);
      if (state != cudaErrorNotReady) check(state);
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // the value is read after is_sent
    is_received_ = true;
    return letter()->value;
  }

 private:
  static constexpr int kLooksBetweenQueries = 100;  ///< A query of the event takes as long as many
                                                    ///< reads of the flag.

  MessageSlot slot_;
  bool is_received_ = false;
};

}  // namespace convladder::BACKEND
