/// @file hash_map.cpp
/// @brief Hash map from sites to rows, with a look-up for each tap of each site.
///
/// - After: cuda_naive/rulebook/dense_grid.cu, cuda_naive/rulebook/two_phases.cu, sorted_search.cpp
/// - On the GPU: cuda_naive/rulebook/dense_grid.cu, cuda_naive/rulebook/two_phases.cu
///
/// **The idea.** A sparse convolution visits only occupied sites. From each input site, every tap k
/// leads to at most one output site; a hash map tells whether that site exists, and gives its row.
///
///     x . x x .    the window of the site in the centre contains
///     . . X . .    the site itself at the centre tap, and each x at
///     . x . . .    the corresponding tap
///
/// There are three steps: the output sites are numbered in a hash map (`subm`: the input's sites;
/// otherwise all sites that an input reaches, in sorted order); every tap of every input is looked
/// up; each hit is a pair. Most look-ups fail: four of five in a LiDAR sweep.
///
/// **Expect.** KV look-ups per site. **Costs.** Hash maps have no locality; nothing is parallel.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/site_errors.hpp"

namespace convladder::cpu_reference::rulebook {
namespace {

/// k, out, in: the sort order of the pairs.
using Pair = std::array<std::int32_t, 3>;

/// coords [sites][1 + ndim] to out_coords [M][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context&) {
  const auto* coords = arrays.coords;
  const std::span all(coords, static_cast<std::size_t>(book.sites * std::int64_t{1 + book.ndim}));
  require_no_errors(book, find_site_errors(book, all), all);

  // Rows by key, for the sites that the taps lead to.
  std::unordered_map<std::int64_t, std::int32_t> rows;
  std::vector<std::int64_t> keys;  // keys of the output sites, ascending
  if (book.mode == SparseMode::subm) {
    for (std::int32_t row = 0; row < book.sites; ++row)
      rows.emplace(key_of(book, book.shape, site_of(book, coords, row)), row);
  } else {
    for (std::int32_t row = 0; row < book.sites; ++row) {
      for (int k = 0; k < book.KV; ++k) {
        Site out;
        if (!output_of(book, site_of(book, coords, row), tap_of(book, k), &out)) continue;
        const std::int64_t key = key_of(book, book.out_shape, out);
        if (rows.emplace(key, 0).second) keys.push_back(key);
      }
    }
    std::sort(keys.begin(), keys.end());
    for (std::size_t row = 0; row < keys.size(); ++row)
      rows[keys[row]] = static_cast<std::int32_t>(row);
  }

  std::vector<Pair> pairs;
  for (int k = 0; k < book.KV; ++k) {
    const PerAxis tap = tap_of(book, k);
    for (std::int32_t in = 0; in < book.sites; ++in) {
      Site out;
      if (!output_of(book, site_of(book, coords, in), tap, &out)) continue;
      const auto found = rows.find(key_of(book, book.out_shape, out));
      if (found == rows.end()) continue;
      // `inverse` is the rulebook of `strided` with inputs and outputs exchanged.
      pairs.push_back(book.mode == SparseMode::inverse ? Pair{k, in, found->second}
                                                       : Pair{k, found->second, in});
    }
  }
  std::sort(pairs.begin(), pairs.end());

  const bool rows_are_given = book.mode == SparseMode::subm || book.mode == SparseMode::inverse;
  const std::int64_t M = rows_are_given ? book.sites : static_cast<std::int64_t>(keys.size());
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  if (rows_are_given) {
    std::copy(all.begin(), all.end(), out_coords);
  } else {
    for (std::int64_t row = 0; row < M; ++row)
      write_site(book, site_of_key(book, book.out_shape, keys[static_cast<std::size_t>(row)]),
                 out_coords, row);
  }
  auto* to = arrays.create("pairs", {static_cast<std::int64_t>(pairs.size()), kPairColumns});
  for (const auto& [k, out, in] : pairs) {
    *to++ = k;
    *to++ = in;
    *to++ = out;
  }
}

Declined supports(const RulebookProblem& book) {
  if (book.form != RulebookForm::pairs) return "form pairs only";
  return {};
}

std::string choice_in_words(const RulebookProblem& book) {
  return book.mode == SparseMode::subm      ? "all rows are given"
         : book.mode == SparseMode::inverse ? "inputs are found"
                                            : "outputs are found";
}

}  // namespace

extern const Implementation<RulebookArrays> hash_map = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::rulebook
