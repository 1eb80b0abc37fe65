/// @file host_message.hpp
/// @brief A few numbers that kernels tell the host in the middle of a run.
#pragma once

#include <mutex>
#include <type_traits>
#include <vector>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Where a message is left: pinned memory of the host, and an event behind what writes it. Both
/// take longer to make than most kernels run, so they are kept for the next message.
struct MessageSlot {
  static constexpr std::size_t kBytes = 64;  ///< Of the memory.

  void* memory = nullptr;      ///< Kernels write to it as to their own.
  cudaEvent_t sent = nullptr;  ///< Without a time.
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
    check(cudaEventCreateWithFlags(&slot.sent, cudaEventDisableTiming));
    return slot;
  }

  std::mutex mutex_;
  std::vector<MessageSlot> unused_;
  std::size_t count_ = 0;  ///< Of all slots, in use or not.
};

/// A number, or a few, that a kernel finds out and the host needs before the run can go on.
///
///     HostMessage<Count> count;
///     launch(count_sites, ..., count.place());   // a thread of it writes *place
///     count.send();
///     launch(what_needs_no_count, ...);          // runs while the host waits
///     const Count found = count.received();      // waits for count_sites, and for no more
///
/// A copy to memory of the host that is not pinned goes through a buffer of the driver's, can only
/// start when everything before has ended, and takes some 9 us on an H200. Here, there is no copy,
/// and who waits need not be the last in the stream.
///
/// It is all zeros until it is written. A run that waits for a message cannot be recorded in a CUDA
/// graph. For the default stream.
template <class T>
class HostMessage {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= MessageSlot::kBytes);

 public:
  HostMessage() : slot_(MessageSlots::instance().take()) { *place() = T{}; }
  HostMessage(const HostMessage&) = delete;
  HostMessage& operator=(const HostMessage&) = delete;
  ~HostMessage() {
    // Where an exception came between, a kernel may write yet: nobody gets the slot again.
    if (is_received_) MessageSlots::instance().give_back(slot_);
  }

  /// Where to write it, on the device.
  T* place() const { return static_cast<T*>(slot_.memory); }
  /// To be called behind the launch that writes it.
  void send() const { check(cudaEventRecord(slot_.sent, nullptr)); }
  /// Waits for what was launched before send().
  T received() {
    check(cudaEventSynchronize(slot_.sent));
    is_received_ = true;
    return *place();
  }

 private:
  MessageSlot slot_;
  bool is_received_ = false;
};

}  // namespace convladder::BACKEND
