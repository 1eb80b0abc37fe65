/// @file tile_waste.cpp
/// @brief What an implicit product executes beside what it was asked for: tiles of rows do every
/// tap that any of their rows has. Counted for orders of the rows and heights of a tile, without a
/// GPU.
///
///     tile_waste            the sweep and the levels below it, as JSON
///     tile_waste large      the sweep of a sensor that goes on turning, as well (half a minute)
#include <algorithm>
#include <bit>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>

#include "core/text.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/rulebook.hpp"
#include "provenance/provenance.hpp"

namespace convladder::benchmarks {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::int32_t>;

constexpr std::int64_t kSweep = 125562, kLarge = 913903;  // sites
constexpr std::uint64_t kSeed = 1;                        // of the scene
constexpr std::array kTiles = {8, 16, 32, 64, 128};       // rows
constexpr int kGrain = 8;  // pairs that a list of rows is padded to: a thread's rows

/// The taps that each row has, as bits; 3 x 3 x 3 taps fit into one word.
std::vector<std::uint32_t> masks_of(const Rulebook& book) {
  const auto words = book.mask.as<std::int32_t>();
  return {words.begin(), words.end()};
}

/// Rows times taps that tiles of `tile` neighbours in `order` execute, of the taps in `part`.
std::int64_t executed(const std::vector<std::uint32_t>& masks, std::span<const std::int32_t> order,
                      int tile, std::uint32_t part) {
  std::int64_t sum = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(tile)) {
    const std::size_t end = std::min(begin + static_cast<std::size_t>(tile), order.size());
    std::uint32_t any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= masks[static_cast<std::size_t>(order[i])];
    sum += std::int64_t{std::popcount(any & part)} * tile;
  }
  return sum;
}

/// The same where a tile lists the rows of each tap, and pads the list to whole grains.
std::int64_t executed_as_lists(const std::vector<std::uint32_t>& masks,
                               std::span<const std::int32_t> order, int tile, int taps) {
  std::int64_t sum = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(tile)) {
    const std::size_t end = std::min(begin + static_cast<std::size_t>(tile), order.size());
    for (int k = 0; k < taps; ++k) {
      int listed = 0;
      for (std::size_t i = begin; i < end; ++i)
        listed += static_cast<int>(masks[static_cast<std::size_t>(order[i])] >> k & 1);
      sum += std::int64_t{ceil_div(listed, kGrain)} * kGrain;
    }
  }
  return sum;
}

/// The bits of up to three coordinates in turn: cells near each other are near on this curve.
std::uint64_t morton_code(const RulebookProblem& book, const Site& site) {
  std::uint64_t code = 0;
  for (int bit = 20; bit >= 0; --bit) {
    for (int axis = 0; axis < book.ndim; ++axis)
      code = code << 1 | static_cast<std::uint64_t>(site.at[axis] >> bit & 1);
  }
  return code;
}

Json counts(const std::string& name, const Rulebook& book) {
  const std::vector<std::uint32_t> masks = masks_of(book);
  const auto rows = static_cast<std::size_t>(book.M);
  const std::uint32_t all = (1u << book.problem.KV) - 1;
  const std::uint32_t first = (1u << first_tap(book.problem.KV, 2, 1)) - 1;
  Rows coordinates(rows);
  std::iota(coordinates.begin(), coordinates.end(), 0);
  Rows random = coordinates, morton = coordinates;
  std::shuffle(random.begin(), random.end(), std::minstd_rand(1));
  std::vector<std::uint64_t> codes;
  for (const std::int32_t row : coordinates) {
    codes.push_back(morton_code(
        book.problem, site_of(book.problem, book.out_coords.as<std::int32_t>().data(), row)));
  }
  std::ranges::stable_sort(morton, {},
                           [&](std::int32_t row) { return codes[static_cast<std::size_t>(row)]; });
  const auto sorted = book.order.as<std::int32_t>();
  const auto halves = book.split_order.as<std::int32_t>();

  Json json = {{"name", name},
               {"rows", book.M},
               {"taps", book.problem.KV},
               {"pairs", book.pairs.shape()[0]},
               {"executed", Json::array()}};
  const auto add = [&](const char* order, const auto& count) {
    Json& row = json["executed"].emplace_back(Json{{"order", order}});
    for (const int tile : kTiles) row[std::to_string(tile)] = count(tile);
  };
  add("random", [&](int tile) { return executed(masks, random, tile, all); });
  add("coordinates", [&](int tile) { return executed(masks, coordinates, tile, all); });
  add("Morton", [&](int tile) { return executed(masks, morton, tile, all); });
  add("sorted", [&](int tile) { return executed(masks, sorted, tile, all); });
  add("split", [&](int tile) {
    return executed(masks, halves.first(rows), tile, first) +
           executed(masks, halves.last(rows), tile, all & ~first);
  });
  add("lists",
      [&](int tile) { return executed_as_lists(masks, coordinates, tile, book.problem.KV); });
  return json;
}

RulebookProblem layer(SparseMode mode, const PerAxis& shape, const Array& coords) {
  RulebookProblem book{.mode = mode,
                       .sites = static_cast<int>(coords.shape()[0]),
                       .shape = shape,
                       .kernel = every_axis(3)};
  if (mode == SparseMode::strided) {
    book.stride = every_axis(2);
    book.pad = every_axis(1);
  }
  return validated(book);
}

Json tile_waste(bool large) {
  Json json = {
      {"date", today()}, {"commit", commit()}, {"grain", kGrain}, {"layers", Json::array()}};
  Array coords = lidar_sweep(kSweep, kSeed);
  PerAxis shape = kLidarShape;
  for (int level = 0; level < 3; ++level) {
    json["layers"].push_back(counts(level == 0 ? "sweep" : text("level ", level),
                                    make_rulebook(layer(SparseMode::subm, shape, coords), coords)));
    const Rulebook below = make_rulebook(layer(SparseMode::strided, shape, coords), coords);
    coords = below.out_coords;
    shape = below.problem.out_shape;
  }
  if (large) {
    coords = lidar_sweep(kLarge, kSeed);
    json["layers"].push_back(
        counts("large sweep", make_rulebook(layer(SparseMode::subm, kLidarShape, coords), coords)));
  }
  return json;
}

}  // namespace
}  // namespace convladder::benchmarks

int main(int count, char** words) {
  using namespace convladder::benchmarks;
  const std::vector<std::string> given(words + 1, words + count);
  if (!given.empty() && given != std::vector<std::string>{"large"}) {
    std::cerr << "usage: tile_waste [large]\n";
    return 2;
  }
  try {
    std::cout << tile_waste(!given.empty()).dump(1) << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tile_waste: %s\n", error.what());
    return 4;
  }
}
