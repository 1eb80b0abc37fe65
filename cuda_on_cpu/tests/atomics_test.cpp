#include <doctest/doctest.h>

#include "kernels.hpp"
#include "launch.hpp"

TEST_CASE("atomic additions from all blocks are all counted") {
  const Defaults defaults;
  constexpr unsigned kThreads = 200 * 64;
  DeviceArray<int> i(std::vector<int>{0});
  DeviceArray<unsigned> u(std::vector<unsigned>{0});
  DeviceArray<unsigned long long> ull(std::vector<unsigned long long>{0});
  DeviceArray<float> f(std::vector<float>{0});
  DeviceArray<double> d(std::vector<double>{0});
  REQUIRE(launch(add_from_all, {200, 64}, i.data(), u.data(), ull.data(), f.data(), d.data()) ==
          cudaSuccess);
  CHECK(i.first() == -static_cast<int>(kThreads));
  CHECK(u.first() == 2 * kThreads);
  CHECK(ull.first() == static_cast<unsigned long long>(kThreads) << 33);
  CHECK(f.first() == 0.5f * kThreads);
  CHECK(d.first() == 0.25 * kThreads);
}

TEST_CASE("the other atomics do what their names say") {
  const Defaults defaults;
  DeviceArray<int> min(std::vector<int>{0}), max(std::vector<int>{0}), cas(std::vector<int>{0});
  DeviceArray<unsigned> bits(std::vector<unsigned>{0, ~0u, 0, 0, 1000});
  DeviceArray<unsigned> inc(std::vector<unsigned>{0}), dec(std::vector<unsigned>{0});
  REQUIRE(launch(other_atomics, {8, 64}, min.data(), max.data(), bits.data(), inc.data(),
                 dec.data(), cas.data()) == cudaSuccess);
  CHECK(min.first() == -5);
  CHECK(max.first() == 511);
  CHECK(bits.host() == std::vector<unsigned>{~0u, 0, 0, 7, 1000 - 512});
  CHECK(inc.first() == 512 % 10);
  CHECK(dec.first() == 10 - 512 % 10);
  CHECK(cas.first() == 512);
}

TEST_CASE("mathematical functions and intrinsics have CUDA's values") {
  const Defaults defaults;
  DeviceArray<float> f(7);
  DeviceArray<int> i(6);
  DeviceArray<unsigned> u(5);
  REQUIRE(launch(math_functions, {1, 1}, f.data(), i.data(), u.data()) == cudaSuccess);
  CHECK(f.host() == std::vector<float>{10, 10, 0.5f, 0.25f, 4, 1, 1});
  CHECK(i.host() == std::vector<int>{8, 31, 4, -15, 2, 2});
  CHECK(u.host() == std::vector<unsigned>{0x80000000u, 3, 6, 4, 3});
}

TEST_CASE("vector types have CUDA's sizes and alignments") {
  CHECK(sizeof(float3) == 12);
  CHECK(alignof(float3) == 4);
  CHECK(alignof(float2) == 8);
  CHECK(alignof(float4) == 16);
  CHECK(alignof(int4) == 16);
  CHECK(alignof(char4) == 4);
  CHECK(alignof(short4) == 8);
  CHECK(alignof(double2) == 16);
  CHECK(sizeof(double3) == 24);
  CHECK(make_float4(1, 2, 3, 4).w == 4);
  CHECK(make_uint2(1, 2).y == 2);
  CHECK(dim3(5).z == 1);
  CHECK(dim3(make_uint3(1, 2, 3)).y == 2);
}
