/// @file
/// @brief The `mbarrier` objects of one block, and the loads and copies that report to them.
#pragma once

#include <array>
#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>
#include <deque>
#include <string>
#include <vector>

#include "async_copies.hpp"
#include "tensor_load.hpp"

namespace cuda_on_cpu {

/// Four numbers on their way to the shared memory of a block of the cluster (`st.async`).
struct AsyncStore {
  unsigned char* to;
  std::array<unsigned char, 16> bytes;
  detail::Site site;        ///< where it was issued
  std::uint64_t block = 0;  ///< by whom: index in the grid, and in the block
  unsigned thread = 0;
};

/// A barrier's phase is complete when as many threads have arrived as it was initialized for, and
/// as many bytes have been copied as they said to expect.
///
/// Loads land as late as they may: when a phase that somebody waits for lacks nothing but their
/// bytes. So do the asynchronous copies of threads that let these arrive in their place, and the
/// stores of other blocks, which count for the phase that they are issued in.
class Mbarrier {
 public:
  Mbarrier(std::uint64_t* object, unsigned arrivals, const detail::Site& site);

  std::uint64_t* object() const { return object_; }
  const detail::Site& site() const { return site_; }  ///< where it was initialized
  /// Whether the object in shared memory still holds what was stored there last.
  bool is_intact() const { return *object_ == image_; }
  /// Whether the phase before the present one had this parity: then who waits for it may go on.
  bool has_passed(unsigned parity) const { return (phase_ & 1) != parity; }

  bool may_arrive() const { return lacking() > 0; }
  void arrive();
  /// An arrival when all copies that a thread has issued so far have landed.
  void arrive_with(AsyncCopies& copies);
  bool has_copies() const { return !copies_.empty(); }
  bool may_expect(std::int64_t bytes) const { return bytes >= 0 && expected_ + bytes < kMaxBytes; }
  void expect(std::int64_t bytes);
  void issue(const TensorLoad& load);
  bool has_loads() const { return !loads_.empty(); }
  const TensorLoad& first_load() const { return loads_.front(); }
  void issue(const AsyncStore& store);
  bool has_stores() const { return !stores_.empty(); }
  const AsyncStore& first_store() const { return stores_.front(); }

  std::vector<unsigned>& waiting() { return waiting_; }  ///< threads
  const std::vector<unsigned>& waiting() const { return waiting_; }
  /// Completes the phase if nothing is missing, or if only loads are and `wanted` says that
  /// somebody waits for them. Then true.
  bool try_complete(bool wanted);
  /// Whether loads bring more bytes than the phase expects, at no boundary between them, or stores
  /// do. That cannot end well.
  bool is_overrun() const {
    return lacking() == 0 && (expected_ > 0 || has_stores()) && loads_needed() == kTooMany;
  }
  /// "its phase lacks 1 of 2 arrivals and 64 of 128 bytes"
  std::string describe() const;

 private:
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 20;

  static constexpr int kTooMany = -1, kTooFew = -2;
  std::int64_t stored_bytes() const {
    return static_cast<std::int64_t>(stores_.size() * sizeof AsyncStore::bytes);
  }
  /// How many of the first loads bring, with all stores, just the expected bytes, or whether these
  /// are too many or too few.
  int loads_needed() const;
  /// Arrivals that nobody has promised.
  std::size_t lacking() const { return pending_ - copies_.size(); }
  void touch();

  /// An arrival to come: of the first `count` copies of a thread.
  struct Copies {
    AsyncCopies* of;
    std::uint64_t count;
  };

  std::uint64_t* object_;
  detail::Site site_;
  unsigned arrivals_;  ///< of each phase
  unsigned pending_;   ///< of this one
  std::int64_t expected_ = 0;
  std::uint64_t phase_ = 0;
  std::uint64_t image_;
  std::deque<TensorLoad> loads_;  ///< oldest first
  std::vector<AsyncStore> stores_;
  std::vector<Copies> copies_;
  std::vector<unsigned> waiting_;
};

}  // namespace cuda_on_cpu
