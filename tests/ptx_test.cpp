/// @file ptx_test.cpp
/// @brief The wrappers of core/cuda/ptx.hpp: what each lane gets, on cuda_on_cpu and on a GPU, from
/// data that tell all places apart. Expected values are the PTX manual's formulas, written out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/ptx_tools.hpp"

namespace convladder::testing {
namespace {

/// a [16][depth], b [depth][8], d [16][8] by row and column.
struct Product {
  FactorType type = FactorType::tf32;
  std::size_t depth = 8 * per_register(type);
  std::vector<float> a = std::vector<float>(16 * depth), b = std::vector<float>(8 * depth),
                     d = std::vector<float>(128);
};

/// Runs the probe on the fragments of `in`; d + a * b by row and column.
std::vector<float> multiplied(const Probes& probes, const Product& in) {
  const std::size_t part = per_register(in.type);
  Registers a(128), b(64), d(128);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t group = lane / 4, place = lane % 4;
    for (std::size_t i = 0; i < 4; ++i) {
      a[4 * lane + i] =
          packed(in.type, &in.a[(group + i % 2 * 8) * in.depth + (place + i / 2 * 4) * part]);
      d[4 * lane + i] = bits(in.d[(group + i / 2 * 8) * 8 + 2 * place + i % 2]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      b[2 * lane + i] = packed(in.type, &in.b[(place + i * 4) * part * 8 + group], 8);
    }
  }
  const Registers out = probes.multiply(in.type, a, b, d);
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
Product product_of(FactorType type, Next next) {
  Product product{.type = type};
  for (float& value : product.a) value = next();
  for (float& value : product.b) value = next();
  for (float& value : product.d) value = next();
  return product;
}

}  // namespace

TEST_CASE("launches: what a kernel declares counts beside its dynamic shared memory") {
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    for (const LaunchedBy how :
         {LaunchedBy::launch, LaunchedBy::launch_early, LaunchedBy::launch_cooperatively}) {
      CAPTURE(static_cast<int>(how));
      // Together up to 48 KB, more, and more by themselves.
      for (const std::size_t kilobytes : {0u, 4u, 8u, 9u, 20u, 48u, 49u}) {
        CAPTURE(kilobytes);
        const Registers words = probes.through_shared_memory(how, kilobytes * 1024);
        Registers expected(words.size());
        std::iota(expected.begin(), expected.end(), 0u);
        CHECK(words == expected);
      }
    }
  }
}

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
      CHECK(probes.load_matrices(rows, first, matrices, false) == expected);
    }
  }
}

TEST_CASE("ptx: ldmatrix.trans gives lane l two elements of column l / 4 of each matrix") {
  Registers rows(128), first(32);
  for (std::uint32_t i = 0; i < 128; ++i) rows[i] = 2 * i | (2 * i + 1) << 16;
  for (std::uint32_t i = 0; i < 32; ++i) first[i] = i * 11 % 32;
  const auto at = [&](std::size_t row, std::size_t column) {
    return rows[4 * first[row] + column / 2] >> 16 * (column % 2) & 0xffffu;
  };
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    for (const int matrices : {2, 4}) {
      Registers expected;
      for (std::size_t lane = 0; lane < 32; ++lane) {
        for (std::size_t m = 0; m < static_cast<std::size_t>(matrices); ++m) {
          const std::size_t row = 8 * m + 2 * (lane % 4);
          expected.push_back(at(row, lane / 4) | at(row + 1, lane / 4) << 16);
        }
      }
      CHECK(probes.load_matrices(rows, first, matrices, true) == expected);
    }
  }
}

TEST_CASE("ptx: stmatrix.trans stores what ldmatrix.trans has loaded") {
  Registers rows(128), first(32);
  for (std::uint32_t i = 0; i < 128; ++i) rows[i] = 2 * i | (2 * i + 1) << 16;
  for (std::uint32_t i = 0; i < 32; ++i) first[i] = i * 11 % 32;
  for (const Probes& probes : all_probes()) {
    CAPTURE(probes.place);
    if (!probes.has_wgmma) continue;  // of the same GPUs
    CHECK(probes.store_matrices(probes.load_matrices(rows, first, 4, true), first) == rows);
  }
}

TEST_CASE("ptx: mma.sync multiplies integers exactly") {
  for (const FactorType type : kTypes) {
    CAPTURE(static_cast<int>(type));
    std::mt19937 random(1);
    const unsigned bound = type == FactorType::bf16 ? 256 : 1000;  // integers that the type has
    const Product in = product_of(type, [&] {
      return static_cast<float>(random() % (2 * bound + 1)) - static_cast<float>(bound);
    });
    std::vector<float> expected = in.d;
    for (std::size_t m = 0; m < 16; ++m) {
      for (std::size_t n = 0; n < 8; ++n) {
        for (std::size_t k = 0; k < in.depth; ++k) {
          expected[8 * m + n] += in.a[in.depth * m + k] * in.b[8 * k + n];
        }
      }
    }
    for (const Probes& probes : all_probes()) {
      CAPTURE(probes.place);
      CHECK(multiplied(probes, in) == expected);
    }
  }
}

TEST_CASE("ptx: mma.sync truncates factors to TF32, and errs by less than 8 units of its sum") {
  for (const FactorType type : kTypes) {
    CAPTURE(static_cast<int>(type));
    std::mt19937 random(2);
    const Product in =
        product_of(type, [&] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; });
    for (const Probes& probes : all_probes()) {
      CAPTURE(probes.place);
      const std::vector<float> result = multiplied(probes, in);
      for (std::size_t m = 0; m < 16; ++m) {
        for (std::size_t n = 0; n < 8; ++n) {
          double expected = double{in.d[8 * m + n]}, magnitude = std::fabs(expected);
          for (std::size_t k = 0; k < in.depth; ++k) {
            const double term =
                as_factor(type, in.a[in.depth * m + k]) * as_factor(type, in.b[8 * k + n]);
            expected += term;
            magnitude += std::fabs(term);
          }
          const double error = std::fabs(double{result[8 * m + n]} - expected);
          CHECK_FALSE(!(error <= 8 * 0x1p-24 * magnitude));
        }
      }
    }
  }
}

TEST_CASE("ptx: mma.sync handles subnormal, largest and infinite 16-bit values exactly") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const FactorType type : {FactorType::f16, FactorType::bf16}) {
    const bool is_half = type == FactorType::f16;
    for (const float value : {is_half ? 0x1p-24f : 0x1p-133f, is_half ? 0x1p-15f : 0x1p-127f,
                              is_half ? 65504.0f : 0x1.fep127f, infinity}) {
      CAPTURE(value);
      Product in{.type = type};
      in.a[0] = value;
      in.b[0] = -0.5f;
      for (std::size_t k = 1; k < in.depth; ++k) in.b[8 * k] = 1;  // times zero
      for (const Probes& probes : all_probes()) {
        CAPTURE(probes.place);
        CHECK(multiplied(probes, in)[0] == -0.5f * value);
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
