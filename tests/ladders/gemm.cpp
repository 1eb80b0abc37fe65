/// @file gemm.cpp
/// @brief The problems and identities of gemm.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "core/gemm_batch_problem.hpp"
#include "core/tile_map_problem.hpp"
#include "tests/ladders/arrays.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

/// Integers from 0 to 8 in random order.
Array up_to_eight(const ArraySpec& spec) {
  Dice dice(static_cast<std::uint64_t>(spec.shape.front()));
  Array array(DType::f32, spec.shape);
  for (float& value : array.as<float>()) value = static_cast<float>(dice(0, 8));
  return rounded_to(array, spec.dtype);
}

/// Those with a bias or ReLU, which hides all errors below zero: one for each way on which sums are
/// finished and stored.
std::vector<TestProblem> finished_products() {
  const auto entry = [](const std::string& name, GemmProblem problem, Size size = Size::small,
                        std::size_t misalignment = 0) {
    return TestProblem{0, name, validated(problem), size, misalignment};
  };
  constexpr Activation kRelu = Activation::relu;
  std::vector<TestProblem> list = {
      entry("bias and ReLU, one column",
            {.M = 67, .N = 1, .K = 29, .bias = true, .activation = kRelu}),
      entry("bias and ReLU, an odd row",
            {.M = 37, .N = 71, .K = 13, .bias = true, .activation = kRelu}),
      entry("a bias alone", {.M = 9, .N = 34, .K = 40, .bias = true}),
      entry("ReLU alone", {.M = 33, .N = 72, .K = 24, .activation = kRelu}),
      // Three tiles of 64 columns by TMA, of which the last is not whole.
      entry("bias and ReLU, rows in eights",
            {.M = 70, .N = 136, .K = 72, .bias = true, .activation = kRelu}),
      entry("bias and ReLU, arrays at 16 n + 4 bytes",
            {.M = 33, .N = 72, .K = 24, .bias = true, .activation = kRelu}, Size::small, 4),
      entry("bias and ReLU, 8 bits", {.M = 9,
                                      .N = 10,
                                      .K = 40,
                                      .dtype = DType::f8,
                                      .scale_a = 0.75f,
                                      .scale_b = 0.1f,
                                      .bias = true,
                                      .activation = kRelu}),
      // More tiles of 64 columns than cuda_on_cpu has multiprocessors: blocks with two.
      entry(
          "bias and ReLU under a map",
          {.M = 300, .N = 200, .K = 16, .map = TileMap::hilbert, .bias = true, .activation = kRelu},
          Size::full),
      // Eight tiles of 128 columns, and ten of 256.
      entry("bias and ReLU, tiles of 128 columns",
            {.M = 500, .N = 256, .K = 8, .bias = true, .activation = kRelu}, Size::full),
      entry("bias and ReLU, tiles of 256 columns",
            {.M = 520, .N = 504, .K = 16, .bias = true, .activation = kRelu}, Size::full),
  };
  list.back().once = true;
  return list;
}

/// Those with bias and ReLU first: the tests with planted bugs end with the first problem that
/// fails.
std::vector<TestProblem> gemm_problems() {
  std::vector<TestProblem> list = finished_products();
  const auto add = [&](const std::string& name, GemmProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  add("minimal", {.M = 1, .N = 1, .K = 1});
  add("inner product", {.M = 1, .N = 1, .K = 1031});
  add("outer product", {.M = 37, .N = 41, .K = 1});
  add("row times matrix", {.M = 1, .N = 67, .K = 29});
  add("matrix times column", {.M = 67, .N = 1, .K = 29});
  add("primes", {.M = 7, .N = 11, .K = 13});
  add("long sums", {.M = 5, .N = 7, .K = 1031});
  add("tall", {.M = 517, .N = 3, .K = 5});
  add("wide", {.M = 3, .N = 517, .K = 5});
  add("C*R*S = 45", {.M = 6, .N = 121, .K = 45});
  for (const int tile : {8, 16, 32, 64, 128}) {
    const Size size = tile == 32 ? Size::small : Size::full;
    const std::string about = "around a tile of " + std::to_string(tile);
    const int below = tile - 1, above = tile + 1;
    add(about, {.M = tile, .N = tile, .K = tile}, size);
    add(about, {.M = below, .N = tile, .K = above}, size);
    add(about, {.M = tile, .N = above, .K = below}, size);
    add(about, {.M = above, .N = below, .K = tile}, size);
    add(about, {.M = above, .N = above, .K = above}, size);
    add(about, {.M = below, .N = below, .K = below}, size);
    add("odd number of k-steps of " + std::to_string(tile), {.M = 9, .N = 10, .K = 3 * tile}, size);
  }
  for (const std::size_t offset : {4u, 8u, 12u}) {
    add("arrays at 16 n + " + std::to_string(offset) + " bytes", {.M = 33, .N = 36, .K = 20},
        Size::small, offset);
  }
  // 16-bit elements may be aligned to neither pairs of them nor copies of 16 bytes.
  for (const std::size_t offset : {2u, 10u}) {
    add("rows in eights, arrays at 16 n + " + std::to_string(offset) + " bytes",
        {.M = 33, .N = 40, .K = 24}, Size::small, offset);
  }
  add("rows of 16 bytes also in 8 bits, arrays at 16 n + 4 bytes", {.M = 33, .N = 36, .K = 48},
      Size::small, 4);
  // In 8 bits: rows of 16 bytes and others, scales, and sums beyond 2^14, where tensor cores lose
  // ones: of numbers without a sign, for others hardly ever grow so long. The last has eight tiles
  // of 256 x 128, and more steps than such tiles have stages.
  for (const auto& [m, n, k] : {std::array{9, 10, 1232}, {66, 67, 150}, {1793, 9, 528}}) {
    const GemmProblem product{
        .M = m, .N = n, .K = k, .dtype = DType::f8, .scale_a = 0.75f, .scale_b = 0.1f};
    add("8 bits", product);
    for (const ArraySpec& spec : gemm_signature(product).inputs)
      list.back().given.emplace(spec.name, up_to_eight(spec));
  }
  // By TMA also in c, rows of floats of 16 bytes; b in words, and in fours of them. The
  // last has nine tiles of 192 x 128, more than the emulator has multiprocessors.
  for (const auto& [m, n, k] : {std::array{70, 36, 150}, {70, 144, 150}, {1540, 48, 400}}) {
    const GemmProblem product{
        .M = m, .N = n, .K = k, .dtype = DType::f8, .scale_a = 0.75f, .scale_b = 0.1f};
    add("8 bits, rows of c in fours", product, m > 1000 ? Size::full : Size::small);
    for (const ArraySpec& spec : gemm_signature(product).inputs)
      list.back().given.emplace(spec.name, up_to_eight(spec));
  }
  for (const TileMapName& map : kTileMaps) {
    // K is short: the order of the tiles is what counts.
    for (const auto& [m, n, k] : {std::array{1, 1, 1},
                                  {33, 17, 9},
                                  {161, 97, 5},
                                  {97, 161, 5},
                                  {65, 129, 17},
                                  {130, 130, 3}}) {
      add("map", {.M = m, .N = n, .K = k, .map = map.map}, m == 161 ? Size::small : Size::full);
    }
    // Three rows of tiles, of which clusters take two at a time.
    add("map, an odd number of tiles, rows in eights",
        {.M = 300, .N = 200, .K = 16, .map = map.map}, Size::full);
    for (const auto& [m, n, k] : {std::array{320, 40, 3}, {40, 320, 3}, {513, 257, 2}}) {
      add("map", {.M = m, .N = n, .K = k, .map = map.map}, Size::full);
      list.back().once = m == 513;
    }
  }
  // Eight tiles of 128 x 128, four of 128 x 256; more than one step, and sums of several.
  add("eight large tiles", {.M = 512, .N = 256, .K = 36}, Size::full);
  list.back().once = true;
  // Eight of 128 x 256, by TMA, in 16 bits, too: rows of 16 bytes, tiles at the edge.
  add("large tiles, rows in eights", {.M = 1000, .N = 248, .K = 72}, Size::full);
  list.back().once = true;
  // More pairs of tiles of 128 rows than the emulator has pairs of multiprocessors, and more steps
  // of 64 than rings have stages.
  add("more steps than stages, rows in eights", {.M = 1160, .N = 8, .K = 520}, Size::full);
  list.back().once = true;
  // Eleven tiles of 128 x 64: those of the last round are cut in two, and two of the emulator's
  // eight multiprocessors have no part of them.
  add("a last round for some, rows in eights",
      {.M = 1400, .N = 40, .K = 136, .map = TileMap::split_k}, Size::full);
  list.back().once = true;
  // With few blocks, a few tiles of 128 x 128 are enough: of these the last has one row and column.
  for (const TileMap map : {TileMap::row_major, TileMap::split_k, TileMap::stream_k})
    add("one row and column beyond large tiles", {.M = 257, .N = 257, .K = 12, .map = map});
  for (const TileMap map : {TileMap::split_k, TileMap::stream_k}) {
    for (const auto& [m, n, k] : {std::array{33, 70, 150}, {5, 9, 700}, {70, 33, 333}}) {
      add("map, long sums", {.M = m, .N = n, .K = k, .map = map});
    }
  }
  // In parts along k, as many as there are multiprocessors in cuda_on_cpu, and fewer; by
  // TMA and not.
  for (const auto& [m, n, k] :
       {std::array{40, 72, 1032}, {40, 56, 1032}, {130, 65, 515}, {129, 200, 136}}) {
    const GemmProblem layer{.M = m,
                            .N = n,
                            .K = k,
                            .map = TileMap::split_k,
                            .bias = true,
                            .activation = n == 65 ? Activation::none : Activation::relu};
    add("parts along k, with a bias", layer, n == 72 ? Size::small : Size::full);
  }
  // Eight whole tiles, one for each multiprocessor there, and four in two parts each, of 64 x 128,
  // and of 128, 192 and 256 columns.
  for (const auto& [m, n] : {std::array{768, 120}, {1536, 120}, {1536, 184}, {1536, 256}}) {
    add("a last round in parts", {.M = m, .N = n, .K = 136, .map = TileMap::split_k}, Size::full);
    list.back().once = true;
  }
  add("tiles of 192 columns", {.M = 1000, .N = 184, .K = 72}, Size::full);
  list.back().once = true;
  // Each way in which a factor may lie, with and without a first axis; halves and bytes, of which
  // matrices begin at odd places.
  for (const DType dtype : {DType::f32, DType::f16, DType::f8}) {
    for (const auto& [batch, transpose_a, transpose_b] :
         {std::tuple{0, true, false}, {0, false, true}, {2, true, true}, {3, false, false}}) {
      const GemmBatchProblem products{.product = {.M = 35, .N = 37, .K = 21, .dtype = dtype},
                                      .batch = batch,
                                      .transpose_a = transpose_a,
                                      .transpose_b = transpose_b};
      list.push_back({0, "transposed factors, and several products", validated(products),
                      batch == 2 ? Size::small : Size::full, batch == 0 ? std::size_t{4} : 0});
    }
  }
  GemmBatchProblem with_bias{.product = {.M = 8, .N = 72, .K = 40, .bias = true}, .batch = 2};
  with_bias.product.activation = Activation::relu;
  with_bias.transpose_b = true;
  list.push_back(
      {0, "several products with a bias and ReLU", validated(with_bias), Size::small, 0});
  for (const bool finished : {false, true}) {
    const Activation activation = finished ? Activation::relu : Activation::none;
    add("no product to add", {.M = 5, .N = 67, .K = 0, .bias = finished, .activation = activation});
    add("no product to add, 8 bits",
        {.M = 9, .N = 10, .K = 0, .dtype = DType::f8, .scale_a = 0.75f, .bias = finished});
  }
  return list;
}

/// Every fourth with a bias, and half of these with ReLU.
GemmProblem random_gemm(Dice& dice, int i) {
  constexpr std::array whole = {TileMap::row_major, TileMap::identity1, TileMap::identity2,
                                TileMap::identity4, TileMap::identity8, TileMap::horizontal,
                                TileMap::grouped,   TileMap::hilbert};
  return validated(GemmProblem{.M = dice(1, 200),
                               .N = dice(1, 200),
                               .K = dice(1, 70),
                               .map = whole[static_cast<std::size_t>(dice(0, 7))],
                               .bias = i % 4 == 0,
                               .activation = i % 8 == 0 ? Activation::relu : Activation::none});
}

std::vector<TestProblem> gemm_rounding() {
  return {{.name = kRounding,
           .problem = validated(GemmProblem{.M = 40, .N = 70, .K = 300}),
           .equal_sums = true}};
}

std::vector<TestProblem> small_products() {
  std::vector<TestProblem> list;
  for (const auto& [m, n, k] : {std::array{5, 7, 11}, {33, 36, 20}, {16, 16, 40}})
    list.push_back({.name = "", .problem = validated(GemmProblem{.M = m, .N = n, .K = k})});
  for (const TileMap map : {TileMap::split_k, TileMap::stream_k})
    list.push_back(
        {.name = "", .problem = validated(GemmProblem{.M = 33, .N = 36, .K = 120, .map = map})});
  // -inf is below zero, NaN is not.
  for (const int n : {7, 40}) {
    const GemmProblem layer{.M = 33, .N = n, .K = 24, .bias = true, .activation = Activation::relu};
    list.push_back({.name = "", .problem = validated(layer)});
  }
  return list;
}

std::vector<Problem> gemm_limits() {
  std::vector<Problem> list;
  for (const TileMapName& map : kTileMaps) {
    for (const auto& [m, n, k] : {std::array{kLargestInt, kLargestInt, 1},
                                  {1, 1, kLargestInt},
                                  {kLargestInt, 1, kLargestInt}})
      list.emplace_back(validated(GemmProblem{.M = m, .N = n, .K = k, .map = map.map}));
  }
  // As many tiles of 32 to 256 rows or columns as a grid has blocks along y, and one more.
  for (const int side : {32, 64, 128, 256}) {
    for (const int beyond : {0, 1}) {
      const int elements = 65535 * side + beyond;
      list.emplace_back(
          validated(GemmProblem{.M = elements, .N = 1, .K = 1, .map = TileMap::horizontal}));
      list.emplace_back(
          validated(GemmProblem{.M = 1, .N = elements, .K = 1, .map = TileMap::batched}));
    }
  }
  // As many tiles of 128, or 64, rows or columns as rungs count before they choose larger ones, and
  // one fewer: 120, and nine of ten multiprocessors, of which cuda_on_cpu has eight.
  for (const auto& [m, n] : {std::array{120 * 128, 1},
                             {119 * 128, 1},
                             {119 * 64, 1},
                             {1, 119 * 128},
                             {1, 119 * 64},
                             {7 * 128, 1},
                             {8 * 128, 1}})
    list.emplace_back(validated(GemmProblem{.M = m, .N = n, .K = 1}));
  // Sizes that a GPU takes, and for which rungs have plans of their own.
  for (const auto& [m, n, k] : {std::array{4096, 4096, 4096},
                                {1000, 1000, 1000},
                                {128, 8192, 1024},
                                {8192, 128, 1024},
                                {64, 256, 65536}})
    list.emplace_back(validated(GemmProblem{.M = m, .N = n, .K = k}));
  return list;
}

std::vector<GemmProblem> gemm_bases() {
  return {{.M = 37, .N = 29, .K = 41},
          {.M = 1, .N = 65, .K = 7},
          {.M = 64, .N = 32, .K = 16},
          {.M = 129, .N = 130, .K = 33, .map = TileMap::hilbert},
          {.M = 70, .N = 150, .K = 18, .map = TileMap::identity8}};
}

Array transposed(const Array& a) {
  const std::int64_t rows = a.shape()[0], columns = a.shape()[1];
  Array result(DType::f32, {columns, rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      result.as<float>()[at(column * rows + row)] = floats(a)[at(row * columns + column)];
    }
  }
  return result;
}

Array permute_rows(const Array& a, const std::vector<int>& order) {
  const std::int64_t columns = a.shape()[1];
  Array result = a;
  for (std::size_t row = 0; row < order.size(); ++row) {
    std::copy_n(floats(a).begin() + order[row] * columns, columns,
                result.as<float>().begin() + static_cast<std::int64_t>(row) * columns);
  }
  return result;
}

std::vector<Identity<GemmProblem>> gemm_identities(const Subject& f, const CheckOptions& opt) {
  const auto product = [&f](const Array& a, const Array& b, TileMap map) {
    const GemmProblem p{.M = static_cast<int>(a.shape()[0]),
                        .N = static_cast<int>(b.shape()[1]),
                        .K = static_cast<int>(a.shape()[1]),
                        .map = map};
    return f(validated(p), {{"a", a}, {"b", b}}).at("c");
  };
  return {
      {"linear in a",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array& b = in.at("b");
         expect_same(product(sum(in.at("a"), more.at("a")), b, p.map),
                     sum(product(in.at("a"), b, p.map), product(more.at("a"), b, p.map)));
       }},
      {"linear in b",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array& a = in.at("a");
         expect_same(product(a, sum(in.at("b"), more.at("b")), p.map),
                     sum(product(a, in.at("b"), p.map), product(a, more.at("b"), p.map)));
       }},
      {"a bias is added to each row",
       {},
       [=, &f](const GemmProblem& p) {
         GemmProblem biased = p;
         biased.bias = true;
         const Arrays in = f.inputs(biased);
         Array right = product(in.at("a"), in.at("b"), p.map);
         const auto bias = floats(in.at("bias"));
         for (std::size_t i = 0; i < right.as<float>().size(); ++i)
           right.as<float>()[i] += bias[i % bias.size()];
         expect_same(f(biased, in).at("c"), right);
       }},
      {"ReLU = what is not below zero",
       {},
       [=, &f](const GemmProblem& p) {
         GemmProblem biased = p;
         biased.bias = true;
         GemmProblem with_relu = biased;
         with_relu.activation = Activation::relu;
         const Arrays in = f.inputs(biased);
         Array right = f(biased, in).at("c");
         for (float& value : right.as<float>()) value = std::max(value, 0.0f);
         expect_same(f(with_relu, in).at("c"), right);
       }},
      {"the unit matrix",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         Array unit = zeros({p.K, p.K});
         for (std::int64_t i = 0; i < p.K; ++i) unit.as<float>()[at(i * p.K + i)] = 1;
         expect_same(product(in.at("a"), unit, p.map), in.at("a"), "a 1");
         expect_same(product(unit, in.at("b"), p.map), in.at("b"), "1 b");
       }},
      {"(a b)^T = b^T a^T",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(product(transposed(in.at("b")), transposed(in.at("a")), p.map),
                     transposed(product(in.at("a"), in.at("b"), p.map)));
       }},
      {"(a b) c = a (b c)",
       {},
       [=, &f](const GemmProblem& p) {
         if (f.factors(p) == DType::f8)
           throw DeclinesProblem{"multiplies a product, which is not of 8 bits"};
         const Arrays in = f.inputs(p);
         const Array c = f.inputs(GemmProblem{.M = 1, .N = 7, .K = p.N}, 2).at("b");
         const Array& a = in.at("a");
         const Array& b = in.at("b");
         expect_same(product(product(a, b, p.map), c, p.map),
                     product(a, product(b, c, p.map), p.map));
       }},
      {"permuted rows of a",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const std::vector<int> order = permutation(p.M, opt.seed);
         expect_same(product(permute_rows(in.at("a"), order), in.at("b"), p.map),
                     permute_rows(product(in.at("a"), in.at("b"), p.map), order));
       }},
      {"permuted k",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const std::vector<int> order = permutation(p.K, opt.seed);
         const Array a = transposed(permute_rows(transposed(in.at("a")), order));
         expect_same(product(a, permute_rows(in.at("b"), order), p.map),
                     product(in.at("a"), in.at("b"), p.map));
       }},
      {"the same under every map",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const Array c = product(in.at("a"), in.at("b"), TileMap::row_major);
         for (const TileMapName& map : kTileMaps) {
           if (!hands_out_whole_tiles(map.map)) continue;
           expect_same(product(in.at("a"), in.at("b"), map.map), c, std::string(map.name));
         }
       }},
  };
}

}  // namespace

LadderTests gemm_tests() {
  return {
      gemm_problems, [](int count, std::uint64_t seed) {
            return drawn(count, seed, random_gemm); },
      gemm_rounding, checked<GemmProblem>(gemm_identities, gemm_bases),
      gemm_limits,   small_products};
}

}  // namespace convladder::testing
