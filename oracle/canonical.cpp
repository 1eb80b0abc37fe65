#include "oracle/canonical.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "core/parallel.hpp"

namespace convladder {
namespace {

using Pair = std::array<std::int32_t, kPairColumns>;

bool is_table(const Array& array, std::int64_t columns) {
  return array.dtype() == DType::i32 && array.shape().size() == 2 && array.shape()[1] == columns;
}

/// Whether out_coords, and pairs if present, have the right number of columns, and pairs refer to
/// rows of out_coords.
bool makes_sense(const RulebookProblem& book, const Arrays& outputs) {
  const auto coords = outputs.find("out_coords"), pairs = outputs.find("pairs");
  if (coords == outputs.end() || !is_table(coords->second, 1 + book.ndim)) return false;
  if (pairs == outputs.end()) return true;
  if (!is_table(pairs->second, kPairColumns)) return false;
  const auto numbers = pairs->second.as<std::int32_t>();
  for (std::size_t i = 2; i < numbers.size(); i += kPairColumns) {
    if (numbers[i] < 0 || numbers[i] >= coords->second.shape()[0]) return false;
  }
  return true;
}

/// The old row of each new one, so that the sites ascend.
std::vector<std::size_t> sorted_rows(const Array& coords) {
  const auto numbers = coords.as<std::int32_t>();
  const auto columns = static_cast<std::size_t>(coords.shape()[1]);
  std::vector<std::size_t> rows(static_cast<std::size_t>(coords.shape()[0]));
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const auto site = [&](std::size_t row) { return numbers.subspan(row * columns, columns); };
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return std::lexicographical_compare(site(a).begin(), site(a).end(), site(b).begin(),
                                        site(b).end());
  });
  return rows;
}

/// Permutes rows, or columns if `columns`, of a matrix.
void reorder(Array& matrix, const std::vector<std::size_t>& old_of_new, bool columns) {
  if (matrix.shape().size() != 2 ||
      matrix.shape()[columns ? 1 : 0] != static_cast<std::int64_t>(old_of_new.size())) {
    return;  // wrong shape: the comparison will report it
  }
  const Array old = matrix;
  const auto from = old.as<std::int32_t>();
  const auto to = matrix.as<std::int32_t>();
  const auto height = static_cast<std::size_t>(matrix.shape()[0]),
             width = static_cast<std::size_t>(matrix.shape()[1]);
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      to[row * width + column] =
          columns ? from[row * width + old_of_new[column]] : from[old_of_new[row] * width + column];
    }
  }
}

/// Sorts by (k, out), tap by tap. Pairs of invalid taps come last.
void sort_pairs(const RulebookProblem& book, Array& pairs) {
  const auto numbers = pairs.as<std::int32_t>();
  std::vector<std::vector<Pair>> of_tap(static_cast<std::size_t>(book.KV) + 1);
  for (auto from = numbers.begin(); from != numbers.end(); from += kPairColumns) {
    const bool is_tap = *from >= 0 && *from < book.KV;
    Pair& pair =
        of_tap[is_tap ? static_cast<std::size_t>(*from) : of_tap.size() - 1].emplace_back();
    std::copy_n(from, kPairColumns, pair.begin());
  }
  parallel_for(static_cast<std::int64_t>(of_tap.size()), [&](std::int64_t tap) {
    std::vector<Pair>& rows = of_tap[static_cast<std::size_t>(tap)];
    std::sort(rows.begin(), rows.end(), [](const Pair& a, const Pair& b) {
      return std::array{a[0], a[2], a[1]} < std::array{b[0], b[2], b[1]};
    });
  });
  auto to = numbers.begin();
  for (const std::vector<Pair>& rows : of_tap) {
    for (const Pair& pair : rows) to = std::copy(pair.begin(), pair.end(), to);
  }
}

}  // namespace

Arrays canonical(const Problem& problem, Arrays outputs) {
  const auto* book = std::get_if<RulebookProblem>(&problem);
  if (book == nullptr || !makes_sense(*book, outputs)) return outputs;
  const auto with = [&](const char* name, const auto& change) {
    if (const auto array = outputs.find(name); array != outputs.end()) change(array->second);
  };
  if (book->mode == SparseMode::strided || book->mode == SparseMode::transposed) {
    Array& coords = outputs.at("out_coords");
    const std::vector<std::size_t> old_of_new = sorted_rows(coords);
    std::vector<std::int32_t> new_of_old(old_of_new.size());
    for (std::size_t row = 0; row < old_of_new.size(); ++row)
      new_of_old[old_of_new[row]] = static_cast<std::int32_t>(row);
    reorder(coords, old_of_new, false);
    with("pairs", [&](Array& pairs) {
      const auto numbers = pairs.as<std::int32_t>();
      for (std::size_t i = 2; i < numbers.size(); i += kPairColumns)
        numbers[i] = new_of_old[static_cast<std::size_t>(numbers[i])];
    });
    with("nbr", [&](Array& nbr) { reorder(nbr, old_of_new, true); });
    with("mask", [&](Array& mask) { reorder(mask, old_of_new, false); });
  }
  with("pairs", [&](Array& pairs) { sort_pairs(*book, pairs); });
  return outputs;
}

}  // namespace convladder
