/// @file host_message.hpp
/// @brief A few numbers that kernels tell the host in the middle of a run.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <vector>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Where a message is left: pinned memory of the host, and an event behind what writes it. Both
/// take longer to make than most kernels run, so they are kept for the next message.
struct MessageSlot {
  static constexpr std::size_t kBytes = 64;  ///< Of the memory.

  void* memory = nullptr;         ///< Kernels write to it as to their own.
  cudaEvent_t written = nullptr;  ///< Without a time.
};

/// The slots that no message uses. They stay until the program ends: CUDA may be gone before them.
class MessageSlots {
 public:
  /// Those of the process.
  static MessageSlots& instance() {
    static auto* const slots = new MessageSlots;
    return *slots;
  }

  /// One that nobody else uses.
  MessageSlot take() {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) return made();
    const MessageSlot slot = unused_.back();
    unused_.pop_back();
    return slot;
  }
  /// Nothing writes to it any more.
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
  std::size_t count_ = 0;  ///< Of all slots, in use or not.
};

/// A message in the memory of the host, as kernels see it.
template <class T>
struct Letter {
  T value;                ///< What is told.
  std::uint32_t is_sent;  ///< 1 when the value is there.

  /// One thread of a kernel tells it. The host need not wait for the kernel's end.
  __device__ void send(const T& told) {
    value = told;
    __threadfence_system();  // the host sees the value before it sees that it is there
    *static_cast<volatile std::uint32_t*>(&is_sent) = 1;
  }
};

/// A number, or a few, that a kernel finds out and the host needs before the run can go on.
///
///     HostMessage<Count> count;
///     launch(count_sites, ..., count.letter());  // a thread of it calls letter->send(...)
///     count.expect();
///     launch(what_needs_no_count, ...);          // runs while the host waits
///     const Count found = count.received();      // waits for the letter, and for no more
///
/// A copy to memory of the host that is not pinned goes through a buffer of the driver's, can only
/// start when everything before has ended, and takes as long as a small kernel. Here, there is no
/// copy, who waits need not be the last in the stream, and a letter arrives before its kernel ends.
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
    // Where an exception came between, a kernel may write yet: nobody gets the slot again.
    if (is_received_) MessageSlots::instance().give_back(slot_);
  }

  /// Where to write it, on the device.
  Letter<T>* letter() const { return static_cast<Letter<T>*>(slot_.memory); }
  /// To be called behind the launch, or the copy to letter()->value, that writes it.
  void expect() const { check(cudaEventRecord(slot_.written, current_stream())); }
  /// Waits for the letter, or for the end of what was launched before expect().
  T received() {
    const volatile std::uint32_t* const is_sent = &letter()->is_sent;
    // The event ends the wait where a copy wrote the value, and where a kernel failed.
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
  static constexpr int kLooksBetweenQueries = 100;  ///< A query takes as long as many looks.

  MessageSlot slot_;
  bool is_received_ = false;
};

}  // namespace convladder::BACKEND
