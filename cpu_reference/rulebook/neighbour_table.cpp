/// @file neighbour_table.cpp
/// @brief Neighbour table [tap][output], from which every form of a rulebook is read.
///
/// - Before: sorted_search.cpp
/// - On the GPU: cuda_optimized/rulebook/neighbour_table.cu,
/// cuda_optimized/rulebook/submanifold/hash_table.cu
///
/// **The idea.** At a tap, an output has at most one input. One integer per tap and output
/// therefore represents the rulebook: nbr [KV][M], the row of the input, or -1. All forms are views
/// of it.
///
///     nbr       out 0  1  2  3        mask     the table's columns: which taps exist
///     tap 0       .  0  .  2          pairs    the table row by row, without empty entries
///     tap 1       0  1  2  3          order    the outputs, sorted by their masks
///     tap 2       1  .  3  .          split    the same for each half of the taps separately
///     mask      110 011 110 011       order    1 3 0 2   (011 before 110, stable)
///
/// The order lets a tile of outputs with equal masks skip the same taps. Nothing else depends on
/// it; each output still sums its own taps in their order.
///
/// **Expect.** KV * M look-ups, as in sorted_search.cpp; then passes over the table, and one or two
/// sorts of M rows.
/// **Costs.** 4 * KV * M bytes for the table. In a LiDAR sweep, four of five entries are empty.
/// **Try.** For form `split`, count the distinct masks in tiles of 32 rows, in both orders.
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/site_errors.hpp"
#include "core/text.hpp"

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

/// mask [M][words] of nbr [KV][M].
void write_masks(int KV, std::int64_t M, const std::int32_t* nbr, std::int32_t* mask) {
  const int words = mask_words(KV);
  for (std::int64_t row = 0; row < M; ++row) {
    for (int word = 0; word < words; ++word) {
      std::uint32_t bits = 0;
      for (int k = 32 * word; k < std::min(32 * word + 32, KV); ++k) {
        if (nbr[k * M + row] >= 0) bits |= std::uint32_t{1} << k % 32;
      }
      mask[row * words + word] = static_cast<std::int32_t>(bits);
    }
  }
}

/// Creates pairs [P][3]: the table row by row.
void create_pairs(int KV, std::int64_t M, const std::int32_t* nbr, const RulebookArrays& arrays) {
  const std::int64_t P = std::count_if(nbr, nbr + KV * M, [](std::int32_t in) { return in >= 0; });
  auto* to = arrays.create("pairs", {P, kPairColumns});
  for (int k = 0; k < KV; ++k) {
    for (std::int64_t out = 0; out < M; ++out) {
      const std::int32_t in = nbr[k * M + out];
      if (in < 0) continue;
      *to++ = k;
      *to++ = in;
      *to++ = static_cast<std::int32_t>(out);
    }
  }
}

/// Creates order [parts][M]: for each part of the taps, the rows by those bits of their masks.
void create_order(const RulebookProblem& book, std::int64_t M, const std::int32_t* nbr,
                  const RulebookArrays& arrays) {
  const int parts = orders_of(book.form);
  auto* order = arrays.create("order", {parts, M});
  for (int part = 0; part < parts; ++part) {
    const int first = first_tap(book.KV, parts, part), end = first_tap(book.KV, parts, part + 1);
    // Compared as integers: the highest tap in which two masks differ decides.
    const auto less = [&](std::int32_t a, std::int32_t b) {
      for (int k = end - 1; k >= first; --k) {
        const bool of_a = nbr[k * M + a] >= 0, of_b = nbr[k * M + b] >= 0;
        if (of_a != of_b) return of_b;
      }
      return false;
    };
    std::int32_t* const rows = order + part * M;
    std::iota(rows, rows + M, 0);
    std::stable_sort(rows, rows + M, less);
  }
}

/// coords [sites][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words], and the
/// further arrays of the form. @throws BadInput for sites outside of the grid, and for duplicates
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
  auto* nbr = arrays.create("nbr", {book.KV, M});
  for (int k = 0; k < book.KV; ++k) {
    const PerAxis tap = tap_of(book, k);
    for (std::int64_t row = 0; row < M; ++row) {
      const Site out = site_of(book, out_coords, row);
      Site in;
      const bool inside = inverse ? output_of(book, out, tap, &in) : input_of(book, out, tap, &in);
      nbr[k * M + row] =
          inside ? row_of(inputs, key_of(book, inverse ? book.out_shape : book.shape, in)) : -1;
    }
  }
  write_masks(book.KV, M, nbr, arrays.create("mask", {M, mask_words(book.KV)}));
  if (book.form == RulebookForm::pairs) create_pairs(book.KV, M, nbr, arrays);
  if (orders_of(book.form) > 0) create_order(book, M, nbr, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(book.mode == SparseMode::subm      ? "all rows are given, "
              : book.mode == SparseMode::inverse ? "inputs are found, "
                                                 : "outputs are found, ",
              book.form == RulebookForm::pairs ? "then pairs"
              : book.form == RulebookForm::table
                  ? "a table"
                  : "then " + how_many(orders_of(book.form), "order"));
}

}  // namespace

extern const Implementation<RulebookArrays> neighbour_table = {
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::cpu_reference::rulebook
