#include <doctest/doctest.h>

#include <cuda_on_cpu/device_models.hpp>
#include <string>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

using cuda_on_cpu::control::DeviceModel;

struct DefaultDeviceAfterwards {
  ~DefaultDeviceAfterwards() { cuda_on_cpu::control::set_default_device_model(); }
};

void become(const char* architecture) {
  const DeviceModel* const model = cuda_on_cpu::control::find_device_model(architecture);
  REQUIRE(model != nullptr);
  cuda_on_cpu::control::set_device_model(*model);
}

int asked(cudaDeviceAttr attribute) {
  int value = -1;
  CHECK(cudaDeviceGetAttribute(&value, attribute, 0) == cudaSuccess);
  return value;
}

}  // namespace

TEST_CASE("the device answers all queries like the selected card") {
  const Defaults defaults;
  const DefaultDeviceAfterwards restored;
  CHECK(cuda_on_cpu::control::find_device_model("sm_85") == nullptr);
  for (const DeviceModel& model : cuda_on_cpu::control::device_models()) {
    CAPTURE(std::string(model.architecture));
    cuda_on_cpu::control::set_device_model(model);
    cuda_on_cpu::control::reset();  // leaves the device
    CHECK(&cuda_on_cpu::control::device_model() == &model);
    CHECK(model.architecture == "sm_" + std::to_string(model.compute_capability));
    cudaDeviceProp device{};
    REQUIRE(cudaGetDeviceProperties(&device, 0) == cudaSuccess);
    CHECK(10 * device.major + device.minor == model.compute_capability);
    CHECK(device.multiProcessorCount == model.multiprocessors);
    CHECK(asked(cudaDevAttrComputeCapabilityMajor) == device.major);
    CHECK(asked(cudaDevAttrComputeCapabilityMinor) == device.minor);
    CHECK(asked(cudaDevAttrMultiProcessorCount) == device.multiProcessorCount);
    CHECK(asked(cudaDevAttrL2CacheSize) == device.l2CacheSize);
    CHECK(asked(cudaDevAttrMaxThreadsPerMultiProcessor) == device.maxThreadsPerMultiProcessor);
    CHECK(asked(cudaDevAttrMaxBlocksPerMultiprocessor) == device.maxBlocksPerMultiProcessor);
    CHECK(asked(cudaDevAttrMaxRegistersPerMultiprocessor) == device.regsPerMultiprocessor);
    const auto optin = static_cast<std::size_t>(asked(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    CHECK(optin == device.sharedMemPerBlockOptin);
    CHECK(optin + device.reservedSharedMemPerBlock == device.sharedMemPerMultiprocessor);
    int blocks = 0;
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, write_int, 32, 0) ==
            cudaSuccess);
    CHECK(blocks == model.blocks_per_sm);
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, write_int, 512, 0) ==
            cudaSuccess);
    CHECK(blocks == model.threads_per_sm / 512);
  }
  become("sm_75");
  CHECK(asked(cudaDevAttrMaxSharedMemoryPerBlockOptin) == 64 * 1024);
  become("sm_80");
  CHECK(asked(cudaDevAttrMaxSharedMemoryPerBlockOptin) == 163 * 1024);
  for (const char* const architecture : {"sm_86", "sm_89", "sm_120"}) {
    become(architecture);
    CHECK(asked(cudaDevAttrMaxSharedMemoryPerBlockOptin) == 99 * 1024);
  }
  cuda_on_cpu::control::set_default_device_model();
  CHECK(cuda_on_cpu::control::device_model().architecture == std::string("sm_90"));
  CHECK(asked(cudaDevAttrMultiProcessorCount) == 8);
}

TEST_CASE("a block has no more shared memory than on the selected card") {
  const Defaults defaults;
  const DefaultDeviceAfterwards restored;
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  DeviceArray<int> out(1);
  REQUIRE(cudaFuncSetAttribute(write_int, kAttribute, 160 * 1024) == cudaSuccess);
  CHECK(launch(write_int, {1, 1, 160 * 1024}, out.data(), 1) == cudaSuccess);
  become("sm_86");  // before any limit was raised
  CHECK(launch(write_int, {1, 1, 99 * 1024}, out.data(), 2) == cudaErrorInvalidValue);
  CHECK(report_names("write_int", "allows up to 101376 on sm_86"));
  CHECK(cudaFuncSetAttribute(write_int, kAttribute, 160 * 1024) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(write_int, kAttribute, 99 * 1024) == cudaSuccess);
  CHECK(launch(write_int, {1, 1, 99 * 1024}, out.data(), 2) == cudaSuccess);
  CHECK(launch(write_int, {1, 1, 99 * 1024 + 16}, out.data(), 3) == cudaErrorInvalidValue);
  CHECK(out.first() == 2);
}

TEST_CASE(
    "an instruction that the selected card lacks ends the kernel and names the required "
    "architecture") {
  const Defaults defaults;
  const DefaultDeviceAfterwards restored;
  constexpr cudaError_t kNone = cudaErrorIllegalInstruction;
  DeviceArray<unsigned> a(std::vector<unsigned>(128, 0)), b(std::vector<unsigned>(64, 0));
  DeviceArray<float> d(std::vector<float>(128, 0));
  const auto multiply = [&] {
    return launch(multiply_matrices, {1, 32}, a.data(), b.data(), d.data());
  };
  become("sm_75");
  CHECK(multiply() == kNone);
  CHECK(report_names("mma.sync.m16n8k8.tf32", "needs sm_80", "the device is sm_75 (T4)"));
  become("sm_80");
  CHECK(multiply() == cudaSuccess);
  CHECK(launch(wait_in_vain, {1, 2}, 1) == kNone);
  CHECK(report_names("mbarrier_wait", "needs sm_90", "the device is sm_80 (A100)"));
  DeviceArray<unsigned> ranks(2), counts(2);
  const auto in_clusters = [&] {
    return launch_in_clusters({2, 1, 1}, cluster_ranks, {2, 1}, ranks.data(), counts.data());
  };
  CHECK(in_clusters() == cudaErrorNotSupported);
  CHECK(report_names("a cluster needs sm_90"));
  become("sm_120");
  CHECK(in_clusters() == cudaSuccess);
  DeviceArray<float> image(std::vector<float>(64 * 32, 1.0f)), out(512);
  const auto warpgroup = [&] {
    return launch(misuse_wgmma, {1, 128, 64 * 128}, image.data(), WgmmaMisuse::none, out.data());
  };
  CHECK(warpgroup() == kNone);
  CHECK(report_names("wgmma", "needs sm_90a", "the device is sm_120 (RTX 5090)"));
  become("sm_90");
  CHECK(warpgroup() == cudaSuccess);
}

TEST_CASE("a cooperative launch has at most as many blocks as can wait, on any card") {
  const Defaults defaults;
  const DefaultDeviceAfterwards restored;
  become("sm_90");
  const int most = cuda_on_cpu::control::most_waiting_blocks(1024);
  CHECK(most == 16);
  DeviceArray<int> out(1);
  CHECK(launch_cooperatively(write_int, {static_cast<unsigned>(most) + 1, 1024}, out.data(), 1) ==
        cudaErrorCooperativeLaunchTooLarge);
  CHECK(report_names("in cuda_on_cpu"));
  CHECK(launch_cooperatively(write_int, {static_cast<unsigned>(most), 1024}, out.data(), 1) ==
        cudaSuccess);
}
