#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

using cuda_on_cpu::control::ThreadOrder;
constexpr ThreadOrder kOrders[] = {ThreadOrder::forward, ThreadOrder::reverse,
                                   ThreadOrder::shuffled};

constexpr std::size_t kFloats = 20 * 1024;
constexpr int kBeginB = 16384;  ///< bytes; a [64] rows of 128 bytes come before

/// The position of word k of a row in shared memory, in words: the manual's K-major layouts.
std::size_t place_of_word(const WgmmaFactor& f, std::size_t row, std::size_t k) {
  const auto stride = static_cast<std::size_t>(f.stride),
             span = static_cast<std::size_t>(f.swizzle);
  const auto begin = static_cast<std::size_t>(f.begin) + row / 8 * stride;
  if (span == 0) {
    return (begin + k / 4 * static_cast<std::size_t>(f.leading) + row % 8 * 16) / 4 + k % 4;
  }
  const std::size_t address = begin + row % 8 * span + 4 * k;
  return (address ^ (address >> 3 & (span - 16))) / 4;
}

/// The bits of a small integer, or of a NaN, in FP8.
std::uint32_t as_e4m3(float value) {
  if (std::isnan(value)) return 0x7f;
  if (value == 0) return 0;
  const int exponent = std::ilogb(value);
  const auto eighths = static_cast<std::uint32_t>(std::ldexp(std::fabs(value), 3 - exponent));
  return (value < 0 ? 0x80u : 0u) | static_cast<std::uint32_t>(exponent + 7) << 3 | (eighths & 7u);
}

struct Product {
  std::vector<float> image = std::vector<float>(kFloats);
  std::vector<float> d, expected;

  /// Writes an element to shared memory.
  void put(WgmmaNumbers type, const WgmmaFactor& f, std::size_t row, std::size_t k, float value) {
    if (type == WgmmaNumbers::tf32) {
      image[place_of_word(f, row, k)] = value;
      return;
    }
    if (type == WgmmaNumbers::e4m3) {
      float& four = image[place_of_word(f, row, k / 4)];
      four =
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(four) | as_e4m3(value) << 8 * (k % 4));
      return;
    }
    const auto bits = type == WgmmaNumbers::f16
                          ? std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))
                          : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    float& word = image[place_of_word(f, row, k / 2)];
    word = std::bit_cast<float>(std::bit_cast<std::uint32_t>(word) | std::uint32_t{bits}
                                                                         << 16 * (k % 2));
  }

  /// Integers; d + a * b with a [64][depth], b [depth][n].
  /// @param zeros every other 8 rows of a, and every third 4 columns of b, are zeros, and some
  /// accumulators are initially negative zeros or infinite
  /// @param last the last element of a, if not null
  Product(WgmmaNumbers type, int n, std::size_t depth, const WgmmaFactor& a, const WgmmaFactor& b,
          bool accumulate, bool zeros = false, const float* last = nullptr) {
    std::uint32_t state = 1;
    const auto next = [&] {
      state = state * 1664525u + 1013904223u;
      return static_cast<float>(static_cast<int>(state >> 8) % 15 - 7);
    };
    const auto columns = static_cast<std::size_t>(n);
    std::vector<float> as(64 * depth), bs(columns * depth);
    for (float& value : as) value = next();
    for (float& value : bs) value = next();
    for (std::size_t i = 0; zeros && i < as.size(); ++i)
      as[i] *= static_cast<float>(i / depth / 8 % 2);
    for (std::size_t i = 0; zeros && i < bs.size(); ++i)
      bs[i] *= static_cast<float>(i / depth / 4 % 3 != 1);
    if (last != nullptr) as.back() = *last;
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t i = 0; i < 64; ++i) put(type, a, i, k, as[i * depth + k]);
      for (std::size_t j = 0; j < columns; ++j) put(type, b, j, k, bs[j * depth + k]);
    }
    d.resize(64 * columns);
    for (float& value : d) value = next();
    for (std::size_t i = 0; zeros && i < d.size(); i += 5)
      d[i] = i % 2 == 0 ? -0.0f : std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        float sum = accumulate ? d[i * columns + j] : 0.0f;
        for (std::size_t k = 0; k < depth; ++k) sum += as[i * depth + k] * bs[j * depth + k];
        expected.push_back(sum);
      }
    }
  }
};

template <int kN, WgmmaNumbers kType = WgmmaNumbers::tf32>
std::vector<float> multiply(const Product& product, const WgmmaFactor& a, const WgmmaFactor& b,
                            int steps, bool accumulate) {
  DeviceArray<float> image(product.image), d(product.d);
  const Shape shape{1, 128, 4 * kFloats};
  cudaFuncSetAttribute(multiply_in_warpgroup<kN, kType>,
                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(shape.shared_bytes));
  const cudaError_t error = launch(multiply_in_warpgroup<kN, kType>, shape, image.data(),
                                   static_cast<int>(kFloats), a, b, steps, accumulate, d.data());
  CAPTURE(cuda_on_cpu::control::last_report());
  REQUIRE(error == cudaSuccess);
  return d.host();
}

template <int kN, WgmmaNumbers kType = WgmmaNumbers::tf32>
void check_product(const WgmmaFactor& a, const WgmmaFactor& b, int steps, bool accumulate) {
  const std::size_t depth = (kType == WgmmaNumbers::tf32   ? 8
                             : kType == WgmmaNumbers::e4m3 ? 32
                                                           : 16) *
                            static_cast<std::size_t>(steps);
  const Product product(kType, kN, depth, a, b, accumulate);
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    CHECK(multiply<kN, kType>(product, a, b, steps, accumulate) == product.expected);
  }
}

cudaError_t misuse(WgmmaMisuse how, std::vector<float>* out = nullptr) {
  DeviceArray<float> image(std::vector<float>(64 * 32, 1.0f)), result(512);
  const cudaError_t error =
      launch(misuse_wgmma, {1, 128, 64 * 128}, image.data(), how, result.data());
  if (out != nullptr) *out = result.host();
  return error;
}

}  // namespace

TEST_CASE(
    "wgmma multiplies matrices in shared memory, in all layouts that a descriptor can represent") {
  const Defaults defaults;
  for (const bool accumulate : {false, true}) {
    CAPTURE(accumulate);
    check_product<8>({0, 16, 1024, 128}, {kBeginB, 16, 1024, 128}, 1, accumulate);
    check_product<64>({0, 16, 1024, 128}, {kBeginB, 16, 1024, 128}, 4, accumulate);
    check_product<256>({0, 16, 1024, 128}, {kBeginB, 16, 1024, 128}, 4, accumulate);
  }
  check_product<64>({1024, 0, 2048, 128}, {kBeginB + 4096, 0, 1024, 128}, 4, true);
  check_product<64>({0, 16, 512, 64}, {kBeginB, 16, 512, 64}, 2, true);
  check_product<256>({0, 16, 256, 32}, {kBeginB, 16, 256, 32}, 1, true);
  check_product<64>({0, 128, 256, 0}, {kBeginB, 1024, 128, 0}, 1, true);
}

TEST_CASE("wgmma multiplies matrices of 16-bit elements") {
  const Defaults defaults;
  for (const bool accumulate : {false, true}) {
    CAPTURE(accumulate);
    check_product<8, WgmmaNumbers::f16>({0, 16, 1024, 128}, {kBeginB, 16, 1024, 128}, 1,
                                        accumulate);
    check_product<64, WgmmaNumbers::f16>({0, 16, 1024, 128}, {kBeginB, 16, 1024, 128}, 4,
                                         accumulate);
    check_product<256, WgmmaNumbers::bf16>({0, 16, 1024, 128}, {kBeginB, 16, 1024, 128}, 4,
                                           accumulate);
  }
  check_product<64, WgmmaNumbers::f16>({0, 128, 256, 0}, {kBeginB, 1024, 128, 0}, 1, true);
}

TEST_CASE("wgmma multiplies FP8 matrices, with zeros and without") {
  const Defaults defaults;
  const WgmmaFactor a{0, 16, 1024, 128}, b{kBeginB, 16, 1024, 128};
  for (const bool accumulate : {false, true})
    check_product<64, WgmmaNumbers::e4m3>(a, b, 4, accumulate);
  // With a NaN in a, products with zeros of b are NaNs, too.
  const float nan = std::numeric_limits<float>::quiet_NaN(), one = 1;
  for (const float* const last : {&one, &nan}) {
    const Product product(WgmmaNumbers::e4m3, 64, 32, a, b, true, true, last);
    const auto found = multiply<64, WgmmaNumbers::e4m3>(product, a, b, 1, true);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      const float expected = product.expected[i];
      REQUIRE((std::isnan(expected) ? std::isnan(found[i])
                                    : std::bit_cast<std::uint32_t>(found[i]) ==
                                          std::bit_cast<std::uint32_t>(expected)));
    }
  }
}

TEST_CASE("wgmma with zeros in its operands changes exactly the accumulators that zeros change") {
  const Defaults defaults;
  const WgmmaFactor a{0, 16, 1024, 128}, b{kBeginB, 16, 1024, 128};
  const float infinity = std::numeric_limits<float>::infinity(), one = 1;
  for (const float* const last : {&one, &infinity}) {
    for (const bool accumulate : {false, true}) {
      const Product product(WgmmaNumbers::tf32, 64, 8, a, b, accumulate, true, last);
      const std::vector<float> found = multiply<64>(product, a, b, 1, accumulate);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        if (std::isnan(product.expected[i])) {
          REQUIRE(std::isnan(found[i]));
        } else {
          REQUIRE(std::bit_cast<std::uint32_t>(found[i]) ==
                  std::bit_cast<std::uint32_t>(product.expected[i]));
        }
      }
    }
  }
}

TEST_CASE("wgmma takes operand a from registers, which must not change") {
  const Defaults defaults;
  const WgmmaFactor b{kBeginB, 16, 1024, 128};
  // a as a plain [64][32].
  Product product(WgmmaNumbers::tf32, 64, 32, {0, 16, 1024, 128}, b, true);
  std::vector<float> plain(64 * 32);
  for (std::size_t row = 0; row < 64; ++row) {
    for (std::size_t k = 0; k < 32; ++k) {
      plain[row * 32 + k] = product.image[place_of_word({0, 16, 1024, 128}, row, k)];
    }
  }
  std::copy(plain.begin(), plain.end(), product.image.begin());
  const auto run = [&](RegistersMisuse how, std::vector<float>* out) {
    DeviceArray<float> image(product.image), d(product.d);
    const Shape shape{1, 128, 4 * kFloats};
    cudaFuncSetAttribute(multiply_registers, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(shape.shared_bytes));
    const cudaError_t error = launch(multiply_registers, shape, image.data(),
                                     static_cast<int>(kFloats), b, 4, how, d.data());
    *out = d.host();
    return error;
  };
  std::vector<float> out;
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    CHECK(run(RegistersMisuse::none, &out) == cudaSuccess);
    CHECK(out == product.expected);
    CHECK(run(RegistersMisuse::no_fence, &out) == cudaErrorLaunchFailure);
    CHECK(report_names("in registers, without a wgmma_fence() since its last wait",
                       place_of("wgmma.cu", "wgmma of registers")));
    CHECK(run(RegistersMisuse::overwritten, &out) == cudaErrorLaunchFailure);
    CHECK(report_names("whose operand a was overwritten before the wait, first in row 17"));
  }
}

TEST_CASE("wgmma with the swizzle of another layout multiplies other elements") {
  const Defaults defaults;
  const WgmmaFactor right{0, 16, 1024, 128}, b{kBeginB, 16, 1024, 128};
  const Product product(WgmmaNumbers::tf32, 64, 32, right, b, true);
  CHECK(multiply<64>(product, right, b, 4, true) == product.expected);
  CHECK(multiply<64>(product, {0, 16, 1024, 64}, b, 4, true) != product.expected);
  CHECK(multiply<64>(product, {0, 16, 1024, 0}, b, 4, true) != product.expected);
}

TEST_CASE("the accumulators of wgmma are NaNs until its group is committed and waited for") {
  const Defaults defaults;
  std::vector<float> out;
  const auto all_nan = [&] {
    return std::all_of(out.begin(), out.end(), [](float f) { return std::isnan(f); });
  };
  const std::string place = place_of("wgmma.cu", "misused wgmma");
  CHECK(misuse(WgmmaMisuse::none, &out) == cudaSuccess);
  CHECK(out == std::vector<float>(512, 8.0f));
  CHECK(misuse(WgmmaMisuse::late_wait, &out) == cudaSuccess);
  CHECK(all_nan());
  for (const WgmmaMisuse how :
       {WgmmaMisuse::no_commit, WgmmaMisuse::no_wait, WgmmaMisuse::weak_wait}) {
    CHECK(misuse(how, &out) == cudaErrorLaunchFailure);
    CHECK(report_names("ended without a commit of, or a wait for", place));
    CHECK(all_nan());
  }
}

TEST_CASE("operands and accumulators of wgmma must not be accessed until the wait") {
  const Defaults defaults;
  const std::string place = place_of("wgmma.cu", "misused wgmma");
  CHECK(misuse(WgmmaMisuse::overwritten_factor) == cudaErrorLaunchFailure);
  CHECK(report_names("was overwritten before the wait, first in row 1", place));
  CHECK(misuse(WgmmaMisuse::touched_sums) == cudaErrorLaunchFailure);
  CHECK(report_names("accumulators"));
  CHECK(misuse(WgmmaMisuse::no_fence) == cudaErrorLaunchFailure);
  CHECK(report_names("without a wgmma_fence()", place));
}

TEST_CASE("wgmma is executed by a whole warpgroup, whose threads all issue the same instruction") {
  const Defaults defaults;
  for (const ThreadOrder order : kOrders) {
    cuda_on_cpu::control::set_thread_order(order, 3);
    CHECK(misuse(WgmmaMisuse::other_factor) == cudaErrorLaunchFailure);
    CHECK(report_names("issued a different one", place_of("wgmma.cu", "misused wgmma")));
    CHECK(misuse(WgmmaMisuse::few_threads) == cudaErrorLaunchFailure);
    CHECK(report_names("waits for the other threads of its warpgroup", "has returned",
                       place_of("wgmma.cu", "wgmma wait")));
  }
  CHECK(misuse(WgmmaMisuse::beyond_shared) == cudaErrorLaunchFailure);
  CHECK(
      report_names("outside of the block's shared memory", place_of("wgmma.cu", "misused wgmma")));
  DeviceArray<float> image(std::vector<float>(64 * 32, 1.0f)), out(512);
  CHECK(launch(misuse_wgmma, {1, 96, 64 * 128}, image.data(), WgmmaMisuse::none, out.data()) ==
        cudaErrorLaunchFailure);
  CHECK(report_names("some threads do not exist"));
}
