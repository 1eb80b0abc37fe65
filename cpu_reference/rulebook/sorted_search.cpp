/// @file sorted_search.cpp
/// @brief rulebook, CPU: sorted keys and binary search instead of a hash map, asked by outputs.
///
/// - Before: hash_map.cpp
/// - After: neighbour_table.cpp
/// - On the GPU: cuda_optimized/rulebook/neighbour_table.cu
///
/// **The idea.** A site's key numbers the cells of a dense grid, so a sorted list of keys answers
/// the same question as a hash map: is there a site at this cell, and in which row?
///
///     keys    3  8  9  14  20  31        is there 14?    31 > 14 > 9: yes, at place 3
///     rows    5  0  2   1   4   3        ... so in row 1
///
/// Sorting also finds the outputs of `strided` and `transposed`: all keys that some input reaches,
/// sorted, repeats removed, *are* the outputs in their order. And since an output has at most one
/// input at a tap (and the other way round), it is the outputs that ask, tap after tap: the pairs
/// come out sorted, without a sort at the end.
///
/// **Expect.** KV look-ups an output, each of log2(sites) steps; the last steps stay in the same
/// cache line. **Costs.** Two sorts. Slower than a good hash map, but it has no table to size, no
/// hash to choose, and no worst case.
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

/// The row of a key in a list that ascends by keys, or -1.
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

/// The sites that those of coords [sites][1 + ndim] lead to, numbered in their order.
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

  // Under `inverse` the outputs are the given sites, and ask where they lead to.
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
