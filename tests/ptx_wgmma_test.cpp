/// @file ptx_wgmma_test.cpp
/// @brief wgmma with operands in shared memory: the wrappers of core/cuda/ptx.hpp.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tests/ptx_tools.hpp"

namespace convladder::testing {
namespace {

/// d [64][n] + a [64][depth] * b [depth][n], by row and column, from a warpgroup's registers.
std::vector<float> multiplied(const Probes& probes, FactorType type, const WgmmaFactor& a,
                              const WgmmaFactor& b, int n, int steps, const std::vector<float>& as,
                              const std::vector<float>& bs, const std::vector<float>& d) {
  const auto columns = static_cast<std::size_t>(n), part = per_register(type),
             words = 8 * static_cast<std::size_t>(steps), depth = words * part;
  Registers image(12 * 1024);
  const auto put = [&](const WgmmaFactor& f, std::size_t row, std::size_t word,
                       const float* values) {
    const std::size_t plain = static_cast<std::size_t>(f.begin) / 4 +
                              row / 8 * static_cast<std::size_t>(f.group_bytes) / 4 +
                              row % 8 * static_cast<std::size_t>(f.row_bytes) / 4 + word;
    image[f.in_registers ? plain : swizzled(plain, f.row_bytes)] = packed(type, values);
  };
  for (std::size_t k = 0; k < words; ++k) {
    for (std::size_t i = 0; i < 64; ++i) put(a, i, k, &as[i * depth + k * part]);
    for (std::size_t j = 0; b.piece_bytes == 0 && j < columns; ++j) {
      put(b, j, k, &bs[j * depth + k * part]);
    }
  }
  for (std::size_t k = 0; b.piece_bytes != 0 && k < depth; ++k) {
    for (std::size_t j = 0; j < columns; j += 2) {
      const std::size_t plain = static_cast<std::size_t>(b.begin) / 4 + k * 32 +
                                j / 64 * static_cast<std::size_t>(b.piece_bytes) / 4 + j % 64 / 2;
      image[swizzled(plain, 128)] = packed(type, &bs[j * depth + k], depth);
    }
  }
  const auto place = [=](std::size_t thread, std::size_t i) {
    const std::size_t row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    return row * columns + i / 4 * 8 + 2 * (thread % 4) + i % 2;
  };
  Registers registers(64 * columns);
  for (std::size_t i = 0; i < registers.size(); ++i) {
    registers[i] = bits(d[place(i / (columns / 2), i % (columns / 2))]);
  }
  const Registers out = probes.multiply_in_warpgroup(type, image, a, b, n, steps, registers);
  std::vector<float> result(64 * columns);
  for (std::size_t i = 0; i < out.size(); ++i) {
    result[place(i / (columns / 2), i % (columns / 2))] = real(out[i]);
  }
  return result;
}

}  // namespace

TEST_CASE("ptx: wgmma multiplies integers exactly") {
  struct Case {
    WgmmaFactor a, b;
    int n, steps;
  };
  for (const FactorType type : kWgmmaTypes) {
    CAPTURE(static_cast<int>(type));
    for (const Case& c :
         {Case{{0, 1024}, {8192, 1024}, 32, 4}, Case{{0, 1024}, {8192, 1024}, 64, 4},
          Case{{0, 1024}, {8192, 1024}, 128, 3}, Case{{0, 1024}, {8192, 1024}, 256, 4},
          // Factors that do not begin where the swizzle's pattern does, or with gaps.
          Case{{384, 1024}, {10240, 1024}, 64, 4}, Case{{0, 1280}, {16384, 2048}, 64, 1},
          // Shorter rows.
          Case{{0, 512, 64}, {4096, 512, 64}, 32, 2}, Case{{0, 256, 32}, {2048, 256, 32}, 16, 1},
          Case{{512, 512, 64}, {8192, 256, 32}, 16, 1},
          // b as it lies in a row-major matrix.
          Case{{0, 1024}, {8192, 1024, 128, 8192}, 64, 4},
          Case{{0, 1024}, {8192, 1024, 128, 8192}, 256, 4},
          Case{{0, 1024}, {8192, 1024, 128, 2048}, 256, 1},
          // a in registers.
          Case{{0, 1024, 128, 0, true}, {8192, 1024}, 64, 4},
          Case{{0, 1024, 128, 0, true}, {8192, 1024}, 128, 1},
          Case{{0, 1024, 128, 0, true}, {8192, 1024}, 256, 4}}) {
      CAPTURE(c.n);
      CAPTURE(c.b.piece_bytes);
      CAPTURE(c.a.in_registers);
      const bool has_rows_across = type == FactorType::f16 || type == FactorType::bf16;
      if (c.b.piece_bytes != 0 && !has_rows_across) continue;
      if (c.a.in_registers && type != FactorType::tf32) continue;
      std::mt19937 random(3);
      // Of 8 bits, sums are exact up to 2^14.
      const auto most = type == FactorType::e4m3 ? 8u : 100u;
      const auto next = [&] {
        return static_cast<float>(random() % (2 * most + 1)) - static_cast<float>(most);
      };
      const auto columns = static_cast<std::size_t>(c.n),
                 depth = 8 * per_register(type) * static_cast<std::size_t>(c.steps);
      std::vector<float> a(64 * depth), b(columns * depth), d(64 * columns);
      for (float& value : a) value = next();
      for (float& value : b) value = next();
      for (float& value : d) value = next();
      std::vector<float> expected = d;
      for (std::size_t i = 0; i < 64; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          for (std::size_t k = 0; k < depth; ++k) {
            expected[i * columns + j] += a[i * depth + k] * b[j * depth + k];
          }
        }
      }
      for (const Probes& probes : hopper_probes()) {
        CAPTURE(probes.place);
        CHECK(multiplied(probes, type, c.a, c.b, c.n, c.steps, a, b, d) == expected);
      }
    }
  }
}

TEST_CASE("ptx: wgmma truncates factors to TF32, and errs by less than 8 units of its sum") {
  for (const FactorType type : kTypes) {
    CAPTURE(static_cast<int>(type));
    std::mt19937 random(4);
    const auto next = [&] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; };
    const std::size_t depth = 8 * per_register(type);
    std::vector<float> a(64 * depth), b(64 * depth), d(64 * 64);
    for (float& value : a) value = next();
    for (float& value : b) value = next();
    for (float& value : d) value = next();
    const bool with_registers = type == FactorType::tf32;
    for (const Probes& probes : hopper_probes()) {
      CAPTURE(probes.place);
      const std::vector<float> result =
          multiplied(probes, type, {0, 1024, 128, 0, with_registers}, {8192, 1024}, 64, 1, a, b, d);
      for (std::size_t i = 0; i < 64; ++i) {
        for (std::size_t j = 0; j < 64; ++j) {
          double expected = double{d[i * 64 + j]}, magnitude = std::fabs(expected);
          for (std::size_t k = 0; k < depth; ++k) {
            const double term =
                as_factor(type, a[i * depth + k]) * as_factor(type, b[j * depth + k]);
            expected += term;
            magnitude += std::fabs(term);
          }
          const double error = std::fabs(double{result[i * 64 + j]} - expected);
          CHECK_FALSE(!(error <= 8 * 0x1p-24 * magnitude));
        }
      }
    }
  }
}

namespace {

/// A number as a fraction of at least 1, or 0, times 2^exponent; of those of 8 bits below 2^-6, a
/// fraction of less.
struct Split {
  double fraction;
  int exponent;
};
Split split(double value, int least_exponent) {
  if (value == 0) return {0, -1000};
  const int exponent = std::max(std::ilogb(value), least_exponent);
  return {std::ldexp(value, -exponent), exponent};
}

/// The accumulation of FP8 products by tensor cores: MMA-Sim's rule.
float added_in_13_bits(float old, const float* a, const float* b, std::size_t depth) {
  std::vector<Split> terms = {split(double{old}, -126)};
  for (std::size_t k = 0; k < depth; ++k) {
    const Split one = split(as_factor(FactorType::e4m3, a[k]), -6),
                other = split(as_factor(FactorType::e4m3, b[k]), -6);
    terms.push_back({one.fraction * other.fraction, one.exponent + other.exponent});
  }
  int largest = -1000;
  for (const Split& term : terms) largest = std::max(largest, term.exponent);
  double sum = 0;
  for (const Split& term : terms)
    sum += std::trunc(std::ldexp(term.fraction, 13 + term.exponent - largest));
  const Split result = split(std::ldexp(sum, largest - 13), -126);
  return static_cast<float>(
      std::ldexp(std::trunc(std::ldexp(result.fraction, 13)), result.exponent - 13));
}

}  // namespace

TEST_CASE("ptx: wgmma accumulates FP8 products with 13 fraction bits, bit by bit") {
  constexpr std::size_t kDepth = 32;
  std::mt19937 random(5);
  // Numbers of all sizes, so that terms are cut off in part and as a whole; and of one size.
  for (const int octaves : {1, 3, 8, 14}) {
    CAPTURE(octaves);
    const auto next = [&] {
      const auto exponent = static_cast<int>(random() % static_cast<unsigned>(octaves)) - 9;
      return std::ldexp(static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f, exponent);
    };
    std::vector<float> a(64 * kDepth), b(64 * kDepth), d(64 * 64);
    for (float& value : a) value = next();
    for (float& value : b) value = next();
    for (float& value : d) value = next() * next() * 32;
    // Products that cancel, so that what is left of the others shows; old sums larger than all.
    a[0] = 15, b[0] = 15, a[1] = -15, b[1] = 15;
    for (std::size_t i = 0; i < 64; ++i) d[i] = std::ldexp(1.0f, static_cast<int>(i) / 2);
    for (const Probes& probes : hopper_probes()) {
      CAPTURE(probes.place);
      const std::vector<float> result =
          multiplied(probes, FactorType::e4m3, {0, 1024}, {8192, 1024}, 64, 1, a, b, d);
      for (std::size_t i = 0; i < 64; ++i) {
        for (std::size_t j = 0; j < 64; ++j) {
          CAPTURE(i);
          CAPTURE(j);
          REQUIRE(bits(result[i * 64 + j]) ==
                  bits(added_in_13_bits(d[i * 64 + j], &a[i * kDepth], &b[j * kDepth], kDepth)));
        }
      }
    }
  }
}

TEST_CASE("ptx: wgmma loses terms that are 2^14 times smaller than an FP8 accumulator") {
  std::vector<float> a(64 * 32), b(16 * 32), d(64 * 16);
  for (std::size_t k = 0; k < 32; ++k) {
    b[k] = 1;
    for (std::size_t i = 0; i < 64; ++i) a[i * 32 + k] = 1;
  }
  d[0] = 8192, d[16] = 16384, d[32] = -16384;
  for (const Probes& probes : hopper_probes()) {
    CAPTURE(probes.place);
    const std::vector<float> result =
        multiplied(probes, FactorType::e4m3, {0, 256, 32}, {2048, 256, 32}, 16, 1, a, b, d);
    CHECK(result[0] == 8224);     // 32 ones more
    CHECK(result[16] == 16384);   // each is cut off
    CHECK(result[32] == -16384);  // towards zero
  }
}

}  // namespace convladder::testing
