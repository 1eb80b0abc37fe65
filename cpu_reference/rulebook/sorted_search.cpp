/// @file sorted_search.cpp
/// @brief Sorted keys and binary search from the outputs: pairs are produced in sorted order.
///
/// - Before: hash_map.cpp
/// - After: neighbour_table.cpp
/// - On the GPU: cuda_optimized/rulebook/neighbour_table.cu
///
/// **The idea.** A site's key is the index of its cell in a dense grid. A sorted list of keys
/// replaces the hash map: a binary search tells whether a cell is occupied, and gives its row.
///
///     keys    3  8  9  14  20  31        is 14 occupied?    31 > 14 > 9: yes, at index 3
///     rows    5  0  2   1   4   3        ... so in row 1
///
/// Sorting also yields the outputs of `strided` and `transposed`: all keys that an input reaches,
/// sorted and without duplicates, are the outputs in order. An output has at most one input per tap
/// (and vice versa), so the loop runs over taps and outputs: the pairs are produced in sorted
/// order, without a sort at the end.
///
/// **Expect.** KV look-ups per output, of log2(sites) steps each; the last steps stay in one cache
/// line. **Costs.** Two sorts. Slower than a good hash map, but without a table size, a hash
/// function and a worst case.
#include <algorithm>
#include <vector>

#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/site_errors.hpp"

namespace convladder::cpu_reference::rulebook {
namespace {

/// A key, and the row of its site.
struct Entry {
  std::int64_t key;
  std::int32_t row;
};

/// The row of a key in a list sorted by key, or -1.
std::int32_t row_of(const std::vector<Entry>& sorted, std::int64_t key) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), key,
                       [](const Entry& entry, std::int64_t wanted) { return entry.key < wanted; });
  return found != sorted.end() && found->key == key ? found->row : -1;
}

/// The sites of coords [sites][1 + ndim].
std::vector<Entry> given_sites(const RulebookProblem& book, const std::int32_t* coords) {
  std::vector<Entry> sorted;
  for (std::int32_t row = 0; row < book.sites; ++row)
    sorted.push_back({key_of(book, book.shape, site_of(book, coords, row)), row});
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return sorted;
}

/// The sites that the taps of coords [sites][1 + ndim] lead to, numbered in sorted order.
std::vector<Entry> found_sites(const RulebookProblem& book, const std::int32_t* coords) {
  std::vector<std::int64_t> keys;
  for (int k = 0; k < book.KV; ++k) {
    const PerAxis tap = tap_of(book, k);
    for (std::int32_t row = 0; row < book.sites; ++row) {
      Site out;
      if (output_of(book, site_of(book, coords, row), tap, &out))
        keys.push_back(key_of(book, book.out_shape, out));
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<Entry> sorted;
  for (const std::int64_t key : keys)
    sorted.push_back({key, static_cast<std::int32_t>(sorted.size())});
  return sorted;
}

/// coords [sites][1 + ndim] to out_coords [M][1 + ndim] and pairs [P][3].
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const RulebookArrays& arrays, const Context&) {
  const auto* coords = arrays.coords;
  const std::span all(coords, static_cast<std::size_t>(book.sites * std::int64_t{1 + book.ndim}));
  require_no_errors(book, find_site_errors(book, all), all);

  const bool inverse = book.mode == SparseMode::inverse;
  const bool rows_are_given = inverse || book.mode == SparseMode::subm;
  const std::vector<Entry> found =
      book.mode == SparseMode::subm ? std::vector<Entry>{} : found_sites(book, coords);
  const std::int64_t M = rows_are_given ? book.sites : static_cast<std::int64_t>(found.size());
  auto* out_coords = arrays.create("out_coords", {M, 1 + book.ndim});
  if (rows_are_given) {
    std::copy(all.begin(), all.end(), out_coords);
  } else {
    for (const auto& [key, row] : found)
      write_site(book, site_of_key(book, book.out_shape, key), out_coords, row);
  }

  // With `inverse`, the outputs are the given sites, and the taps are applied from them.
  const std::vector<Entry> inputs = inverse ? found : given_sites(book, coords);
  std::vector<std::int32_t> pairs;
  for (int k = 0; k < book.KV; ++k) {
    const PerAxis tap = tap_of(book, k);
    for (std::int32_t row = 0; row < M; ++row) {
      const Site out = site_of(book, out_coords, row);
      Site in;
      if (!(inverse ? output_of(book, out, tap, &in) : input_of(book, out, tap, &in))) continue;
      const std::int32_t in_row =
          row_of(inputs, key_of(book, inverse ? book.out_shape : book.shape, in));
      if (in_row >= 0) pairs.insert(pairs.end(), {k, in_row, row});
    }
  }
  auto* to = arrays.create("pairs",
                           {static_cast<std::int64_t>(pairs.size()) / kPairColumns, kPairColumns});
  std::copy(pairs.begin(), pairs.end(), to);
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

extern const Implementation<RulebookArrays> sorted_search = {
    .supports = supports,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::rulebook
