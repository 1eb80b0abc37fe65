/// @file
/// @brief The functions that kernels call; they are passed to the runner of the calling OS thread.
#include <assert.h>
#include <cuda_pipeline.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_on_cpu/builtins.hpp>
#include <string>

#include "block_runner.hpp"
#include "device_arena.hpp"
#include "report_text.hpp"
#include "watching.hpp"

namespace cuda_on_cpu {
namespace detail {

unsigned lane() { return BlockRunner::of_running_kernel("a warp function").lane(); }

void yield_thread(const Site& site) { BlockRunner::of_running_kernel("a wait").yield(site); }
void note_wait_ended() { BlockRunner::of_running_kernel("a wait").note_wait_ended(); }

void grid_barrier(const Site& site) {
  BlockRunner& runner = BlockRunner::of_running_kernel("grid_group::sync");
  GridLaunch& launch = runner.launch();
  if (!launch.cooperative) {
    runner.fail_thread(cudaErrorLaunchFailure, "calls grid_group::sync() at " +
                                                   describe_site(site) +
                                                   ", but the launch is not cooperative.");
  }
  block_barrier(BarrierKind::sync, false, site);
  if (runner.thread() == 0) {
    const std::uint64_t round = launch.barrier_round();
    if (!launch.block_arrives()) {
      wait_until([&] { return launch.barrier_round() != round; }, site);
    }
  }
  if (runner.thread() == 0)
    tell_watcher([](inspect::Watcher& watcher) { watcher.grid_barrier_passed(); });
  block_barrier(BarrierKind::sync, false, site);
}

bool grid_is_cooperative() {
  return BlockRunner::of_running_kernel("grid_group::is_valid").launch().cooperative;
}

void assertion_failed(const char* expression, const Site& site) {
  if (BlockRunner* const runner = BlockRunner::of_running_kernel()) {
    runner->fail_thread(cudaErrorAssert, "failed the assertion `" + std::string(expression) +
                                             "` at " + describe_site(site) + ".");
  }
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", site.file_name(), site.line(),
               site.function_name(), expression);
  std::abort();
}

}  // namespace detail

void* dynamic_shared_memory() {
  return BlockRunner::of_running_kernel("dynamic_shared_memory").dynamic_shared();
}

void __trap(detail::Site site) {
  BlockRunner::of_running_kernel("__trap").fail_thread(
      cudaErrorLaunchFailure, "called __trap() at " + describe_site(site) + ".");
}

long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void __pipeline_memcpy_async(void* shared_to, const void* global_from, std::size_t size_and_align,
                             std::size_t zfill, detail::Site site) {
  BlockRunner& runner = BlockRunner::of_running_kernel("__pipeline_memcpy_async");
  const auto misaligned = [=](const void* pointer) {
    return (reinterpret_cast<std::uintptr_t>(pointer) & (size_and_align - 1)) != 0;
  };
  const auto refuse = [&](const char* why) {
    runner.fail_thread(cudaErrorMisalignedAddress,
                       "calls __pipeline_memcpy_async at " + describe_site(site) + " " + why + ".");
  };
  if (size_and_align != 4 && size_and_align != 8 && size_and_align != 16) {
    refuse("with a size that is not 4, 8 or 16");
  }
  if (zfill > size_and_align) refuse("with more bytes to fill than to copy");
  if (misaligned(shared_to)) refuse("with a destination not aligned to the size");
  if (misaligned(global_from)) refuse("with a source not aligned to the size");
  const DeviceArena& arena = DeviceArena::instance();
  if (zfill < size_and_align && arena.contains(global_from) &&
      !arena.is_readable(global_from, size_and_align - zfill)) {
    runner.fail_thread(cudaErrorIllegalAddress,
                       "calls __pipeline_memcpy_async at " + describe_site(site) + " to read " +
                           std::to_string(size_and_align - zfill) + " bytes from " +
                           arena.describe(global_from) + ".");
  }
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.copy_issued(shared_to, size_and_align, global_from, size_and_align - zfill, site);
  });
  runner.async_copies().issue(shared_to, global_from, size_and_align, zfill);
}

void __pipeline_commit() {
  BlockRunner::of_running_kernel("__pipeline_commit").async_copies().commit();
}

void __pipeline_wait_prior(std::size_t batches) {
  BlockRunner::of_running_kernel("__pipeline_wait_prior").async_copies().wait_prior(batches);
}

}  // namespace cuda_on_cpu
