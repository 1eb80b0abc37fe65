/// @file ptx_test.cpp
/// @brief The wrappers of core/cuda/ptx.hpp: what each lane gets, on cuda_on_cpu and on a GPU, from
/// data that tell all places apart. Expected values are the PTX manual's formulas, written out.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "core/device.hpp"
#include "tests/ptx_probe.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {
namespace {

/// The probes of a place.
struct Probes {
  const char* place;
  Registers (*load_matrices)(const Registers&, const Registers&, int);
  Registers (*multiply)(const Registers&, const Registers&, const Registers&);
  Registers (*round_to_tf32)(const Registers&);
};

/// cuda_on_cpu's, and the GPU's where there is one that has the instructions.
std::vector<Probes> all_probes() {
  std::vector<Probes> probes = {{"emulated", emulated::ptx_probe::load_matrices,
                                 emulated::ptx_probe::multiply,
                                 emulated::ptx_probe::round_to_tf32}};
#ifdef CONVLADDER_HAVE_NVCC
  if (device_at(Where::gpu) != nullptr && gpu::ptx_probe::has_tensor_cores()) {
    probes.push_back({"gpu", gpu::ptx_probe::load_matrices, gpu::ptx_probe::multiply,
                      gpu::ptx_probe::round_to_tf32});
  }
#endif
  return probes;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
float real(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// a [16][8], b [8][8], d [16][8] by row and column.
struct Product {
  std::vector<float> a = std::vector<float>(128), b = std::vector<float>(64),
                     d = std::vector<float>(128);
};

/// Runs the probe on the fragments of `in`; d + a * b by row and column.
std::vector<float> multiplied(const Probes& probes, const Product& in) {
  Registers a(128), b(64), d(128);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t group = lane / 4, place = lane % 4;
    for (std::size_t i = 0; i < 4; ++i) {
      a[4 * lane + i] = bits(in.a[(group + i % 2 * 8) * 8 + place + i / 2 * 4]);
      d[4 * lane + i] = bits(in.d[(group + i / 2 * 8) * 8 + 2 * place + i % 2]);
    }
    for (std::size_t i = 0; i < 2; ++i) b[2 * lane + i] = bits(in.b[(place + i * 4) * 8 + group]);
  }
  const Registers out = probes.multiply(a, b, d);
  std::vector<float> result(128);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      result[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = real(out[4 * lane + i]);
    }
  }
  return result;
}

/// Fills a product with numbers from `next`.
template <class Next>
Product product_of(Next next) {
  Product product;
  for (float& value : product.a) value = next();
  for (float& value : product.b) value = next();
  for (float& value : product.d) value = next();
  return product;
}

}  // namespace

TEST_CASE("ptx: ldmatrix gives lane l the word l % 4 of row l / 4 of each matrix") {
  Registers rows(128), first(32);
  std::iota(rows.begin(), rows.end(), 1000u);
  for (std::uint32_t i = 0; i < 32; ++i) first[i] = i * 11 % 32;  // rows in no order
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    for (const int matrices : {2, 4}) {
      Registers expected;
      for (std::size_t lane = 0; lane < 32; ++lane) {
        for (std::size_t m = 0; m < static_cast<std::size_t>(matrices); ++m) {
          expected.push_back(rows[4 * first[8 * m + lane / 4] + lane % 4]);
        }
      }
      CHECK(probes.load_matrices(rows, first, matrices) == expected);
    }
  }
}

TEST_CASE("ptx: mma.sync multiplies integers exactly") {
  std::mt19937 random(1);
  const Product in = product_of([&] { return static_cast<float>(random() % 2001) - 1000.0f; });
  std::vector<float> expected = in.d;
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      for (std::size_t k = 0; k < 8; ++k) expected[8 * m + n] += in.a[8 * m + k] * in.b[8 * k + n];
    }
  }
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    CHECK(multiplied(probes, in) == expected);
  }
}

TEST_CASE("ptx: mma.sync truncates its factors to TF32, and errs by less than 8 units of its sum") {
  std::mt19937 random(2);
  const Product in =
      product_of([&] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; });
  const auto truncated = [](float value) { return double{real(bits(value) & ~0x1fffu)}; };
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    const std::vector<float> result = multiplied(probes, in);
    for (std::size_t m = 0; m < 16; ++m) {
      for (std::size_t n = 0; n < 8; ++n) {
        double expected = double{in.d[8 * m + n]}, magnitude = std::fabs(expected);
        for (std::size_t k = 0; k < 8; ++k) {
          const double term = truncated(in.a[8 * m + k]) * truncated(in.b[8 * k + n]);
          expected += term;
          magnitude += std::fabs(term);
        }
        const double error = std::fabs(double{result[8 * m + n]} - expected);
        CHECK_FALSE(!(error <= 8 * 0x1p-24 * magnitude));
      }
    }
  }
}

TEST_CASE("ptx: cvt.rna.tf32 rounds to nearest, ties away from zero") {
  Registers values(32, bits(1.0f)), expected(32, bits(1.0f));
  const auto set = [&](std::size_t i, float value, float rounded) {
    values[i] = bits(value);
    expected[i] = bits(rounded);
  };
  set(0, 1 + 0x1p-11f, 1 + 0x1p-10f);
  set(1, -1 - 0x1p-11f, -1 - 0x1p-10f);
  set(2, 1 + 0x1.ffcp-12f, 1.0f);
  set(3, 0x1.ffep0f, 2.0f);
  set(4, -0.0f, -0.0f);
  set(5, 0x1p-149f, 0.0f);
  set(6, 3.14159274f, 0x1.92p1f);
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    Registers rounded = probes.round_to_tf32(values);
    for (std::uint32_t& value : rounded) value &= ~0x1fffu;  // the manual leaves the others open
    CHECK(rounded == expected);
  }
}

}  // namespace convladder::testing
