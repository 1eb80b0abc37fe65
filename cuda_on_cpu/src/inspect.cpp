#include <cuda_on_cpu/inspect.hpp>

#include "block_runner.hpp"
#include "device_arena.hpp"
#include "static_shared_registry.hpp"
#include "watching.hpp"

namespace cuda_on_cpu::inspect {

bool in_kernel(ThreadPosition* position) {
  const BlockRunner* const runner = BlockRunner::of_running_kernel();
  if (runner == nullptr) return false;
  *position = {runner->block_index(), runner->thread(), runner->interval()};
  return true;
}

std::size_t deepest_stack() { return BlockRunner::of_this_thread().deepest_stack(); }

MemoryPlace find_memory(const void* address) {
  const DeviceArena& arena = DeviceArena::instance();
  if (arena.contains(address)) {
    const DeviceArena::Allocation* const a = arena.find(address);
    if (a == nullptr) return {MemorySpace::device, nullptr, 0};
    return {MemorySpace::device, reinterpret_cast<const void*>(a->payload), a->bytes};
  }
  if (const BlockRunner* const runner = BlockRunner::of_running_kernel()) {
    const SharedBuffer& shared = runner->shared_buffer();
    const auto* const begin = static_cast<const unsigned char*>(shared.data());
    const auto* const byte = static_cast<const unsigned char*>(address);
    if (byte >= begin && byte < begin + shared.bytes()) {
      return {MemorySpace::dynamic_shared, begin, shared.bytes()};
    }
    if (const StaticSharedPlace place = find_static_shared(address); place.begin != nullptr) {
      return {MemorySpace::static_shared, place.begin, place.bytes};
    }
  }
  return {MemorySpace::host, nullptr, 0};
}

void set_watcher(Watcher* watcher) { detail::the_watcher = watcher; }

Watcher::~Watcher() = default;
void Watcher::launch_begins(const LaunchShape&) {}
void Watcher::launch_ended() {}
void Watcher::block_begins(std::uint64_t, unsigned, const MemoryPlace&) {}
void Watcher::block_joins(const void*, unsigned, unsigned) {}
void Watcher::block_ended() {}
void Watcher::barrier_passed() {}
void Watcher::lanes_met(unsigned, unsigned) {}
void Watcher::released(const void*) {}
void Watcher::acquired(const void*, unsigned, unsigned) {}
void Watcher::grid_barrier_passed() {}
void Watcher::touched(Operation, const void*, std::size_t, const std::source_location&) {}
void Watcher::copy_issued(const void*, std::size_t, const void*, std::size_t,
                          const std::source_location&) {}
void Watcher::copy_shared(const void*, std::size_t, const std::source_location&) {}
void Watcher::read_by_unit(const void*, std::size_t, const std::source_location&, bool) {}
void Watcher::factors_given(std::size_t) {}
void Watcher::unit_read_ended(const void*, std::size_t) {}
void Watcher::copy_landed(const void*, std::size_t) {}
void Watcher::allocated(const void*, std::size_t) {}
void Watcher::freed(const void*) {}
void Watcher::host_wrote(const void*, std::size_t) {}

}  // namespace cuda_on_cpu::inspect
