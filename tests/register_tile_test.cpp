/// @file register_tile_test.cpp
/// @brief The innermost loop of the blocked products, with each width of registers: a CPU takes one
/// of them, and the suite's may be another than the user's.
#include <doctest/doctest.h>

#include <random>
#include <vector>

// Under a name of its own: where libraries are static, the rungs' one is there, too.
#define add_tile_product add_tile_product_of_test
#include "cpu_reference/gemm/register_tile.cpp"
#undef add_tile_product

namespace convladder::cpu_reference::gemm {
namespace {

using AddProduct = void (*)(const float*, const float*, std::int64_t, float*);

/// Whether it adds the product of whole numbers to a tile, and touches nothing else.
void check_tile(AddProduct add) {
  std::mt19937 random(5);
  for (const std::int64_t depth : {0, 1, 2, 7, 256}) {
    CAPTURE(depth);
    const auto draw = [&](std::int64_t count) {
      std::vector<float> numbers(static_cast<std::size_t>(count));
      for (float& number : numbers) number = static_cast<float>(random() % 17) - 8;
      return numbers;
    };
    const std::vector<float> strip = draw(depth * kTileRows + 1),
                             b = draw(depth * kBlockColumns + 1);
    std::vector<float> sums = draw(kTileRows * kBlockColumns), right = sums;
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t m = 0; m < kTileRows; ++m) {
        for (std::int64_t n = 0; n < kTileColumns; ++n) {
          right[static_cast<std::size_t>(m * kBlockColumns + n)] +=
              strip[static_cast<std::size_t>(k * kTileRows + m)] *
              b[static_cast<std::size_t>(k * kBlockColumns + n)];
        }
      }
    }
    add(strip.data(), b.data(), depth, sums.data());
    CHECK(sums == right);
  }
}

TEST_SUITE_BEGIN("ladders");

TEST_CASE("a tile of a product, with registers of four floats and of eight") {
  check_tile(with_four_lanes);
  check_tile(add_tile_product_of_test);
#ifdef __x86_64__
  if (__builtin_cpu_supports("fma") != 0) check_tile(with_eight_lanes);
#endif
}

TEST_SUITE_END();

}  // namespace
}  // namespace convladder::cpu_reference::gemm
