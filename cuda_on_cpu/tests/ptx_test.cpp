#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cuda_on_cpu/ptx.hpp>
#include <limits>
#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

using cuda_on_cpu::control::ThreadOrder;
constexpr ThreadOrder kOrders[] = {ThreadOrder::forward, ThreadOrder::reverse,
                                   ThreadOrder::shuffled};

std::vector<unsigned> bits_of(const std::vector<float>& values) {
  std::vector<unsigned> bits(values.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = std::bit_cast<unsigned>(values[i]);
  return bits;
}

/// d + a * b with a [16][8], b [8][8], d [16][8].
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b,
                           const std::vector<float>& d) {
  DeviceArray<unsigned> on_device_a(bits_of(a)), on_device_b(bits_of(b));
  DeviceArray<float> on_device_d(d);
  REQUIRE(launch(multiply_matrices, {1, 32}, on_device_a.data(), on_device_b.data(),
                 on_device_d.data()) == cudaSuccess);
  return on_device_d.host();
}

/// With a[0][0] * b[0][0] alone, added to `sum`.
float multiply_add(float a, float b, float sum) {
  std::vector<float> as(128), bs(64), ds(128);
  as[0] = a, bs[0] = b, ds[0] = sum;
  return product(as, bs, ds)[0];
}

}  // namespace

TEST_CASE("ldmatrix spreads matrices of 8 rows of 16 bytes over the lanes") {
  const Defaults defaults;
  std::vector<unsigned> rows(128);
  std::iota(rows.begin(), rows.end(), 1u);
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    DeviceArray<unsigned> in(rows), x1(32), x2(64), x4(128);
    REQUIRE(launch(load_matrices, {1, 32}, in.data(), x1.data(), x2.data(), x4.data()) ==
            cudaSuccess);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      CAPTURE(lane);
      const auto expected = [&](std::size_t matrix) {
        return rows[(8 * matrix + lane / 4) * 4 + lane % 4];
      };
      CHECK(x1.host()[lane] == expected(0));
      for (std::size_t m = 0; m < 2; ++m) CHECK(x2.host()[2 * lane + m] == expected(m));
      for (std::size_t m = 0; m < 4; ++m) CHECK(x4.host()[4 * lane + m] == expected(m));
    }
  }
}

TEST_CASE("the rows of ldmatrix must be aligned to 16 bytes") {
  const Defaults defaults;
  CHECK(launch(load_misaligned_matrix, {1, 32}) == cudaErrorMisalignedAddress);
  CHECK(report_names("thread (5,0,0)", "ldmatrix.x4", place_of("ptx.cu", "misaligned row")));
}

TEST_CASE("mma multiplies matrices that are spread over the lanes") {
  const Defaults defaults;
  std::vector<float> a(128), b(64), d(128), expected(128);
  for (std::size_t i = 0; i < 128; ++i) a[i] = static_cast<float>(i * i % 31) - 15;
  for (std::size_t i = 0; i < 64; ++i) b[i] = static_cast<float>(i * i * i % 23) - 11;
  for (std::size_t i = 0; i < 128; ++i) d[i] = static_cast<float>(1000 * i);
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      expected[m * 8 + n] = d[m * 8 + n];
      for (std::size_t k = 0; k < 8; ++k) expected[m * 8 + n] += a[m * 8 + k] * b[k * 8 + n];
    }
  }
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    CHECK(product(a, b, d) == expected);
  }
}

TEST_CASE("mma ignores the bits of its factors that TF32 has not, and truncates its sums") {
  const Defaults defaults;
  const float ulp = std::numeric_limits<float>::epsilon();  // of 1
  CHECK(multiply_add(1 + 0x1p-10f, 1, 0) == 1 + 0x1p-10f);  // the last bit of TF32
  CHECK(multiply_add(1 + 0x1.ffcp-11f, 1, 0) == 1);         // all bits below
  CHECK(multiply_add(-1 - 0x1.ffcp-11f, 3, 0) == -3);       // towards zero
  CHECK(multiply_add(1, 0.75f * ulp, 1) == 1);              // nearest would be 1 + ulp
  CHECK(multiply_add(1, -0.75f * ulp, -1) == -1);
  CHECK(multiply_add(0x1p100f, 0x1p100f, 0) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(multiply_add(std::numeric_limits<float>::quiet_NaN(), 1, 0)));
}

TEST_CASE("mma takes a whole warp") {
  const Defaults defaults;
  CHECK(launch(multiply_in_part_of_a_warp, {1, 32}) == cudaErrorLaunchFailure);
  CHECK(report_names("mma.sync", "some lanes have exited", place_of("ptx.cu", "not all lanes")));
}

TEST_CASE("cvt.rna.tf32 rounds to 10 bits of fraction, ties away from zero") {
  const auto rounded = [](float value) {
    return std::bit_cast<float>(cuda_on_cpu::ptx::cvt_rna_tf32(value));
  };
  CHECK(rounded(1) == 1);
  CHECK(rounded(1 + 0x1p-11f) == 1 + 0x1p-10f);
  CHECK(rounded(-1 - 0x1p-11f) == -1 - 0x1p-10f);
  CHECK(rounded(1 + 0x1.ffcp-12f) == 1);
  CHECK(rounded(0x1.ffep0f) == 2);
  CHECK(rounded(-0.0f) == 0);
  CHECK(rounded(std::numeric_limits<float>::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(rounded(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(rounded(std::bit_cast<float>(0xffffffffu))));
}
