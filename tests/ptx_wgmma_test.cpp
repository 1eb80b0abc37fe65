/// @file ptx_wgmma_test.cpp
/// @brief wgmma, whose factors lie in shared memory: the wrappers of core/cuda/ptx.hpp.
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
  for (const FactorType type : kTypes) {
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
      if (c.b.piece_bytes != 0 && type == FactorType::tf32) continue;
      if (c.a.in_registers && type != FactorType::tf32) continue;
      std::mt19937 random(3);
      const auto next = [&] { return static_cast<float>(random() % 201) - 100.0f; };
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

}  // namespace convladder::testing
