/// @file rulebook_5x5.cpp
/// @brief Prints the rulebooks of five sites on a 5 x 5 grid, as the page of the ladder shows them.
#include <cstdio>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/rulebook.hpp"

namespace {

using namespace convladder;

/// A grid with the row of each site, "." where there is none.
void print_grid(const char* title, const PerAxis& shape, const Array& coords) {
  std::vector<std::string> cells(static_cast<std::size_t>(shape[0] * shape[1]), ".");
  const auto numbers = coords.as<std::int32_t>();
  for (std::size_t row = 0; row < numbers.size() / 3; ++row) {
    const int y = numbers[3 * row + 1], x = numbers[3 * row + 2];
    cells[static_cast<std::size_t>(y * shape[1] + x)] = std::to_string(row);
  }
  std::printf("%s\n\n", title);
  for (int y = 0; y < shape[0]; ++y) {
    std::printf("   ");
    for (int x = 0; x < shape[1]; ++x)
      std::printf(" %2s", cells[static_cast<std::size_t>(y * shape[1] + x)].c_str());
    std::printf("\n");
  }
  std::printf("\n");
}

/// The pairs tap by tap; the taps that have none are left out.
void print_pairs(const Rulebook& book) {
  const auto pairs = book.pairs.as<std::int32_t>();
  const auto offsets = book.offsets.as<std::int32_t>();
  for (int k = 0; k < book.problem.KV; ++k) {
    const auto begin = static_cast<std::size_t>(offsets[static_cast<std::size_t>(k)]);
    const auto end = static_cast<std::size_t>(offsets[static_cast<std::size_t>(k) + 1]);
    if (begin == end) continue;
    const PerAxis tap = tap_of(book.problem, k);
    std::printf("    k = %d, tap (%d,%d):", k, tap[0], tap[1]);
    for (std::size_t i = begin; i < end; ++i)
      std::printf("  %d -> %d", pairs[3 * i + 1], pairs[3 * i + 2]);
    std::printf("\n");
  }
  std::printf("\n    %zu pairs\n", pairs.size() / 3);
}

}  // namespace

int main() {
  Array coords(DType::i32, {5, 3});
  const std::vector<std::int32_t> sites = {0, 0, 0, 0, 1, 1, 0, 1, 2, 0, 3, 1, 0, 4, 4};
  std::copy(sites.begin(), sites.end(), coords.as<std::int32_t>().begin());

  RulebookProblem problem{
      .mode = SparseMode::subm, .ndim = 2, .sites = 5, .shape = every_axis(5)};
  print_grid("Five sites, numbered in the order of the input:", problem.shape, coords);
  std::printf("Submanifold, kernel 3 x 3: input row -> output row, tap by tap.\n\n");
  print_pairs(make_rulebook(validated(problem), coords));

  problem.mode = SparseMode::strided;
  problem.stride = every_axis(2);
  problem.pad = every_axis(1);
  const Rulebook strided = make_rulebook(validated(problem), coords);
  std::printf("\n");
  print_grid("Strided, kernel 3 x 3, stride 2, padding 1: the outputs, numbered in their order.",
             strided.problem.out_shape, strided.out_coords);
  print_pairs(strided);
}
