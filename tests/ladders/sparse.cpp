/// @file sparse.cpp
/// @brief The sparse ladders: one list of sites serves all of them.
#include <array>
#include <string>
#include <vector>

#include "tests/ladders/ladder_tests.hpp"
#include "tests/sparse_identities.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {

namespace {

std::vector<TestProblem> small_sparse_problems(const std::string& ladder) {
  std::vector<TestProblem> list;
  Dice dice(3);
  for (const SparseMode mode : {SparseMode::subm, SparseMode::strided}) {
    for (const auto& [Cin, Cout] : {std::array{3, 5}, {16, 16}, {33, 17}}) {
      RulebookProblem book{.mode = mode, .ndim = 2, .shape = {{7, 8}}, .kernel = {{3, 3}}};
      if (mode == SparseMode::strided) book.stride = {{2, 2}}, book.pad = {{1, 1}};
      SparseConvProblem layer{.Cin = Cin, .Cout = Cout};
      if (ladder == "sparse_conv") {
        layer.bias = Cin == 3;
        if (Cin == 16) layer.activation = Activation::relu;
      }
      list.push_back(sparse_problem(ladder, "", random_case(book, 20, dice), layer));
    }
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
  add({.ndim = 1, .sites = kLargestInt, .shape = every_axis(kLargestInt), .kernel = {{1}}});

  std::vector<Problem> list;
  for (const RulebookProblem& book : books) {
    if (ladder == "rulebook") {
      list.emplace_back(book);
    } else if (ladder == "sparse_to_dense") {
      // The other grids are too large for a problem.
      if (key_count(book, book.shape) <= std::int64_t{1} << 40)
        list.emplace_back(validated(SparseToDenseProblem{.grid = book, .C = 64}));
    } else if (ladder == "sparse_global_pool") {
      for (const PoolReduction reduce : {PoolReduction::max, PoolReduction::mean})
        list.emplace_back(
            validated(SparseGlobalPoolProblem{.grid = book, .C = 64, .reduce = reduce}));
    } else if (pools_over_rulebook(ladder)) {
      list.emplace_back(validated(SparsePoolProblem{
          .book = book, .C = 64, .N = book.sites, .M = book.sites, .pairs = kLargestInt}));
    } else {
      for (const auto& [in, out] : {std::array{1, 1},
                                    {1 << 12, 1 << 12},
                                    {1 << 20, 1 << 20},
                                    {1 << 30, 1},
                                    {1, 1 << 30},
                                    {(1 << 21) + 1, 1},  // more channels than blocks of 32
                                    {1, (1 << 21) + 1}}) {
        // As many pairs as there can be, and so many that parts are neither shortest nor longest.
        for (const std::int64_t pairs : {std::int64_t{kLargestInt}, std::int64_t{1} << 22}) {
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

LadderTests sparse_tests(const std::string& ladder) {
  LadderTests tests = {
      [=] { return sparse_problems(ladder); },
      [=](int count, std::uint64_t seed) { return random_sparse_problems(ladder, count, seed); },
      [=] { return sparse_rounding_problems(ladder); }, check_sparse_identities,
      [=] { return sparse_limits(ladder); }};
  if (ladder != "rulebook") tests.non_finite = [=] { return small_sparse_problems(ladder); };
  return tests;
}

}  // namespace convladder::testing
