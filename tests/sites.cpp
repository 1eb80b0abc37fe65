#include "tests/sites.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace convladder::testing {
namespace {

/// Its row of `coords`: the sample, and the site's place along each axis.
std::vector<int> row_of(const RulebookProblem& book, const Site& site) {
  std::vector<int> row = {site.batch};
  row.insert(row.end(), site.at.value, site.at.value + book.ndim);
  return row;
}

}  // namespace

SparseCase case_of(RulebookProblem book, const std::vector<std::vector<int>>& sites) {
  book.sites = static_cast<int>(sites.size());
  Array coords(DType::i32, {book.sites, 1 + book.ndim});
  auto to = coords.as<std::int32_t>().begin();
  for (const std::vector<int>& site : sites) to = std::copy(site.begin(), site.end(), to);
  return {validated(book), coords};
}

SparseCase case_where(const RulebookProblem& book, const std::function<bool(const Site&)>& holds) {
  std::vector<std::vector<int>> sites;
  for (std::int64_t key = 0; key < key_count(book, book.shape); ++key) {
    const Site site = site_of_key(book, book.shape, key);
    if (holds(site)) sites.push_back(row_of(book, site));
  }
  return case_of(book, sites);
}

SparseCase random_case(RulebookProblem book, int count, Dice& dice) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(key_count(book, book.shape)));
  std::iota(keys.begin(), keys.end(), 0);
  const int cells = static_cast<int>(keys.size());
  book.sites = cells;
  static_cast<void>(validated(book));  // a refused one draws no numbers
  const int kept = std::min(count, cells);
  std::vector<std::vector<int>> sites;
  for (int i = 0; i < kept; ++i) {
    std::int64_t& drawn = keys[static_cast<std::size_t>(dice(i, cells - 1))];
    std::swap(keys[static_cast<std::size_t>(i)], drawn);
    sites.push_back(row_of(book, site_of_key(book, book.shape, keys[static_cast<std::size_t>(i)])));
  }
  return case_of(book, sites);
}

SparseCase with_parameters(const SparseCase& sites, RulebookProblem book) {
  book.sites = sites.book.sites;
  return {validated(book), sites.coords};
}

}  // namespace convladder::testing
