/// @file register_tile_test.cpp
/// @brief The innermost loops of the blocked rungs, with each width of registers: a CPU takes one
/// of them, and the suite's may be another than the user's.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

// Under a name of its own: where libraries are static, the rungs' one is there, too.
#define add_tile_product add_tile_product_of_test
#include "cpu_reference/gemm/register_tile.cpp"
#undef add_tile_product
#include "cpu_reference/conv2d/depthwise_tile.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

using AddProduct = void (*)(const Rows&, const float*, int, std::int64_t, float*);

std::vector<float> draw(std::mt19937& random, std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random() % 17) - 8;
  return numbers;
}

/// Whether it adds the product of whole numbers to a tile, and touches nothing else.
/// @param add called with (a, row_step, b, columns, depth, sums)
/// @param rows of a
template <class Add>
void check_tile(const Add& add, int rows = kTileRows) {
  std::mt19937 random(5);
  for (const int columns : {kTileColumns, kWideTile}) {
    for (const std::int64_t depth : {0, 1, 2, 7, 256}) {
      CAPTURE(columns);
      CAPTURE(depth);
      const std::int64_t row_step = depth + 3;
      const std::vector<float> a = draw(random, rows * row_step),
                               b = draw(random, depth * kBlockColumns + 1);
      std::vector<float> sums = draw(random, kTileRows * kBlockColumns), right = sums;
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t m = 0; m < kTileRows; ++m) {
          for (std::int64_t n = 0; n < columns; ++n) {
            right[static_cast<std::size_t>(m * kBlockColumns + n)] +=
                a[static_cast<std::size_t>(std::min<std::int64_t>(m, rows - 1) * row_step + k)] *
                b[static_cast<std::size_t>(k * kBlockColumns + n)];
          }
        }
      }
      add(a.data(), row_step, b.data(), columns, depth, sums.data());
      CHECK(sums == right);
    }
  }
}

/// The same of the version for one width of registers.
void check_width(AddProduct add) {
  check_tile([&](const float* a, std::int64_t row_step, const float* b, int columns,
                 std::int64_t depth, float* sums) {
    Rows row;
    for (std::size_t m = 0; m < row.size(); ++m)
      row[m] = a + static_cast<std::int64_t>(m) * row_step;
    add(row, b, columns, depth, sums);
  });
}

TEST_SUITE_BEGIN("ladders");

TEST_CASE("a tile of a product, with registers of four floats, of eight and of sixteen") {
  check_width(with_four_lanes);
#ifdef __x86_64__
  if (__builtin_cpu_supports("fma") != 0) check_width(with_eight_lanes);
  if (__builtin_cpu_supports("avx512f") != 0) check_width(with_sixteen_lanes);
#endif
  for (const int rows : {1, 4, kTileRows}) {
    CAPTURE(rows);
    check_tile(
        [&](const float* a, std::int64_t row_step, const float* b, int columns, std::int64_t depth,
            float* sums) { add_tile_product_of_test(a, row_step, rows, b, columns, depth, sums); },
        rows);
  }
}

TEST_CASE("blocks of a product: two a core, of 48 to 192 rows") {
  for (const std::int64_t M : {1, 6, 7, 50, 192, 193, 1000, 100'000}) {
    for (const std::int64_t others : {0, 1, 2, 3, 1000}) {
      CAPTURE(M);
      CAPTURE(others);
      const int rows = block_rows(M, others);
      CHECK(rows % kTileRows == 0);
      CHECK(rows <= kBlockRows);
      CHECK(rows >= std::min<std::int64_t>(rounded_up(M, kTileRows), 24));
      if (others == 1000)
        CHECK(ceil_div<std::int64_t>(M, rows) == ceil_div<std::int64_t>(M, kBlockRows));
      if (M >= 96 * 2 * cores())
        CHECK(ceil_div<std::int64_t>(M, rows) * others >=
              std::min<std::int64_t>(others, 1) * 2 * cores());
    }
  }
}

TEST_CASE("taps of a plane, with registers of four floats, of eight and of sixteen") {
  conv2d::DepthwiseTile tile = {};
  tile.columns = 48;
  tile.offsets = {0, 3, 52, 107};
  constexpr int kRows = 7, kTaps = 4, kStep = 70;  // rows by fours, by twos and one
  std::mt19937 random(5);
  const std::vector<float> inputs = draw(random, 600), weights = draw(random, kTaps);
  std::vector<float> right;
  for (int p = 0; p < kRows; ++p) {
    for (int q = 0; q < tile.columns; ++q) {
      float sum = 0;
      for (std::size_t tap = 0; tap < kTaps; ++tap)
        sum += weights[tap] * inputs[static_cast<std::size_t>(p * kStep + q + tile.offsets[tap])];
      right.push_back(sum);
    }
  }
  const auto check = [&](const auto& sum_up) {
    std::vector<float> sums(right.size());
    sum_up(tile, inputs.data(), kStep, weights.data(), kTaps, kRows, sums.data());
    CHECK(sums == right);
  };
  check(conv2d::weighted_sums);
  check(conv2d::add_taps_with_four_lanes);
#ifdef __x86_64__
  if (__builtin_cpu_supports("fma") != 0) check(conv2d::add_taps_with_eight_lanes);
  if (__builtin_cpu_supports("avx512f") != 0) check(conv2d::add_taps_with_sixteen_lanes);
#endif
}

TEST_SUITE_END();

}  // namespace
}  // namespace convladder::cpu_reference::gemm
