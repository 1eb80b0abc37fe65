#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "kernels.hpp"
#include "launch.hpp"
#include "own_interface.hpp"

TEST_CASE("errors have CUDA's names, values and texts") {
  CHECK(static_cast<int>(cudaErrorInvalidValue) == 1);
  CHECK(static_cast<int>(cudaErrorIllegalAddress) == 700);
  CHECK(static_cast<int>(cudaErrorLaunchFailure) == 719);
  CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  CHECK(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
  CHECK(std::string(cudaGetErrorString(static_cast<cudaError_t>(-1))) == "unrecognized error code");
}

TEST_CASE("the last error belongs to the host thread that caused it") {
  const Defaults defaults;
  std::thread([] {
    CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  }).join();
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("streams add no order, because work runs when it is submitted") {
  const Defaults defaults;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  int calls = 0;
  REQUIRE(cudaLaunchHostFunc(
              stream, [](void* p) { ++*static_cast<int*>(p); }, &calls) == cudaSuccess);
  CHECK(calls == 1);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
}

TEST_CASE("events measure the host's time") {
  const Defaults defaults;
  cudaEvent_t start = nullptr, stop = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&stop) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(start) == cudaSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(cudaEventRecord(stop) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(nullptr, stop) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(stop) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start, stop) == cudaSuccess);
  CHECK(milliseconds >= 5);
  CHECK(cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaEventDestroy(stop) == cudaSuccess);
}

TEST_CASE("graphs return an error, because they are not supported") {
  const Defaults defaults;
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorNotSupported);
}

TEST_CASE("there is one device with the limits of compute capability 9.0") {
  const Defaults defaults;
  int count = 0, device = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 1);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 0);
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(std::string(properties.name) == "cuda_on_cpu");
  CHECK(properties.major == 9);
  CHECK(properties.maxThreadsPerBlock == 1024);
  CHECK(properties.sharedMemPerBlockOptin == 227 * 1024);
  int value = 0;
  REQUIRE(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) ==
          cudaSuccess);
  CHECK(value == 227 * 1024);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1) == cudaErrorInvalidDevice);
}

TEST_CASE("the default stream can be forbidden to a thread") {
  const Defaults defaults;
  DeviceArray<int> device(10);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  int host[10] = {};
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  {
    const cuda_on_cpu::control::ForbidDefaultStream forbid;
    const auto refused = cudaErrorInvalidResourceHandle;
    CHECK(launch(print_hello, {1, 1}) == refused);
    CHECK(cuda_on_cpu::control::last_report().find("default stream") != std::string::npos);
    CHECK(cudaMemcpy(host, device.data(), sizeof host, cudaMemcpyDeviceToHost) == refused);
    CHECK(cudaMemsetAsync(device.data(), 0, sizeof host) == refused);
    CHECK(cudaEventRecord(event) == refused);
    CHECK(cudaStreamSynchronize(nullptr) == refused);
    void* memory = nullptr;
    CHECK(cudaMallocAsync(&memory, 4, nullptr) == refused);
    CHECK(cudaMemsetAsync(device.data(), 0, sizeof host, stream) == cudaSuccess);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    std::thread([&] { CHECK(cudaEventRecord(event) == cudaSuccess); }).join();
  }
  CHECK(cudaMemcpy(host, device.data(), sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaMemsetAsync(device.data(), 0, sizeof host, reinterpret_cast<cudaStream_t>(&host)) ==
        cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("occupancy follows from threads and shared memory") {
  int blocks = 0;
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, print_hello, 256, 0) ==
          cudaSuccess);
  CHECK(blocks == 8);
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, print_hello, 256, 48 * 1024) ==
          cudaSuccess);
  CHECK(blocks == 4);
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, print_hello, 1, 0) == cudaSuccess);
  CHECK(blocks == 32);
}

TEST_CASE("tools can query the running thread and the memory at an address") {
  const Defaults defaults;
  DeviceArray<int> device(10), mistakes(std::vector<int>{0});
  REQUIRE(launch(inspect_places, {3, 40, 100}, device.data(), mistakes.data()) == cudaSuccess);
  CHECK(mistakes.first() == 0);
}
