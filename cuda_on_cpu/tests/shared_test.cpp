#include <doctest/doctest.h>

#include "kernels.hpp"
#include "launch.hpp"
#include "own_interface.hpp"

TEST_CASE("static shared memory is initialised with NaN bytes for every block") {
  const Defaults defaults;
  DeviceArray<unsigned> stale(std::vector<unsigned>{0});
  // Alternately and repeatedly, so that each kernel finds what the others have left.
  for (int round = 0; round < 2; ++round) {
    for (const auto kernel :
         {static_shared_is_fresh, template_shared_is_fresh<5>, template_shared_is_fresh<4096>,
          inline_shared_is_fresh, inline_shared_is_fresh_elsewhere, other_file_shared_is_fresh}) {
      REQUIRE(launch(kernel, {100, 1}, stale.data()) == cudaSuccess);
      CHECK(stale.first() == 0);
    }
  }
}

TEST_CASE("the NaN fill can be switched off: memory then holds zeros") {
  const Defaults defaults;
  DeviceArray<unsigned> stale(std::vector<unsigned>{0});
  cuda_on_cpu::control::set_nan_fill(false);
  DeviceArray<int> memory(100);
  CHECK(memory.host() == std::vector<int>(100, 0));
  REQUIRE(launch(template_shared_is_fresh<5>, {10, 1}, stale.data()) == cudaSuccess);
  CHECK(stale.first() == 10 * 5 * sizeof(float));
}

TEST_CASE("shared memory can be aligned") {
  const Defaults defaults;
  DeviceArray<unsigned long long> misalignment(1);
  REQUIRE(launch(aligned_shared, {1, 1}, misalignment.data()) == cudaSuccess);
  CHECK(misalignment.first() == 0);
}

TEST_CASE("a write beyond a static shared variable is an error that names its declaration") {
  const Defaults defaults;
  if (kAddressSanitizer) return;  // which ends the process instead: see sanitized_program.cpp
  constexpr int kBytes[] = {17, 32, 12}, kGuard = 120;
  for (int variable = 0; variable < 3; ++variable) {
    const int bytes = kBytes[variable];
    for (const bool nan_fill : {true, false}) {
      cuda_on_cpu::control::set_nan_fill(nan_fill);
      CHECK(launch(write_static_shared, {1, 1}, variable, bytes - 1) == cudaSuccess);
      for (const int behind : {0, 1, kGuard / 2, kGuard - 1}) {
        CHECK(launch(write_static_shared, {1, 1}, variable, bytes + behind) ==
              cudaErrorIllegalAddress);
        CHECK(report_names("write_static_shared", "block (0,0,0)",
                           place_of("static_shared.cu", "variable " + std::to_string(variable)),
                           "first " + std::to_string(behind) + " bytes beyond"));
      }
    }
  }
  CHECK(launch(write_static_shared, {1, 1}, 0, 0) == cudaSuccess);
}

TEST_CASE(
    "dynamic shared memory is initialised with NaN bytes for every block, and aligned to 1024") {
  const Defaults defaults;
  DeviceArray<unsigned> stale(std::vector<unsigned>{0});
  DeviceArray<unsigned long long> address(1);
  for (const unsigned bytes : {1000u, 48u * 1024, 4u}) {
    REQUIRE(launch(dynamic_shared_is_fresh, {50, 1, bytes}, stale.data(), bytes, address.data()) ==
            cudaSuccess);
    CHECK(stale.first() == 0);
    CHECK(address.first() % 1024 == 0);
  }
}

TEST_CASE("a write beyond dynamic shared memory is an error that names the offset") {
  const Defaults defaults;
  if (kAddressSanitizer) return;  // which ends the process instead: see sanitized_program.cpp
  CHECK(launch(write_dynamic_shared, {4, 1, 100}, 99) == cudaSuccess);
  for (const unsigned offset : {100u, 103u, 1000u}) {
    CHECK(launch(write_dynamic_shared, {4, 1, 100}, offset) == cudaErrorIllegalAddress);
    CHECK(report_names("write_dynamic_shared", "100 bytes of dynamic shared memory",
                       "offset " + std::to_string(offset)));
  }
  CHECK(launch(write_dynamic_shared, {4, 1}, 0) == cudaErrorIllegalAddress);
  CHECK(launch(write_dynamic_shared, {4, 1, 100}, 99) == cudaSuccess);
}

TEST_CASE("the shared memory of a kernel is its declared variables plus that of the launch") {
  const Defaults defaults;
  DeviceArray<unsigned> stale(std::vector<unsigned>{0});
  const auto kernel = template_shared_is_fresh<4096>;
  constexpr unsigned kDeclared = 4096 * sizeof(float);
  const auto launch_with = [&](unsigned bytes) {
    return launch(kernel, {1, 1, bytes}, stale.data());
  };
  const auto allow = [&](unsigned bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes));
  };
  cudaFuncAttributes attributes;
  REQUIRE(cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess);
  CHECK(attributes.sharedSizeBytes == kDeclared);
  CHECK(attributes.maxDynamicSharedSizeBytes == int{48 * 1024 - kDeclared});
  CHECK(launch_with(48 * 1024 - kDeclared) == cudaSuccess);
  CHECK(launch_with(48 * 1024 - kDeclared + 1) == cudaErrorInvalidValue);
  CHECK(report_names("32769 bytes of dynamic shared memory are more", "beside the 16384"));
  CHECK(allow(227 * 1024 - kDeclared + 1) == cudaErrorInvalidValue);
  CHECK(allow(227 * 1024 - kDeclared) == cudaSuccess);
  CHECK(launch_with(227 * 1024 - kDeclared) == cudaSuccess);
}
