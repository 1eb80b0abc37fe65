#include <cooperative_groups.h>

#include <chrono>
#include <cuda_on_cpu/inspect.hpp>

#include "own_interface.hpp"
#include "shared_in_header.hpp"

namespace cg = cooperative_groups;
namespace inspect = cuda_on_cpu::inspect;

__global__ void dynamic_shared_is_fresh(unsigned* stale, unsigned bytes,
                                        unsigned long long* address) {
  void* const memory = dynamic_shared_memory();
  atomicAdd(stale, count_stale(memory, bytes));
  *address = reinterpret_cast<unsigned long long>(memory);
}

__global__ void write_dynamic_shared(unsigned offset) {
  static_cast<unsigned char*>(dynamic_shared_memory())[offset] = 0xFF;
}

__global__ void pass_backwards(unsigned* next) {
  __shared__ unsigned mine;
  if (threadIdx.x == 0) {
    mine = blockIdx.x;
    wait_until([&] { return atomicAdd(next, 0u) == gridDim.x - 1 - blockIdx.x; });
  }
  __syncthreads();
  // The block's shared memory is unchanged after other blocks have run.
  if (threadIdx.x == 1 && mine == blockIdx.x) atomicAdd(next, 1u);
}

__global__ void wait_for_own_block(int* flag) {
  if (threadIdx.x == 0) wait_until([&] { return atomicAdd(flag, 0) == 31; });
  if (threadIdx.x != 0) atomicAdd(flag, 1);
}

__global__ void wait_for_ever(int* flag) {
  if (blockIdx.x == 0) return;
  wait_until([&] { return atomicAdd(flag, 0) == 1; });  // [forever]
}

__global__ void wait_after_the_launching_thread(std::thread::id launching, int* helping) {
  if (std::this_thread::get_id() == launching) {
    while (atomicAdd(helping, 0) == 0) std::this_thread::yield();
  } else {
    atomicAdd(helping, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int looks = 0;
    wait_until([&] { return ++looks == 3; });
  }
}

__global__ void spin_with_nanosleep(volatile int* flag) {
  if (blockIdx.x == 0) {
    while (*flag == 0) __nanosleep(20);
  } else {
    *flag = 1;
  }
}

__global__ void grid_rounds(unsigned* sums, unsigned rounds, unsigned* mistakes) {
  const cg::grid_group grid = cg::this_grid();
  for (unsigned round = 0; round < rounds; ++round) {
    if (cg::this_thread_block().thread_rank() == 0) atomicAdd(&sums[round], blockIdx.x);
    grid.sync();
    if (sums[round] != gridDim.x * (gridDim.x - 1) / 2) atomicAdd(mistakes, 1u);
  }
}

__global__ void inspect_places(int* device, int* mistakes) {
  __shared__ int in_static[5];
  int local = 0;
  inspect::ThreadPosition position{};
  const auto expect = [&](bool right) {
    if (!right) atomicAdd(mistakes, 1);
  };
  expect(inspect::in_kernel(&position));
  expect(position.block == blockIdx.x && position.thread == threadIdx.x && position.interval == 0);
  expect(position.warp() == threadIdx.x / 32 && position.lane() == threadIdx.x % 32);
  __syncthreads();
  expect(inspect::in_kernel(&position) && position.interval == 1);

  const inspect::MemoryPlace in_device = inspect::find_memory(device + 3);
  expect(in_device.space == inspect::MemorySpace::device && in_device.base == device &&
         in_device.bytes == 10 * sizeof(int));
  const auto* const dynamic = static_cast<const char*>(dynamic_shared_memory());
  const inspect::MemoryPlace in_dynamic = inspect::find_memory(dynamic + 50);
  expect(in_dynamic.space == inspect::MemorySpace::dynamic_shared && in_dynamic.base == dynamic &&
         in_dynamic.bytes == 100);
  expect(inspect::find_memory(&in_static[4]).space == inspect::MemorySpace::static_shared);
  expect(inspect::find_memory(&local).space == inspect::MemorySpace::host);
}
