#include "oracle/canonical.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace convladder {
namespace {

using Pair = std::array<std::int32_t, kPairColumns>;

/// Whether out_coords and pairs are tables of their widths, and pairs name rows of out_coords.
bool makes_sense(const RulebookProblem& book, const Arrays& outputs) {
  const auto coords = outputs.find("out_coords"), pairs = outputs.find("pairs");
  if (coords == outputs.end() || pairs == outputs.end()) return false;
  for (const auto& [array, columns] :
       {std::pair{&coords->second, 1 + book.ndim}, {&pairs->second, kPairColumns}}) {
    if (array->dtype() != DType::i32 || array->shape().size() != 2 || array->shape()[1] != columns)
      return false;
  }
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

/// Takes rows, or columns if `columns`, of a matrix in another order.
void reorder(Array& matrix, const std::vector<std::size_t>& old_of_new, bool columns) {
  if (matrix.shape().size() != 2 ||
      matrix.shape()[columns ? 1 : 0] != static_cast<std::int64_t>(old_of_new.size())) {
    return;  // of a wrong shape: the judge will say so
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

void sort_pairs(Array& pairs) {
  const auto numbers = pairs.as<std::int32_t>();
  std::vector<Pair> rows(numbers.size() / kPairColumns);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(i * kPairColumns), kPairColumns,
                rows[i].begin());
  std::sort(rows.begin(), rows.end(), [](const Pair& a, const Pair& b) {
    return std::array{a[0], a[2], a[1]} < std::array{b[0], b[2], b[1]};
  });
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(),
              numbers.begin() + static_cast<std::ptrdiff_t>(i * kPairColumns));
}

}  // namespace

Arrays canonical(const Problem& problem, Arrays outputs) {
  const auto* book = std::get_if<RulebookProblem>(&problem);
  if (book == nullptr || !makes_sense(*book, outputs)) return outputs;
  Array& pairs = outputs.at("pairs");
  if (book->mode == SparseMode::strided || book->mode == SparseMode::transposed) {
    Array& coords = outputs.at("out_coords");
    const std::vector<std::size_t> old_of_new = sorted_rows(coords);
    std::vector<std::int32_t> new_of_old(old_of_new.size());
    for (std::size_t row = 0; row < old_of_new.size(); ++row)
      new_of_old[old_of_new[row]] = static_cast<std::int32_t>(row);
    reorder(coords, old_of_new, false);
    const auto numbers = pairs.as<std::int32_t>();
    for (std::size_t i = 2; i < numbers.size(); i += kPairColumns)
      numbers[i] = new_of_old[static_cast<std::size_t>(numbers[i])];
    if (const auto nbr = outputs.find("nbr"); nbr != outputs.end())
      reorder(nbr->second, old_of_new, true);
    if (const auto mask = outputs.find("mask"); mask != outputs.end())
      reorder(mask->second, old_of_new, false);
  }
  sort_pairs(pairs);
  return outputs;
}

}  // namespace convladder
