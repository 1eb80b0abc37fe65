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
#include "cpu_reference/conv2d/input_tile.hpp"

namespace convladder::cpu_reference::gemm {
namespace {

using AddProduct = void (*)(const Rows&, const float*, int, std::int64_t, float*);

std::vector<float> draw(std::mt19937& random, std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random() % 17) - 8;
  return numbers;
}

/// Whether it adds the product of integers to a tile, and accesses nothing else.
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

/// Whether it computes what the definition says, for each tile of a problem, and writes nothing
/// behind a tile's outputs that another one has written.
/// @param compute called with (problem, tile, arrays, place)
template <class Compute>
void check_tiles(const Conv2dProblem& conv, const Compute& compute) {
  CAPTURE(describe(conv));
  const auto tile = conv2d::input_tile(conv);
  REQUIRE(tile.has_value());
  std::mt19937 random(5);
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const std::vector<float> x = draw(random, std::int64_t{conv.N} * conv.C * conv.H * conv.W);
  const std::vector<float> weights = draw(random, std::int64_t{conv.K} * group_c * conv.R * conv.S);
  const std::vector<float> bias = draw(random, conv.K);
  std::vector<float> right;
  for (int n = 0; n < conv.N; ++n) {
    for (int k = 0; k < conv.K; ++k) {
      for (int p = 0; p < conv.P; ++p) {
        for (int q = 0; q < conv.Q; ++q) {
          float sum = 0;
          for (int c = 0; c < group_c; ++c) {
            for (int r = 0; r < conv.R; ++r) {
              for (int s = 0; s < conv.S; ++s) {
                const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
                const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
                if (h < 0 || h >= conv.H || w < 0 || w >= conv.W) continue;
                const int channel = k / group_k * group_c + c;
                sum +=
                    weights[static_cast<std::size_t>(((k * group_c + c) * conv.R + r) * conv.S +
                                                     s)] *
                    x[static_cast<std::size_t>(((n * conv.C + channel) * conv.H + h) * conv.W + w)];
              }
            }
          }
          if (conv.bias) sum += bias[static_cast<std::size_t>(k)];
          right.push_back(activated(conv.activation, sum));
        }
      }
    }
  }
  for (const bool backwards : {false, true}) {
    std::vector<conv2d::TilePlace> places;
    for (int n = 0; n < conv.N; ++n) {
      for (int group = 0; group < conv.groups; group += tile->groups) {
        for (int p = 0; p < conv.P; p += tile->rows) {
          for (int q = 0; q < conv.Q; q += tile->columns) places.push_back({n, group, p, q});
        }
      }
    }
    if (backwards) std::ranges::reverse(places);
    std::vector<float> y(right.size() + 64, 99.0f);
    for (const conv2d::TilePlace& place : places) {
      compute(conv, *tile,
              conv2d::TileArrays<float>{x.data(), weights.data(), conv.bias ? bias.data() : nullptr,
                                        y.data()},
              place);
    }
    CHECK(std::equal(right.begin(), right.end(), y.begin()));
    CHECK(std::all_of(y.end() - 64, y.end(), [](float behind) { return behind == 99.0f; }));
  }
}

TEST_CASE("tiles of inputs, with registers of four floats, of eight and of sixteen") {
  const auto problem = [](int N, int C, int H, int W, int K, int R, int S, int stride, int pad,
                          int groups, bool bias = false) {
    return validated(Conv2dProblem{.N = N,
                                   .C = C,
                                   .H = H,
                                   .W = W,
                                   .K = K,
                                   .R = R,
                                   .S = S,
                                   .pad = {pad, pad, pad, pad},
                                   .stride = {stride, stride},
                                   .groups = groups,
                                   .bias = bias,
                                   .activation = bias ? Activation::relu : Activation::none});
  };
  Conv2dProblem apart = problem(1, 2, 40, 31, 2, 3, 3, 2, 5, 2);
  apart.dilation = {3, 2};
  Conv2dProblem far = problem(1, 1, 9, 9, 1, 2, 2, 1, 30, 1);  // more padding than a vector
  for (const Conv2dProblem& conv :
       {problem(2, 40, 7, 7, 40, 3, 3, 1, 1, 40), problem(1, 33, 14, 14, 66, 3, 3, 2, 1, 33, true),
        problem(1, 3, 100, 120, 3, 5, 5, 1, 2, 3), problem(2, 4, 1, 9000, 4, 1, 3, 1, 1, 4),
        problem(1, 12, 20, 28, 18, 3, 3, 1, 1, 2, true), problem(1, 32, 9, 9, 32, 3, 3, 1, 0, 4),
        problem(1, 3, 30, 30, 5, 1, 2, 3, 0, 1), validated(apart), far}) {
    check_tiles(conv, conv2d::compute_tile_on_this_cpu<float>);
    check_tiles(conv, conv2d::compute_tile_with_four_lanes<float>);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
      check_tiles(conv, conv2d::compute_tile_with_eight_lanes<float>);
    if (__builtin_cpu_supports("avx512f") != 0)
      check_tiles(conv, conv2d::compute_tile_with_sixteen_lanes<float>);
#endif
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace convladder::cpu_reference::gemm
