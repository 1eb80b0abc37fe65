/// @file limits_test.cpp
/// @brief Problems that no machine holds, and types that a ladder's arrays have not: rungs are
/// asked whether they take them, for how much workspace, and what they choose, but nothing runs.
/// They decline with a reason, or they take it; their own arithmetic must not overflow on the way
/// (a sanitizer sees that).
#include <doctest/doctest.h>

#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "tests/problems.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

constexpr int kMost = 2147483647;

std::vector<Problem> dense_limits(const std::string& ladder) {
  std::vector<Problem> list;
  if (ladder.starts_with("conv2d")) {
    using P = Conv2dProblem;
    for (const P& problem : {
             P{.dtype = DType::f16},
             P{.C = 1 << 27, .H = 4, .W = 4, .R = 4, .S = 4},          // weights of a filter
             P{.C = 1 << 15, .H = 256, .W = 256, .R = 256, .S = 256},  // likewise, in many taps
             P{.R = 1 << 13, .S = 1 << 13, .pad = {1 << 13, 0, 1 << 13, 0}},  // likewise, padded
             P{.C = 64, .R = 1 << 13, .S = 1 << 13, .pad = {1 << 13, 0, 1 << 13, 0}},
             P{.N = 1 << 25, .H = 64, .W = 64},                              // pixels of all images
             P{.N = kMost, .H = 3, .W = 3, .R = 3, .S = 3},                  // likewise, tiles
             P{.H = 1 << 16, .W = 1 << 16},                                  // pixels of an image
             P{.N = 1 << 23, .C = 4096, .H = 8, .W = 8, .K = 4096},          // steps of all tiles
             P{.N = 1 << 24, .C = 256, .K = 256, .groups = 256},             // planes
             P{.N = 1 << 24, .H = 256, .W = 1},                              // rows of planes
             P{.C = 2, .H = 1, .W = 100'000, .K = 2, .groups = 2},           // a row of a plane
             P{.H = 301, .W = 301, .R = 2, .S = 2, .dilation = {300, 300}},  // inputs of an output
             P{.H = 100, .W = 100, .R = 100, .S = 100},               // nearly all of dy's padding
             P{.C = 1 << 15, .H = 256, .W = 256},                     // an image of x
             P{.H = 256, .W = 256, .K = 1 << 15},                     // likewise, of dy
             P{.N = 2, .C = 64, .H = 256, .W = 256, .R = 3, .S = 3},  // columns of two images
             // Classes of pixels that get different tiles.
             P{.C = 64, .H = 63, .W = 63, .K = 64, .R = 2, .S = 2, .stride = {2, 2}},
             P{.N = 16, .C = 256, .H = 63, .W = 63, .K = 512, .R = 3, .S = 3, .stride = {2, 2}},
         }) {
      list.emplace_back(validated(problem));
    }
  } else if (ladder == "im2col" || ladder == "col2im") {
    using P = Im2colProblem;
    for (const P& problem :
         {P{.dtype = DType::f16}, P{.height = {1 << 16, 1}, .width = {1 << 16, 1}},  // windows
          P{.C = 1 << 20, .height = {64, 64}, .width = {64, 64}},         // rows of columns
          P{.N = kMost, .C = kMost, .height = {1, 1}, .width = {1, 1}}})  // channels
      list.emplace_back(validated(problem));
  } else if (ladder == "gemm") {
    for (const TileMapName& map : kTileMaps) {
      for (const auto& [m, n, k] : {std::array{kMost, kMost, 1}, {1, 1, kMost}, {kMost, 1, kMost}})
        list.emplace_back(validated(GemmProblem{.M = m, .N = n, .K = k, .map = map.map}));
    }
  } else if (ladder == "tile_map") {
    for (const TileMapName& map : kTileMaps)
      list.emplace_back(validated(TileMapProblem{.map = map.map, .tiles_m = 60'000, .tiles_n = 4}));
  }
  return list;
}

std::vector<Problem> sparse_limits(const std::string& ladder) {
  std::vector<RulebookProblem> books;
  const auto add = [&](RulebookProblem book) {
    for (const SparseMode mode :
         {SparseMode::subm, SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
      book.mode = mode;
      books.push_back(validated(book));
    }
  };
  add({.sites = 1 << 27, .shape = every_axis(1 << 10)});         // candidates
  add({.sites = 1 << 27, .shape = every_axis(1 << 20)});         // bits of a key and a row
  add({.sites = 1000, .shape = {{1 << 16, 1 << 16, 1 << 10}}});  // words of 32 cells
  RulebookProblem far{.ndim = 1, .sites = 1000, .shape = every_axis(1 << 29)};  // ends of windows
  far.dilation = every_axis(1 << 29);
  far.pad = every_axis(1 << 29);
  add(far);
  add({.ndim = 1, .sites = 1000, .shape = every_axis(1 << 20), .kernel = {{1089}}});
  add({.ndim = 1, .sites = kMost, .shape = every_axis(kMost), .kernel = {{1}}});

  std::vector<Problem> list;
  for (const RulebookProblem& book : books) {
    if (ladder == "rulebook") {
      list.emplace_back(book);
    } else if (ladder == "sparse_to_dense") {
      // The other grids are too large for a problem.
      if (key_count(book, book.shape) <= std::int64_t{1} << 40)
        list.emplace_back(validated(SparseToDenseProblem{.grid = book, .C = 64}));
    } else if (ladder.starts_with("sparse_max_pool")) {
      list.emplace_back(validated(SparsePoolProblem{
          .book = book, .C = 64, .N = book.sites, .M = book.sites, .pairs = kMost}));
    } else {
      for (const auto& [in, out] :
           {std::array{1, 1}, {1 << 12, 1 << 12}, {1 << 20, 1 << 20}, {1 << 30, 1}, {1, 1 << 30}}) {
        // As many pairs as there can be, and so many that parts are neither shortest nor longest.
        for (const std::int64_t pairs : {std::int64_t{kMost}, std::int64_t{1} << 22}) {
          list.emplace_back(validated(SparseConvProblem{.book = book,
                                                        .Cin = in,
                                                        .Cout = out,
                                                        .N = book.sites,
                                                        .M = book.sites,
                                                        .pairs = pairs,
                                                        .most_pairs = book.sites}));
        }
      }
    }
  }
  return list;
}

}  // namespace

TEST_SUITE_BEGIN("limits");

TEST_CASE("what no machine holds is declined with a reason, or taken without an overflow") {
  for (const Ladder& ladder : ladders()) {
    const std::vector<Problem> problems =
        is_sparse(ladder.name) ? sparse_limits(ladder.name) : dense_limits(ladder.name);
    REQUIRE(!problems.empty());
    for (const Rung& rung : ladder.rungs) {
      for (const Where where : kEverywhere) {
        const auto& code = rung.code_at(where);
        if (!code || device_at(where) == nullptr) continue;
        for (const Problem& problem : problems) {
          for (const std::vector<Problem>& forms : forms_of(problem)) {
            for (const Problem& form : forms) {
              INFO(rung.name, " (", name_of(where), "): ", describe(form));
              try {
                if (const Declined why = code->supports(form)) {
                  CHECK(!why->empty());
                } else {
                  code->workspace_bytes(form);
                  code->tile(form);
                  if (code->choice) code->choice(form);
                }
              } catch (const BadInput& error) {
                CHECK(std::string(error.what()) != "");  // sizes whose product 64 bits do not hold
              }
            }
          }
        }
      }
    }
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
