/// @file ptx_test.cpp
/// @brief The wrappers of core/cuda/ptx.hpp: what each lane gets, on cuda_on_cpu and on a GPU, from
/// data that tell all places apart. Expected values are the PTX manual's formulas, written out.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/device.hpp"
#include "core/half.hpp"
#include "tests/ptx_probe.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {
namespace {

/// The probes of a place.
struct Probes {
  const char* place;
  Registers (*load_matrices)(const Registers&, const Registers&, int, bool);
  Registers (*multiply)(FactorType, const Registers&, const Registers&, const Registers&);
  Registers (*round_to_tf32)(const Registers&);
  Registers (*load_box)(const TensorLoad&, const Registers&);
  Registers (*copy_to_barrier)(const Registers&);
  Registers (*multiply_in_warpgroup)(FactorType, const Registers&, const WgmmaFactor&,
                                     const WgmmaFactor&, int, int, const Registers&);
  Registers (*through_shared_memory)(LaunchedBy, std::size_t);
  bool has_wgmma;
};

/// cuda_on_cpu's, and the GPU's where there is one that has the instructions.
std::vector<Probes> all_probes() {
  std::vector<Probes> probes = {
      {"emulated", emulated::ptx_probe::load_matrices, emulated::ptx_probe::multiply,
       emulated::ptx_probe::round_to_tf32, emulated::ptx_probe::load_box,
       emulated::ptx_probe::copy_to_barrier, emulated::ptx_probe::multiply_in_warpgroup,
       emulated::ptx_probe::through_shared_memory, true}};
#ifdef CONVLADDER_HAVE_NVCC
  if (device_at(Where::gpu) != nullptr && gpu::ptx_probe::has_tensor_cores()) {
    probes.push_back({"gpu", gpu::ptx_probe::load_matrices, gpu::ptx_probe::multiply,
                      gpu::ptx_probe::round_to_tf32, gpu::ptx_probe::load_box,
                      gpu::ptx_probe::copy_to_barrier, gpu::ptx_probe::multiply_in_warpgroup,
                      gpu::ptx_probe::through_shared_memory, gpu::ptx_probe::has_wgmma()});
  }
#endif
  return probes;
}

/// Those of the places that have tensor loads and wgmma.
std::vector<Probes> hopper_probes() {
  std::vector<Probes> probes = all_probes();
  std::erase_if(probes, [](const Probes& p) { return !p.has_wgmma; });
  return probes;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
float real(std::uint32_t bits) { return std::bit_cast<float>(bits); }

constexpr FactorType kTypes[] = {FactorType::tf32, FactorType::f16, FactorType::bf16};

/// Numbers in a register; the first one is in its low bits.
std::size_t per_register(FactorType type) { return type == FactorType::tf32 ? 1 : 2; }

/// The register that holds the numbers from `values` on.
std::uint32_t packed(FactorType type, const float* values, std::size_t stride = 1) {
  if (type == FactorType::tf32) return bits(values[0]);
  const auto one = [=](float value) -> std::uint32_t {
    return type == FactorType::f16 ? rounded_to<Half>(value).bits
                                   : rounded_to<BFloat16>(value).bits;
  };
  return one(values[0]) | one(values[stride]) << 16;
}

/// What a factor is to the tensor cores.
double as_factor(FactorType type, float value) {
  switch (type) {
    case FactorType::tf32: return double{real(bits(value) & ~0x1fffu)};
    case FactorType::f16: return double{to_float(rounded_to<Half>(value))};
    case FactorType::bf16: return double{to_float(rounded_to<BFloat16>(value))};
  }
  return 0;
}

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

TEST_CASE("ptx: mma.sync takes subnormal, greatest and infinite 16-bit numbers as they are") {
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

namespace {

/// An array of different numbers.
Registers counted(const std::vector<std::uint64_t>& dims) {
  std::size_t size = 1;
  for (const std::uint64_t n : dims) size *= n;
  Registers array(size);
  std::iota(array.begin(), array.end(), 1u);
  return array;
}

/// The element of `array` at `position`, or zero outside.
std::uint32_t element(const Registers& array, const std::vector<std::uint64_t>& dims,
                      const std::vector<int>& position) {
  std::size_t index = 0, stride = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (position[i] < 0 || position[i] >= static_cast<int>(dims[i])) return 0;
    index += static_cast<std::size_t>(position[i]) * stride;
    stride *= dims[i];
  }
  return array[index];
}

/// Where a swizzle of so many bytes puts a word.
std::size_t swizzled(std::size_t word, int span) {
  const std::size_t mask = span == 0 ? 0 : static_cast<std::size_t>(span) / 4 - 4;
  return word ^ (word >> 3 & mask);
}

/// Puts rows of `width` words where a load puts them.
Registers in_shared(const Registers& rows, std::size_t width, int span, std::size_t words) {
  Registers shared(words, kUntouched);
  const std::size_t pitch = std::max(width, static_cast<std::size_t>(span) / 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    shared[swizzled(i / width * pitch + i % width, span)] = rows[i];
  }
  return shared;
}

}  // namespace

TEST_CASE("ptx: tma_load brings boxes, zeros from outside the array, and swizzles them") {
  const std::vector<std::uint64_t> all_dims = {72, 9, 8, 5};
  const std::vector<std::uint32_t> all_boxes = {8, 7, 3, 2}, all_steps = {1, 1, 2, 1};
  const std::vector<int> all_at = {68, -2, 5, 4};
  for (std::size_t rank = 2; rank <= 4; ++rank) {
    const auto n = static_cast<std::ptrdiff_t>(rank);
    for (const int span : {0, 32, 64, 128}) {
      CAPTURE(rank);
      CAPTURE(span);
      TensorLoad load{.dims = {all_dims.begin(), all_dims.begin() + n},
                      .box = {all_boxes.begin(), all_boxes.begin() + n},
                      .steps = {all_steps.begin(), all_steps.begin() + n},
                      .at = {all_at.begin(), all_at.begin() + n}};
      load.swizzle = span;
      if (rank == 2 && span == 0) load.box[0] = 64;  // wider than any swizzle
      const Registers array = counted(load.dims);
      Registers rows;
      std::size_t count = 1;
      for (std::size_t i = 0; i < rank; ++i)
        count *= (load.box[i] + load.steps[i] - 1) / load.steps[i];
      for (std::size_t word = 0; word < count; ++word) {
        std::vector<int> position;
        std::size_t rest = word;
        for (std::size_t i = 0; i < rank; ++i) {
          const std::size_t size = (load.box[i] + load.steps[i] - 1) / load.steps[i];
          position.push_back(load.at[i] + static_cast<int>(rest % size * load.steps[i]));
          rest /= size;
        }
        rows.push_back(element(array, load.dims, position));
      }
      load.bytes = static_cast<int>(4 * count);
      load.words = 2048;
      const Registers expected = in_shared(rows, load.box[0], span, load.words);
      for (const Probes& probes : hopper_probes()) {
        CAPTURE(probes.place);
        CHECK(probes.load_box(load, array) == expected);
      }
    }
  }
}

TEST_CASE("ptx: tma_load_im2col brings what a filter's tap meets") {
  const int W = 7, H = 6, N = 3, r = 1, s = 2, c = 16;
  for (const int padding : {0, 1, 2}) {
    for (const int stride : {1, 2, 3}) {
      for (const int dilation : {1, 2}) {
        for (const int span : {0, 64, 128}) {
          const int reach = 2 * dilation;  // of a filter 3 wide
          const int P = (H + 2 * padding - reach - 1) / stride + 1;
          const int Q = (W + 2 * padding - reach - 1) / stride + 1;
          const int first = P * Q > 5 ? 5 : 1;  // not where a row begins
          const auto step = static_cast<std::uint32_t>(stride);
          TensorLoad load{.dims = {24, 7, 6, 3},
                          .steps = {1, step, step, 1},
                          .at = {c, first % Q * stride - padding, first / Q % P * stride - padding,
                                 first / (P * Q)},
                          .lower = {-padding, -padding},
                          .upper = {padding - reach, padding - reach},
                          .offset = {s * dilation, r * dilation},
                          .channels = 16,
                          .pixels = static_cast<std::uint32_t>(N * P * Q)};
          load.swizzle = span;
          load.bytes = static_cast<int>(4 * load.channels * load.pixels);
          load.words = 32 * load.pixels + 32;
          const Registers array = counted(load.dims);
          Registers rows;
          for (int m = first; m < first + static_cast<int>(load.pixels); ++m) {
            const int n = m / (P * Q), p = m / Q % P, q = m % Q;
            for (int i = 0; i < 16; ++i) {
              rows.push_back(element(array, load.dims,
                                     {c + i, q * stride - padding + s * dilation,
                                      p * stride - padding + r * dilation, n}));
            }
          }
          const Registers expected = in_shared(rows, 16, span, load.words);
          for (const Probes& probes : hopper_probes()) {
            CAPTURE(probes.place);
            CAPTURE(padding);
            CAPTURE(stride);
            CAPTURE(dilation);
            CAPTURE(span);
            CHECK(probes.load_box(load, array) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("ptx: tma_load of TFLOAT32 rounds to nearest, ties to even") {
  Registers values(32, bits(1.0f)), expected(32, bits(1.0f));
  const auto set = [&](std::size_t i, float value, float rounded) {
    values[i] = bits(value);
    expected[i] = bits(rounded);
  };
  set(0, 1 + 0x1p-11f, 1.0f);
  set(1, -1 - 0x1.8p-10f, -1 - 0x1p-9f);
  set(2, 1 + 0x1.002p-11f, 1 + 0x1p-10f);
  set(3, 1 + 0x1.ffcp-12f, 1.0f);
  set(4, 0x1.ffep0f, 2.0f);
  set(5, -0.0f, -0.0f);
  set(6, 0x1p-149f, 0.0f);
  set(7, 0x1.8p-136f, 0x1p-135f);
  set(8, 3.14159274f, 0x1.92p1f);
  TensorLoad load{.dims = {32, 1}, .box = {32, 1}, .steps = {1, 1}, .at = {0, 0}};
  load.bytes = 128;
  load.words = 32;
  load.round_to_tf32 = true;
  for (const Probes& probes : hopper_probes()) {
    CAPTURE(probes.place);
    CHECK(probes.load_box(load, values) == expected);
  }
}

TEST_CASE("ptx: copies by threads and by the engine arrive at a barrier") {
  Registers rows(32 * 4);
  std::iota(rows.begin(), rows.end(), 1u);
  Registers expected = rows;
  expected.insert(expected.end(), rows.begin(), rows.end());
  for (const Probes& probes : hopper_probes()) {
    CAPTURE(probes.place);
    CHECK(probes.copy_to_barrier(rows) == expected);
  }
}

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
    image[swizzled(plain, f.row_bytes)] = packed(type, values);
  };
  for (std::size_t k = 0; k < words; ++k) {
    for (std::size_t i = 0; i < 64; ++i) put(a, i, k, &as[i * depth + k * part]);
    for (std::size_t j = 0; j < columns; ++j) put(b, j, k, &bs[j * depth + k * part]);
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
          Case{{512, 512, 64}, {8192, 256, 32}, 16, 1}}) {
      CAPTURE(c.n);
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
    for (const Probes& probes : hopper_probes()) {
      CAPTURE(probes.place);
      const std::vector<float> result =
          multiplied(probes, type, {0, 1024}, {8192, 1024}, 64, 1, a, b, d);
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
