#include <algorithm>
#include <atomic>
#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/readable.hpp>
#include <mutex>

#include "device_arena.hpp"
#include "error_state.hpp"
#include "function_attributes.hpp"
#include "settings.hpp"
#include "statistics.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

/// The number of OS threads that can have a block each (WorkerPool's limit), and of threads of
/// blocks, two thirds of the available stacks (Fiber's).
constexpr int kMostWaitingBlocks = 1000, kMostWaitingThreads = 16384;

std::mutex settings_mutex;
Settings settings;

std::atomic<std::uint64_t> launches{0};
std::atomic<std::uint64_t> blocks_run{0};
std::atomic<std::uint64_t> threads_run{0};
std::atomic<std::uint64_t> fiber_switches{0};

template <class Change>
void change_settings(Change change) {
  const std::lock_guard lock(settings_mutex);
  change(settings);
}

}  // namespace

Settings current_settings() {
  const std::lock_guard lock(settings_mutex);
  return settings;
}

void count_launch(std::uint64_t blocks, std::uint64_t threads) {
  ++launches;
  blocks_run += blocks;
  threads_run += threads;
}

void count_fiber_switches(std::uint64_t count) { fiber_switches += count; }

namespace control {

void set_thread_order(ThreadOrder order, std::uint64_t seed) {
  change_settings([=](Settings& s) { s.order = order, s.seed = seed; });
}

void set_worker_threads(unsigned count) { WorkerPool::instance().set_threads(count); }
unsigned worker_threads() { return WorkerPool::instance().threads(); }

void set_nan_fill(bool on) {
  change_settings([=](Settings& s) { s.nan_fill = on; });
}

void set_memory_limit(std::size_t bytes) {
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  arena.set_limit(bytes);
}

void set_deadlock_timeout(std::chrono::milliseconds timeout) {
  change_settings([=](Settings& s) { s.deadlock_timeout = timeout; });
}

void set_device_model(const DeviceModel& model) {
  change_settings([&](Settings& s) {
    s.model = &model;
    s.multiprocessors = model.multiprocessors;
  });
  forget_function_attributes();  // a new device: cudaFuncSetAttribute has not been called for it
}

void set_default_device_model() {
  change_settings([](Settings& s) {
    s.model = default_model();
    s.multiprocessors = kDefaultMultiprocessors;
  });
  forget_function_attributes();
}

int most_waiting_blocks(int block_threads) {
  return std::min(kMostWaitingBlocks, kMostWaitingThreads / std::max(block_threads, 1));
}

std::string last_report() { return cuda_on_cpu::last_report(); }

void reset() {
  change_settings(
      [](Settings& s) { s = {.model = s.model, .multiprocessors = s.multiprocessors}; });
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  arena.reset_limit();
  forget_errors();
}

KeepMemoryOpen::KeepMemoryOpen() {
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  arena.keep_open();
}

KeepMemoryOpen::~KeepMemoryOpen() {
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  arena.keep_open_no_more();
}

std::vector<Allocation> live_allocations() {
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  std::vector<Allocation> list;
  for (const auto& [extent, a] : arena.live()) {
    list.push_back({reinterpret_cast<const void*>(a.payload), a.bytes, a.number});
  }
  std::sort(list.begin(), list.end(),
            [](const Allocation& a, const Allocation& b) { return a.number < b.number; });
  return list;
}

void set_readable(const void* first, std::size_t bytes) {
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  arena.set_readable(first, bytes);
}

Statistics statistics() { return {launches, blocks_run, threads_run, fiber_switches}; }

void reset_statistics() { launches = blocks_run = threads_run = fiber_switches = 0; }

}  // namespace control
}  // namespace cuda_on_cpu
