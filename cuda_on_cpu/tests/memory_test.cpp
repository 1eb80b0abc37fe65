#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cuda_on_cpu/inspect.hpp>
#include <thread>

#include "kernels.hpp"
#include "launch.hpp"

namespace control = cuda_on_cpu::control;

namespace {

/// How a child process ended and what it wrote to stderr.
struct Ending {
  int status;
  std::string message;
};

template <class Action>
Ending in_child_process(Action action) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    action();
    _exit(0);
  }
  close(ends[1]);
  Ending ending{};
  std::array<char, 256> buffer{};
  for (ssize_t n; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    ending.message.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  waitpid(child, &ending.status, 0);
  return ending;
}

}  // namespace

TEST_CASE("device memory is initialised with NaN bytes and aligned to 256") {
  const Defaults defaults;
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
    DeviceArray<float> memory(size);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 256 == 0);
    for (const float value : memory.host()) REQUIRE(std::isnan(value));
  }
}

TEST_CASE("a write outside an allocation is an error that names its size and the offset") {
  const Defaults defaults;
  if (kAddressSanitizer) return;  // which ends the process instead: see sanitized_program.cpp
  char* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 1001) == cudaSuccess);
  CHECK(launch(write_byte, {1, 1}, memory, 0) == cudaSuccess);
  CHECK(launch(write_byte, {1, 1}, memory + 1000, 0) == cudaSuccess);
  CHECK(launch(write_byte, {1, 1}, memory + 1001, -1) == cudaErrorIllegalAddress);
  CHECK(report_names("Kernel write_byte", "(1001 bytes)", "0 bytes after the end"));
  CHECK(launch(write_byte, {1, 1}, memory + 1500, 0) == cudaErrorIllegalAddress);
  CHECK(report_names("499 bytes after the end"));
  CHECK(launch(write_byte, {1, 1}, memory - 1, 0) == cudaErrorIllegalAddress);
  CHECK(report_names("1 bytes before"));
  // The bands are restored after each report.
  CHECK(launch(write_byte, {1, 1}, memory, 0) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("an access to unmapped memory is an error of the kernel, and the process continues") {
  const Defaults defaults;
  if (kAddressSanitizer) return;  // which reports the access itself
  int* memory = nullptr;
  DeviceArray<int> out(1);
  REQUIRE(cudaMalloc(&memory, 4) == cudaSuccess);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  CHECK(launch(read_int, {1, 1}, memory, out.data()) == cudaErrorIllegalAddress);
  CHECK(report_names("Kernel read_int", "thread (0,0,0)", "byte 0 of device allocation",
                     "has been freed"));
  CHECK(launch(read_int, {1, 1}, nullptr, out.data()) == cudaErrorIllegalAddress);
  CHECK(report_names("is not mapped"));
  CHECK(launch(recurse_deeply, {1, 1}, out.data(), 1'000'000) == cudaErrorIllegalAddress);
  CHECK(report_names("overflowed its stack"));
  CHECK(launch(recurse_deeply, {1, 64}, out.data(), 10) == cudaSuccess);
  CHECK(out.first() == 10);
}

TEST_CASE("the stack use of threads can be queried") {
  const Defaults defaults;
  const DeviceArray<int> out(1);
  const auto deepest = cuda_on_cpu::inspect::deepest_stack;
  std::size_t at_first = 1, shallow = 0, deep = 0;
  std::thread([&] {  // has run no kernel yet; a single block runs on one OS thread
    at_first = deepest();
    static_cast<void>(launch(recurse_deeply, {1, 1}, out.data(), 1));
    shallow = deepest();
    static_cast<void>(launch(recurse_deeply, {1, 1}, out.data(), 40));
    deep = deepest();
  })
      .join();
  CHECK(at_first == 0);
  CHECK(shallow > 1024);
  CHECK(deep > 40 * 1024);
  CHECK(deep > shallow + 38 * 1024);
}

TEST_CASE("host code that accesses device memory ends the process with a message") {
  const Defaults defaults;
  DeviceArray<int> memory(10);
  const auto check = [&](auto action) {
    const Ending ending = in_child_process(action);
    CHECK(WIFEXITED(ending.status));
    CHECK(WEXITSTATUS(ending.status) == control::kMemoryFaultExit);
    CHECK(ending.message.find("host code dereferenced the device pointer") != std::string::npos);
    CHECK(ending.message.find("byte 12 of device allocation") != std::string::npos);
    CHECK(ending.message.find("(40 bytes)") != std::string::npos);
  };
  check([&] { return *static_cast<volatile int*>(memory.data() + 3); });
  check([&] { *static_cast<volatile int*>(memory.data() + 3) = 1; });
  // Also after a kernel and after a copy.
  CHECK(launch(write_int, {1, 1}, memory.data(), 1) == cudaSuccess);
  check([&] { return *static_cast<volatile int*>(memory.data() + 3); });
  CHECK(memory.host()[0] == 1);
  check([&] { return *static_cast<volatile int*>(memory.data() + 3); });
}

TEST_CASE("memory that is kept open is accessible until it is closed") {
  const Defaults defaults;
  void* pointer = nullptr;
  const Ending ending = in_child_process([&] {
    const auto touch = [&] { *static_cast<volatile char*>(pointer) = 1; };
    {
      const control::KeepMemoryOpen open;
      cudaMalloc(&pointer, 16);
      touch();
      {
        const control::KeepMemoryOpen as_well;
        cudaMemset(pointer, 0, 16);
      }
      touch();
    }
    static_cast<void>(!write(STDERR_FILENO, "closed ", 7));
    touch();
  });
  CHECK(ending.message.starts_with("closed cuda_on_cpu: host code dereferenced"));
}

TEST_CASE("a fault in host code ends the process as without the library") {
  const Defaults defaults;
  if (kAddressSanitizer) return;
  DeviceArray<int> memory(1);  // the handler is installed
  const Ending ending = in_child_process([] { *static_cast<volatile int*>(nullptr) = 1; });
  CHECK(WIFSIGNALED(ending.status));
  CHECK(WTERMSIG(ending.status) == SIGSEGV);
}

TEST_CASE("freeing twice, or memory that was never allocated, is an error") {
  const Defaults defaults;
  int* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 100) == cudaSuccess);
  CHECK(cudaFree(memory + 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK(report_names("has been freed"));
  int on_stack = 0;
  CHECK(cudaFree(&on_stack) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 100) == cudaSuccess);
  CHECK(cudaFree(pinned) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaErrorInvalidValue);
}

TEST_CASE("live allocations are listed, which are the leaks at the end") {
  const Defaults defaults;
  const std::size_t before = control::live_allocations().size();
  void *first = nullptr, *second = nullptr;
  cudaMalloc(&first, 10);
  cudaMalloc(&second, 20);
  const auto live = control::live_allocations();
  REQUIRE(live.size() == before + 2);
  CHECK(live[before].address == first);
  CHECK(live[before].bytes == 10);
  CHECK(live[before + 1].address == second);
  CHECK(live[before].number < live[before + 1].number);
  cudaFree(first);
  cudaFree(second);
  CHECK(control::live_allocations().size() == before);
}

TEST_CASE("cudaMalloc beyond the limit is out of memory") {
  const Defaults defaults;
  std::size_t free_bytes = 0, total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  CHECK(total_bytes == static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, total_bytes + 1) == cudaErrorMemoryAllocation);
  CHECK(memory == nullptr);
  control::set_memory_limit(1000);
  REQUIRE(cudaMalloc(&memory, 600) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  CHECK(total_bytes == 1000);
  CHECK(free_bytes == 400);
  void* more = nullptr;
  CHECK(cudaMalloc(&more, 401) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&more, 400) == cudaSuccess);
  cudaFree(memory);
  cudaFree(more);
  CHECK(cudaMalloc(&memory, 0) == cudaSuccess);
  CHECK(memory == nullptr);
}

TEST_CASE("a copy's direction must match the pointers") {
  const Defaults defaults;
  DeviceArray<int> device(4);
  int host[4] = {1, 2, 3, 4};
  int* const d = device.data();
  CHECK(cudaMemcpy(d, host, 16, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(host, d, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(report_names("cudaMemcpyHostToDevice", "destination must be device memory"));
  CHECK(cudaMemcpy(d, host, 16, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(report_names("source must be device memory"));
  CHECK(cudaMemcpy(d, host, 16, cudaMemcpyHostToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(d, host, 16, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpy(d + 2, d, 8, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(cudaMemcpyAsync(host, d, 16, cudaMemcpyDefault) == cudaSuccess);
  CHECK(host[3] == 2);
}

TEST_CASE("a copy or a fill must stay inside one live allocation") {
  const Defaults defaults;
  DeviceArray<int> device(4);
  int host[8] = {};
  CHECK(cudaMemcpy(device.data(), host, 20, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(report_names("20 bytes", "(16 bytes)"));
  CHECK(cudaMemset(device.data() + 2, 0, 9) == cudaErrorInvalidValue);
  CHECK(cudaMemset(device.data() + 2, 1, 8) == cudaSuccess);
  CHECK(device.host()[2] == 0x01010101);
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
}

TEST_CASE("copies and fills in two dimensions respect the pitches") {
  const Defaults defaults;
  char* device = nullptr;
  std::size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&device, &pitch, 5, 3) == cudaSuccess);
  CHECK(pitch % 256 == 0);
  REQUIRE(cudaMemset2D(device, pitch, '.', 5, 3) == cudaSuccess);
  REQUIRE(cudaMemcpy2D(device, pitch, "abcdef", 2, 2, 3, cudaMemcpyHostToDevice) == cudaSuccess);
  char host[16] = {};
  REQUIRE(cudaMemcpy2D(host, 5, device, pitch, 5, 3, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(std::string(host) == "ab...cd...ef...");
  CHECK(cudaMemcpy2D(host, 4, device, pitch, 5, 3, cudaMemcpyDeviceToHost) ==
        cudaErrorInvalidPitchValue);
  cudaFree(device);
}

TEST_CASE("pinned, managed and asynchronous memory") {
  const Defaults defaults;
  int *pinned = nullptr, *managed = nullptr, *device = nullptr;
  REQUIRE(cudaHostAlloc(&pinned, 4, cudaHostAllocDefault) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&managed, 4) == cudaSuccess);
  REQUIRE(cudaMallocAsync(&device, 4, nullptr) == cudaSuccess);
  int on_stack = 0;
  const auto type_of = [](const void* pointer) {
    cudaPointerAttributes attributes{};
    CHECK(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
    return attributes.type;
  };
  CHECK(type_of(pinned) == cudaMemoryTypeHost);
  CHECK(type_of(managed) == cudaMemoryTypeManaged);
  CHECK(type_of(device) == cudaMemoryTypeDevice);
  CHECK(type_of(&on_stack) == cudaMemoryTypeUnregistered);
  CHECK(launch(write_int, {1, 1}, managed, 3) == cudaSuccess);
  CHECK(*managed == 3);
  CHECK(cudaMemcpy(device, managed, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(pinned, device, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(*pinned == 3);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
  CHECK(cudaFreeAsync(device, nullptr) == cudaSuccess);
}

TEST_CASE("constants and device variables are accessed by the symbol functions") {
  const Defaults defaults;
  const float values[4] = {1, 10, 100, 1000};
  REQUIRE(set_scales(values, sizeof values, 0) == cudaSuccess);
  CHECK(set_scales(values, sizeof values, 4) == cudaErrorInvalidValue);
  DeviceArray<float> in(std::vector<float>{2, 2, 2, 2}), out(4);
  REQUIRE(launch(scale_by_constants, {1, 4}, in.data(), out.data()) == cudaSuccess);
  CHECK(out.host() == std::vector<float>{2, 20, 200, 2000});
  REQUIRE(launch(add_to_counter, {10, 100}) == cudaSuccess);
  int count = 0;
  REQUIRE(read_counter(&count, sizeof count) == cudaSuccess);
  CHECK(count == 1005);
  CHECK(read_counter(&count, 8) == cudaErrorInvalidValue);
}
