/// @file neighbour_table.cpp
/// @brief rulebook, CPU: every form, each read off one table of neighbours.
///
/// - Before: sorted_search.cpp
/// - On the GPU: cuda_optimized/rulebook/neighbour_table.cu,
/// cuda_optimized/rulebook/submanifold/hash_table.cu
///
/// **The idea.** At a tap, an output has one input or none. So one number for each tap and output
/// says everything: nbr [KV][M], the row of the input, or -1. The forms in which a convolution may
/// want its rulebook are four ways of reading that table.
///
///     nbr       out 0  1  2  3        mask     the table's columns: which taps are there
///     tap 0       .  0  .  2          pairs    the table row by row, without its holes
///     tap 1       0  1  2  3          order    the outputs, sorted by their masks
///     tap 2       1  .  3  .          split    the same for each half of the taps by itself
///     mask      110 011 110 011       order    1 3 0 2   (011 before 110, equal ones as they come)
///
/// What orders are for: a tile of outputs with equal masks skips the same taps. Nothing else
/// depends on them; each output still adds up its own taps, in their order.
///
/// **Expect.** KV * M look-ups, as in sorted_search.cpp; then passes over the table, and one or two
/// sorts of M rows.
/// **Costs.** 4 * KV * M bytes of table, also where only pairs are wanted: in a LiDAR sweep, four
/// of five places are holes.
/// **Try.** Count for form `split` how many different masks a tile of 32 rows has, in the order of
/// rows and in that of each half.
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
    // Compared like numbers: at the highest tap where two masks differ.
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

/// coords [sites][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words], and what the
/// form asks for beside them. @throws BadInput for sites outside of the grid, and for duplicates
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
