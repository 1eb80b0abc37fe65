#include "tests/sites.hpp"

#include <algorithm>

namespace convladder::testing {

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
    if (!holds(site)) continue;
    std::vector<int> row = {site.batch};
    row.insert(row.end(), site.at.value, site.at.value + book.ndim);
    sites.push_back(row);
  }
  return case_of(book, sites);
}

SparseCase random_case(RulebookProblem book, int count, Dice& dice) {
  SparseCase all = case_where(book, [](const Site&) { return true; });
  const int columns = 1 + book.ndim;
  std::vector<std::vector<int>> rows;
  const auto numbers = all.coords.as<std::int32_t>();
  for (std::size_t i = 0; i < numbers.size(); i += static_cast<std::size_t>(columns)) {
    const auto row = numbers.subspan(i, static_cast<std::size_t>(columns));
    rows.emplace_back(row.begin(), row.end());
  }
  const int kept = std::min(count, static_cast<int>(rows.size()));
  for (int i = 0; i < kept; ++i) {
    std::swap(rows[static_cast<std::size_t>(i)],
              rows[static_cast<std::size_t>(dice(i, static_cast<int>(rows.size()) - 1))]);
  }
  rows.resize(static_cast<std::size_t>(kept));
  return case_of(book, rows);
}

SparseCase with_parameters(const SparseCase& sites, RulebookProblem book) {
  book.sites = sites.book.sites;
  return {validated(book), sites.coords};
}

}  // namespace convladder::testing
