#include "mbarriers.hpp"

#include <algorithm>

#include "watching.hpp"

namespace cuda_on_cpu {

Mbarrier::Mbarrier(std::uint64_t* object, unsigned arrivals, const detail::Site& site)
    : object_(object), site_(site), arrivals_(arrivals), pending_(arrivals), image_(arrivals) {
  touch();
}

/// Overwrites the object's bytes with a recognisable pattern.
void Mbarrier::touch() {
  image_ = image_ * 6364136223846793005u + 1442695040888963407u;
  *object_ = image_;
}

void Mbarrier::arrive() {
  --pending_;
  touch();
}

void Mbarrier::arrive_with(AsyncCopies& copies) {
  copies_.push_back({&copies, copies.issued()});
  touch();
}

void Mbarrier::expect(std::int64_t bytes) {
  expected_ += bytes;
  touch();
}

void Mbarrier::issue(const TensorLoad& load) { loads_.push_back(load); }

void Mbarrier::issue(const AsyncStore& store) { stores_.push_back(store); }

int Mbarrier::loads_needed() const {
  std::int64_t bytes = stored_bytes();
  int count = 0;
  for (const TensorLoad& load : loads_) {
    if (bytes >= expected_) break;
    bytes += static_cast<std::int64_t>(load.bytes());
    ++count;
  }
  return bytes == expected_ ? count : bytes > expected_ ? kTooMany : kTooFew;
}

bool Mbarrier::try_complete(bool wanted) {
  if (lacking() != 0 || ((expected_ != 0 || has_copies()) && !wanted)) return false;
  const int needed = loads_needed();
  if (needed < 0) return false;
  for (int i = 0; i < needed; ++i) {
    const TensorLoad& load = loads_.front();
    load.land();
    detail::tell_watcher(
        [&](inspect::Watcher& watcher) { watcher.copy_landed(load.to, load.extent()); });
    loads_.pop_front();
  }
  for (const AsyncStore& store : stores_) {
    std::ranges::copy(store.bytes, store.to);
    detail::tell_watcher(
        [&](inspect::Watcher& watcher) { watcher.copy_landed(store.to, store.bytes.size()); });
  }
  stores_.clear();
  for (const Copies& copies : copies_) copies.of->land_first(copies.count);
  copies_.clear();
  ++phase_;
  pending_ = arrivals_;
  expected_ = 0;
  touch();
  return true;
}

std::string Mbarrier::describe() const {
  std::int64_t bytes = 0;
  for (const TensorLoad& load : loads_) bytes += static_cast<std::int64_t>(load.bytes());
  return "the barrier initialized at " + std::string(site_.file_name()) + ":" +
         std::to_string(site_.line()) + ", in phase " + std::to_string(phase_) + ", lacks " +
         std::to_string(lacking()) + " of " + std::to_string(arrivals_) + " arrivals, expects " +
         std::to_string(expected_) + " bytes, and loads of " + std::to_string(bytes) + " bytes" +
         (has_stores() ? " and stores of " + std::to_string(stored_bytes()) + " bytes" : "") +
         " were issued";
}

}  // namespace cuda_on_cpu
