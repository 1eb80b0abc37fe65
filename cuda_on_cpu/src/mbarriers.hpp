/// @file
/// @brief The `mbarrier` objects of one block, and the loads and copies that arrive at them.
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

/// Four floats that are being stored to the shared memory of a block of the cluster (`st.async`).
struct AsyncStore {
  unsigned char* to;
  std::array<unsigned char, 16> bytes;
  detail::Site site;        ///< where it was issued
  std::uint64_t block = 0;  ///< the issuing thread: index in the grid, and in the block
  unsigned thread = 0;
};

/// A phase is complete when the expected number of threads has arrived and the expected number of
/// bytes has been copied.
///
/// Loads complete as late as possible: when a thread waits for a phase that lacks only their bytes.
/// The same holds for asynchronous copies that arrive in place of their threads, and for stores of
/// other blocks, which count for the phase in which they are issued.
class Mbarrier {
 public:
  Mbarrier(std::uint64_t* object, unsigned arrivals, const detail::Site& site);

  std::uint64_t* object() const { return object_; }
  const detail::Site& site() const { return site_; }  ///< where it was initialized
  /// Whether the object in shared memory is unmodified since the last operation.
  bool is_intact() const { return *object_ == image_; }
  /// Whether the phase before the current one had this parity: then a waiting thread continues.
  bool has_passed(unsigned parity) const { return (phase_ & 1) != parity; }

  bool may_arrive() const { return lacking() > 0; }
  void arrive();
  /// An arrival when all copies that a thread has issued so far are complete.
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
  /// Completes the phase if nothing is missing, or if only loads are missing and `wanted` says that
  /// a thread waits for them. Returns whether the phase was completed.
  bool try_complete(bool wanted);
  /// Whether loads, or stores, transfer more bytes than the phase expects, without a boundary
  /// between them at the expected number. The phase can then never complete.
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
  /// The number of leading loads that, together with all stores, transfer exactly the expected
  /// bytes; or that there are too many or too few bytes.
  int loads_needed() const;
  /// The arrivals of the phase that are missing and not promised by copies.
  std::size_t lacking() const { return pending_ - copies_.size(); }
  void touch();

  /// A future arrival: after the first `count` copies of a thread.
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
