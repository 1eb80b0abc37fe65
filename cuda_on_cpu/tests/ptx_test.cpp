#include <doctest/doctest.h>

#include <algorithm>
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

/// With only a[0][0] * b[0][0], added to `sum`.
float multiply_add(float a, float b, float sum) {
  std::vector<float> as(128), bs(64), ds(128);
  as[0] = a, bs[0] = b, ds[0] = sum;
  return product(as, bs, ds)[0];
}

/// Bits of fp16, for small integers, and of bf16.
std::uint16_t half_of(int value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}
std::uint16_t bfloat_of(int value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

/// d + a * b with a [16][16], b [16][8], d [16][8].
std::vector<float> half_product(const std::vector<std::uint16_t>& a,
                                const std::vector<std::uint16_t>& b, const std::vector<float>& d,
                                bool bfloat) {
  DeviceArray<std::uint16_t> on_device_a(a), on_device_b(b);
  DeviceArray<float> on_device_d(d);
  REQUIRE(launch(multiply_half_matrices, {1, 32}, on_device_a.data(), on_device_b.data(), bfloat,
                 on_device_d.data()) == cudaSuccess);
  return on_device_d.host();
}

/// With only a[0][0] * b[0][0], given as bits.
float half_multiply(std::uint16_t a, std::uint16_t b, bool bfloat) {
  std::vector<std::uint16_t> as(256), bs(128);
  as[0] = a, bs[0] = b;
  return half_product(as, bs, std::vector<float>(128), bfloat)[0];
}

}  // namespace

TEST_CASE("ldmatrix distributes matrices of 8 rows of 16 bytes over the lanes") {
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

TEST_CASE("ldmatrix.trans transposes matrices of 16-bit elements") {
  const Defaults defaults;
  std::vector<unsigned> rows(128);
  for (unsigned i = 0; i < 128; ++i) rows[i] = 2 * i | (2 * i + 1) << 16;  // counts elements
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    DeviceArray<unsigned> in(rows), x2(64), x4(128);
    REQUIRE(launch(load_transposed_matrices, {1, 32}, in.data(), x2.data(), x4.data()) ==
            cudaSuccess);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      CAPTURE(lane);
      const auto expected = [&](std::size_t matrix) {
        const auto low = static_cast<unsigned>((8 * matrix + 2 * (lane % 4)) * 8 + lane / 4);
        return low | (low + 8) << 16;
      };
      for (std::size_t m = 0; m < 2; ++m) CHECK(x2.host()[2 * lane + m] == expected(m));
      for (std::size_t m = 0; m < 4; ++m) CHECK(x4.host()[4 * lane + m] == expected(m));
    }
  }
}

TEST_CASE("stmatrix.trans is the inverse of ldmatrix.trans") {
  const Defaults defaults;
  std::vector<unsigned> fragments(128);
  for (unsigned i = 0; i < 128; ++i) fragments[i] = 2 * i | (2 * i + 1) << 16;
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    DeviceArray<unsigned> in(fragments), rows(128), unused(64), loaded(128);
    REQUIRE(launch(store_transposed_matrices, {1, 32}, in.data(), rows.data()) == cudaSuccess);
    // Row 3 of matrix 1: the high halves of the values that lanes 1, 5, 9 ... passed for it.
    for (std::size_t group = 0; group < 8; ++group) {
      const unsigned two = rows.host()[4 * (8 + 3) + group / 2];
      CHECK((two >> 16 * (group % 2) & 0xffffu) == fragments[4 * (4 * group + 1) + 1] >> 16);
    }
    REQUIRE(launch(load_transposed_matrices, {1, 32}, rows.data(), unused.data(), loaded.data()) ==
            cudaSuccess);
    CHECK(loaded.host() == fragments);
  }
}

TEST_CASE("the rows of ldmatrix and stmatrix must be aligned to 16 bytes") {
  const Defaults defaults;
  CHECK(launch(store_misaligned_matrix, {1, 32}) == cudaErrorMisalignedAddress);
  CHECK(
      report_names("thread (7,0,0)", "stmatrix.x4.trans", place_of("ptx.cu", "misaligned store")));
  CHECK(launch(load_misaligned_matrix, {1, 32}) == cudaErrorMisalignedAddress);
  CHECK(report_names("thread (5,0,0)", "ldmatrix.x4", place_of("ptx.cu", "misaligned row")));
}

TEST_CASE("mma multiplies matrices that are distributed over the warp") {
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

TEST_CASE("mma ignores the low bits of its operands beyond TF32, and truncates its sums") {
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

TEST_CASE("mma multiplies matrices of 16-bit elements") {
  const Defaults defaults;
  std::vector<std::uint16_t> a(256), b(128);
  std::vector<float> d(128);
  for (const bool bfloat : {false, true}) {
    const auto of = bfloat ? bfloat_of : half_of;
    const auto number_a = [](std::size_t i) { return static_cast<int>(i * i % 31) - 15; };
    const auto number_b = [](std::size_t i) { return static_cast<int>(i * i * i % 23) - 11; };
    for (std::size_t i = 0; i < 256; ++i) a[i] = of(number_a(i));
    for (std::size_t i = 0; i < 128; ++i) b[i] = of(number_b(i));
    for (std::size_t i = 0; i < 128; ++i) d[i] = static_cast<float>(1000 * i);
    std::vector<float> expected = d;
    for (std::size_t m = 0; m < 16; ++m) {
      for (std::size_t n = 0; n < 8; ++n) {
        for (std::size_t k = 0; k < 16; ++k) {
          expected[m * 8 + n] += static_cast<float>(number_a(m * 16 + k) * number_b(k * 8 + n));
        }
      }
    }
    for (const ThreadOrder order : kOrders) {
      cuda_on_cpu::control::set_thread_order(order, 3);
      CHECK(half_product(a, b, d, bfloat) == expected);
    }
  }
}

TEST_CASE("mma supports all fp16 and bf16 numbers") {
  const Defaults defaults;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int power : {-24, -15, -14, 0, 15}) {  // the least and the greatest, subnormal and not
    const float value = std::ldexp(1.0f, power);
    const auto bits = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
    CHECK(half_multiply(bits, half_of(1), false) == value);
    CHECK(half_multiply(bits, half_of(-3), false) == -3 * value);
  }
  CHECK(half_multiply(0x7bff, half_of(1), false) == 65504);
  CHECK(half_multiply(0x03ff, half_of(1), false) == 1023 * 0x1p-24f);
  CHECK(half_multiply(0x7c00, half_of(-1), false) == -infinity);
  CHECK(std::isnan(half_multiply(0x7e00, half_of(1), false)));
  CHECK(half_multiply(0x0001, bfloat_of(1), true) == 0x1p-133f);
  CHECK(half_multiply(0x7f7f, bfloat_of(-1), true) == -0x1.fep127f);
  CHECK(half_multiply(0xff80, bfloat_of(1), true) == -infinity);
  CHECK(std::isnan(half_multiply(0x7fff, bfloat_of(1), true)));
}

TEST_CASE("mma with a zero operand changes exactly the accumulators that zeros change") {
  const Defaults defaults;
  const float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {1, -2.5f, 0.0f, -0.0f, 0x1p-149f, infinity, -infinity, 0x1.fep127f};
  for (const float zero : {0.0f, -0.0f}) {
    for (const float other : {3.0f, -3.0f, infinity}) {
      for (const bool a_is_zero : {false, true}) {
        std::vector<float> a(128, zero), b(64, zero), d(128);
        (a_is_zero ? b : a)[a_is_zero ? 1 : 8] = other;  // column 1, or row 1
        for (const float& value : values) {
          // All of one value, since each lane's accumulators decide for all.
          std::fill(d.begin(), d.end(), value);
          const std::vector<float> found = product(a, b, d);
          for (std::size_t i = 0; i < 128; ++i) {
            double sum = double{d[i]};
            for (std::size_t k = 0; k < 8; ++k)
              sum += double{a[i / 8 * 8 + k]} * double{b[k * 8 + i % 8]};
            const auto expected = static_cast<float>(sum);
            CAPTURE(i);
            if (std::isnan(expected)) {
              REQUIRE(std::isnan(found[i]));
            } else {
              REQUIRE(std::bit_cast<unsigned>(found[i]) == std::bit_cast<unsigned>(expected));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("mma is executed by a whole warp") {
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
