#include "device_arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "memory_fault.hpp"
#include "page.hpp"
#include "sanitizer.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kGuard = 1024;  ///< the least size on each side; keeps allocations aligned to
                                      ///< 1 KiB
constexpr std::size_t kReserved = std::size_t{1} << 44;
constexpr std::size_t kFreedRemembered = 4096;

/// The guard pattern, as the byte at an address: 0x7FFA in every aligned pair, a NaN in every
/// format, of bytes that programs rarely write.
constexpr unsigned char guard_byte(std::uintptr_t address) { return address & 1u ? 0x7F : 0xFA; }

/// The guard pattern at eight addresses, the first of which is even.
constexpr std::uint64_t kGuardWord = 0x7FFA7FFA7FFA7FFAu;

void fill_guard(std::uintptr_t begin, std::uintptr_t end) {
  std::uintptr_t a = begin;
  for (; a < end && a % sizeof kGuardWord != 0; ++a)
    *reinterpret_cast<unsigned char*>(a) = guard_byte(a);
  for (; a + sizeof kGuardWord <= end; a += sizeof kGuardWord)
    *reinterpret_cast<std::uint64_t*>(a) = kGuardWord;
  for (; a < end; ++a) *reinterpret_cast<unsigned char*>(a) = guard_byte(a);
}

/// The first overwritten address of a guard band, or `end`.
std::uintptr_t first_overwritten(std::uintptr_t begin, std::uintptr_t end) {
  std::uintptr_t a = begin;
  for (; a < end && a % sizeof kGuardWord != 0; ++a) {
    if (*reinterpret_cast<const unsigned char*>(a) != guard_byte(a)) return a;
  }
  for (; a + sizeof kGuardWord <= end; a += sizeof kGuardWord) {
    if (*reinterpret_cast<const std::uint64_t*>(a) != kGuardWord) break;
  }
  for (; a < end; ++a) {
    if (*reinterpret_cast<const unsigned char*>(a) != guard_byte(a)) return a;
  }
  return end;
}

std::size_t physical_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string describe_allocation(const DeviceArena::Allocation& a) {
  return "device allocation " + std::to_string(a.number) + " (" + std::to_string(a.bytes) +
         " bytes)";
}

std::string describe_offset(const DeviceArena::Allocation& a, std::uintptr_t address) {
  if (address < a.payload) {
    return std::to_string(a.payload - address) + " bytes before " + describe_allocation(a);
  }
  if (address >= a.payload + a.bytes) {
    return std::to_string(address - a.payload - a.bytes) + " bytes after the end of " +
           describe_allocation(a);
  }
  return "byte " + std::to_string(address - a.payload) + " of " + describe_allocation(a);
}

/// The element of a map by extent that contains `address`, or null.
const DeviceArena::Allocation* holding(const std::map<std::uintptr_t, DeviceArena::Allocation>& map,
                                       std::uintptr_t address) {
  auto next = map.upper_bound(address);
  if (next == map.begin()) return nullptr;
  const DeviceArena::Allocation& candidate = std::prev(next)->second;
  return address < candidate.end() ? &candidate : nullptr;
}

}  // namespace

DeviceArena& DeviceArena::instance() {
  // Never destroyed: the destructors of the program's own statics may free device memory.
  static DeviceArena& arena = *new DeviceArena;
  return arena;
}

DeviceArena::DeviceArena() {
  reset_limit();
  for (std::size_t bytes = kReserved; bytes >= limit_; bytes /= 2) {
    void* const range =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    begin_ = next_ = reinterpret_cast<std::uintptr_t>(range);
    end_ = begin_ + bytes;
    break;
  }
  if (begin_ == 0) throw std::bad_alloc();
  install_memory_fault_handler();
}

DeviceArena::Access::Access(DeviceArena& arena) : lock_(arena), arena_(arena) { arena_.open(); }
DeviceArena::Access::~Access() { arena_.close(); }

void DeviceArena::open() {
  if (!std::exchange(open_, true)) protect(PROT_READ | PROT_WRITE);
}

void DeviceArena::close() {
  if (kept_open_ > 0) return;
  open_ = false;
  protect(PROT_NONE);
}

void DeviceArena::keep_open_no_more() {
  --kept_open_;
  if (open_) close();
}

void DeviceArena::protect(int protection) const {
  // Adjacent allocations share one call.
  for (auto it = live_.begin(); it != live_.end();) {
    const std::uintptr_t begin = it->second.extent;
    std::uintptr_t end = begin;
    for (; it != live_.end() && it->second.extent == end; ++it) end = it->second.end();
    mprotect(reinterpret_cast<void*>(begin), end - begin, protection);
  }
}

void DeviceArena::reset_limit() { limit_ = physical_memory(); }

std::uintptr_t DeviceArena::find_gap(std::size_t bytes) const {
  for (std::uintptr_t from : {next_, begin_}) {
    if (const Allocation* inside = holding(live_, from)) from = inside->end();
    for (auto it = live_.lower_bound(from);; ++it) {
      const std::uintptr_t gap_end = it == live_.end() ? end_ : it->second.extent;
      if (gap_end - from >= bytes) return from;
      if (it == live_.end()) break;
      from = it->second.end();
    }
  }
  return 0;
}

void* DeviceArena::allocate(std::size_t bytes, unsigned char fill) {
  if (bytes > limit_ - std::min(used_, limit_)) return nullptr;
  const std::size_t extent_bytes = (kGuard + bytes + kGuard + kPage - 1) / kPage * kPage;
  const std::uintptr_t extent = find_gap(extent_bytes);
  if (extent == 0) return nullptr;
  if (mprotect(reinterpret_cast<void*>(extent), extent_bytes, PROT_READ | PROT_WRITE) != 0) {
    return nullptr;
  }
  // protect() is called around every launch and copy and takes time for each page. Without huge
  // pages, which are only requested, a gigabyte would cost milliseconds each time.
  if (extent_bytes >= kHugePage) {
    madvise(reinterpret_cast<void*>(extent), extent_bytes, MADV_HUGEPAGE);
  }
  const std::uintptr_t payload = extent + kGuard;
  const Allocation a{payload, bytes, extent, extent_bytes, ++count_, payload, payload + bytes};
  sanitizer::unpoison(reinterpret_cast<void*>(extent), extent_bytes);
  fill_guard(a.extent, a.payload);
  fill_guard(a.payload + a.bytes, a.end());
  if (fill != 0) std::memset(reinterpret_cast<void*>(a.payload), fill, bytes);
  sanitizer::poison(reinterpret_cast<void*>(a.extent), kGuard);
  sanitizer::poison(reinterpret_cast<void*>(a.payload + a.bytes), a.end() - a.payload - a.bytes);
  live_.emplace(extent, a);
  for (auto old = freed_.lower_bound(extent); old != freed_.end() && old->first < a.end();) {
    old = freed_.erase(old);
  }
  next_ = a.end();
  used_ += bytes;
  return reinterpret_cast<void*>(a.payload);
}

void DeviceArena::free(const Allocation& allocation) {
  const Allocation a = allocation;  // erase() below destroys the original
  sanitizer::unpoison(reinterpret_cast<void*>(a.extent), a.extent_bytes);
  // A new mapping at its address releases the pages, and accesses fault from then on.
  void* const extent = reinterpret_cast<void*>(a.extent);
  if (mmap(extent, a.extent_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    mprotect(extent, a.extent_bytes, PROT_NONE);
  }
  used_ -= a.bytes;
  live_.erase(a.extent);
  freed_.insert_or_assign(a.extent, a);
  if (freed_.size() > kFreedRemembered) freed_.erase(freed_.begin());
}

const DeviceArena::Allocation* DeviceArena::find(const void* address) const {
  return holding(live_, reinterpret_cast<std::uintptr_t>(address));
}

const DeviceArena::Allocation* DeviceArena::find_start(const void* address) const {
  const Allocation* const found = find(address);
  return found && found->payload == reinterpret_cast<std::uintptr_t>(address) ? found : nullptr;
}

void DeviceArena::set_readable(const void* address, std::size_t bytes) {
  const Allocation* const found = find(address);
  if (found == nullptr) return;
  Allocation& allocation = live_.at(found->extent);
  allocation.readable = reinterpret_cast<std::uintptr_t>(address);
  allocation.readable_end = allocation.readable + bytes;
}

std::string DeviceArena::check_guards() {
  std::string sentences;
  for (const auto& [extent, allocation] : live_) sentences += check_guards(allocation);
  return sentences;
}

std::string DeviceArena::check_guards(const Allocation& a) {
  if (sanitizer::kAddress) return {};  // the bands are poisoned, so an access was already reported
  const std::uintptr_t payload_end = a.payload + a.bytes;
  std::uintptr_t at = first_overwritten(a.extent, a.payload);
  if (at == a.payload) at = first_overwritten(payload_end, a.end());
  if (at == a.end()) return {};
  fill_guard(a.extent, a.payload);
  fill_guard(payload_end, a.end());
  return "The guard band of device allocation " + std::to_string(a.number) + " (" +
         std::to_string(a.bytes) + " bytes) was overwritten, first " + describe_offset(a, at) + ".";
}

std::string DeviceArena::describe(const void* address) const {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  if (const Allocation* const live = holding(live_, a)) return describe_offset(*live, a);
  if (const Allocation* const freed = holding(freed_, a)) {
    return describe_offset(*freed, a) + ", which has been freed";
  }
  return "device memory that was never allocated";
}

}  // namespace cuda_on_cpu
