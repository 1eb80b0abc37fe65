#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cuda_on_cpu/readable.hpp>
#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"

TEST_CASE("asynchronous copies land only when waited for") {
  const Defaults defaults;
  std::vector<float> values(128);
  std::iota(values.begin(), values.end(), 1.0f);
  DeviceArray<float> in(values), out(128);
  REQUIRE(launch(copy_asynchronously<true>, {2, 32}, in.data(), out.data()) == cudaSuccess);
  CHECK(out.host() == values);
  REQUIRE(launch(copy_asynchronously<false>, {2, 32}, in.data(), out.data()) == cudaSuccess);
  for (const float value : out.host()) CHECK(std::isnan(value));
}

TEST_CASE("a wait for all batches but the last lands the others only") {
  const Defaults defaults;
  DeviceArray<float> in(std::vector<float>{3, 4}), first(2), second(2);
  REQUIRE(launch(two_batches, {1, 1}, in.data(), first.data(), second.data()) == cudaSuccess);
  CHECK(first.host()[0] == 3);
  CHECK(std::isnan(first.host()[1]));
  CHECK(second.host() == std::vector<float>{3, 4});
}

TEST_CASE("zero-filled bytes are not read from the source") {
  const Defaults defaults;
  // Two floats only: the memory after them must not be accessed.
  DeviceArray<float> in(std::vector<float>{3, 4}), out(4);
  REQUIRE(launch(zero_filled_copy, {1, 1}, in.data(), out.data()) == cudaSuccess);
  CHECK(out.host() == std::vector<float>{3, 4, 0, 0});
}

TEST_CASE("asynchronous copies must be aligned to their size") {
  const Defaults defaults;
  DeviceArray<float> in(8);
  CHECK(launch(misaligned_copy, {1, 1}, in.data()) == cudaErrorMisalignedAddress);
  CHECK(report_names("misaligned_copy", "source", place_of("async_copies.cu", "misaligned")));
}

TEST_CASE("an asynchronous copy that reads outside an allocation is an error") {
  const Defaults defaults;
  DeviceArray<float> in(10);
  CHECK(launch(copy_behind, {1, 1}, in.data(), 4, 0) == cudaSuccess);
  CHECK(launch(copy_behind, {1, 1}, in.data(), 8, 8) == cudaSuccess);
  CHECK(launch(copy_behind, {1, 1}, in.data(), 12, 16) == cudaSuccess);
  const std::string place = place_of("async_copies.cu", "behind");
  CHECK(launch(copy_behind, {1, 1}, in.data(), 8, 4) == cudaErrorIllegalAddress);
  CHECK(report_names("copy_behind", "12 bytes", "byte 32 of device allocation", place));
  CHECK(launch(copy_behind, {1, 1}, in.data(), 12, 0) == cudaErrorIllegalAddress);
  CHECK(report_names("copy_behind", "8 bytes after the end", place));
  CHECK(launch(copy_behind, {1, 1}, in.data(), -4, 0) == cudaErrorIllegalAddress);
  CHECK(report_names("copy_behind", "16 bytes before device allocation", place));
  // A part of it.
  cuda_on_cpu::control::set_readable(in.data() + 4, 16);
  CHECK(launch(copy_behind, {1, 1}, in.data(), 4, 0) == cudaSuccess);
  CHECK(launch(copy_behind, {1, 1}, in.data(), 0, 0) == cudaErrorIllegalAddress);
  CHECK(launch(copy_behind, {1, 1}, in.data(), 8, 12) == cudaErrorIllegalAddress);
}

TEST_CASE("threads that copy nothing asynchronously may follow threads that did") {
  const Defaults defaults;
  cuda_on_cpu::control::set_worker_threads(1);
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), 1.0f);
  DeviceArray<float> in(values), out(256);
  REQUIRE(launch(copy_by_some_threads, {1, 8}, in.data(), out.data(), 8) == cudaSuccess);
  // On the same OS thread, a block of more threads, none of which copies.
  REQUIRE(launch(copy_by_some_threads, {4, 256}, in.data(), out.data(), 0) == cudaSuccess);
  REQUIRE(launch(copy_by_some_threads, {4, 256}, in.data(), out.data(), 40) == cudaSuccess);
  const std::vector<float> result = out.host();
  for (std::size_t i = 0; i < 40; ++i) CHECK(result[i] == values[i]);
}
