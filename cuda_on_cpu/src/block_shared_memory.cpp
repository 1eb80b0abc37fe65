/// @file
/// @brief A block's shared memory as seen by instructions: addresses of 18 bits.
#include <cstdint>
#include <cuda_on_cpu/static_shared.hpp>
#include <functional>

#include "block_runner.hpp"
#include "model_device.hpp"
#include "static_shared_registry.hpp"

namespace cuda_on_cpu {

namespace {

// Dynamic shared memory comes first, after the part that the system reserves; static shared memory
// is last. Both keep their addresses modulo kSharedUnit, which determine the swizzle.
constexpr std::size_t kSharedUnit = 1024;
constexpr std::size_t kDynamicAt = model::kSharedReserved;
constexpr std::size_t kStaticAt = kDynamicAt + model::kMostSharedPerBlock + kSharedUnit;
constexpr std::size_t kSharedEnd = std::size_t{1} << 18;
static_assert(kDynamicAt % kSharedUnit == 0 && kStaticAt % kSharedUnit == 0);

std::size_t distance(const void* from, const void* to) {
  return static_cast<std::size_t>(static_cast<const unsigned char*>(to) -
                                  static_cast<const unsigned char*>(from));
}

/// Whether `size` bytes from `begin` on contain `bytes` bytes from `pointer` on.
bool holds(const void* begin, std::size_t size, const void* pointer, std::size_t bytes) {
  const std::less_equal<> is_not_above;
  const auto* const first = static_cast<const unsigned char*>(pointer);
  const auto* const from = static_cast<const unsigned char*>(begin);
  return is_not_above(from, first) && is_not_above(first, from + size) &&
         bytes <= distance(first, from + size);
}

}  // namespace

bool BlockRunner::in_shared(const void* pointer, std::size_t bytes) const {
  if (holds(shared_.data(), shared_.bytes(), pointer, bytes)) return true;
  const StaticSharedPlace place = find_static_shared(pointer);
  return place.begin != nullptr && holds(place.begin, place.bytes, pointer, bytes);
}

unsigned BlockRunner::shared_address(const void* pointer) {
  if (holds(shared_.data(), shared_.bytes(), pointer, 0)) {
    return static_cast<unsigned>(kDynamicAt + distance(shared_.data(), pointer));
  }
  const StaticSharedPlace place = find_static_shared(pointer);
  if (place.begin == nullptr) return ~0u;
  static_shared_ = place.begin - reinterpret_cast<std::uintptr_t>(place.begin) % kSharedUnit;
  const std::size_t address = kStaticAt + distance(static_shared_, pointer);
  return address < kSharedEnd ? static_cast<unsigned>(address) : ~0u;
}

void* BlockRunner::at_shared_address(unsigned address) const {
  if (address >= kStaticAt) {
    return static_shared_ == nullptr || address >= kSharedEnd
               ? nullptr
               : static_shared_ + (address - kStaticAt);
  }
  if (address < kDynamicAt || address - kDynamicAt >= shared_.bytes()) return nullptr;
  return static_cast<unsigned char*>(shared_.data()) + (address - kDynamicAt);
}

void* BlockRunner::in_block(const void* pointer, const BlockRunner& other) const {
  if (holds(shared_.data(), shared_.bytes(), pointer, 0)) {
    return static_cast<unsigned char*>(other.shared_.data()) + distance(shared_.data(), pointer);
  }
  for (std::size_t i = 0; i < static_places_->size(); ++i) {
    const StaticSharedPlace &here = (*static_places_)[i], &there = (*other.static_places_)[i];
    if (holds(here.begin, here.bytes, pointer, 0)) {
      return there.begin + distance(here.begin, pointer);
    }
  }
  return nullptr;
}

SharedRange BlockRunner::shared_range(unsigned address) const {
  if (address < kStaticAt) {
    return {static_cast<const unsigned char*>(shared_.data()), kDynamicAt,
            static_cast<std::uint32_t>(shared_.bytes())};
  }
  const StaticSharedPlace place = find_static_shared(static_shared_ + (address - kStaticAt));
  if (place.begin == nullptr) return {};
  return {place.begin,
          static_cast<std::uint32_t>(kStaticAt + distance(static_shared_, place.begin)),
          static_cast<std::uint32_t>(place.bytes)};
}

}  // namespace cuda_on_cpu
