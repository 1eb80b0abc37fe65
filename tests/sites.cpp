#include "tests/sites.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace convladder::testing {
namespace {

/// The sites with these keys, in this order.
SparseCase case_of_keys(RulebookProblem book, const std::vector<std::int64_t>& keys) {
  book.sites = static_cast<int>(keys.size());
  Array coords(DType::i32, {book.sites, 1 + book.ndim});
  auto to = coords.as<std::int32_t>().begin();
  for (const std::int64_t key : keys) {
    const Site site = site_of_key(book, book.shape, key);
    *to++ = site.batch;
    to = std::copy_n(site.at.value, book.ndim, to);
  }
  return {validated(book), coords};
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
  std::vector<std::int64_t> keys;
  for (std::int64_t key = 0; key < key_count(book, book.shape); ++key)
    if (holds(site_of_key(book, book.shape, key))) keys.push_back(key);
  return case_of_keys(book, keys);
}

SparseCase random_case(RulebookProblem book, int count, Dice& dice) {
  const auto cells = static_cast<int>(key_count(book, book.shape));
  book.sites = cells;
  static_cast<void>(validated(book));  // a refused one draws no numbers
  std::vector<std::int64_t> keys(static_cast<std::size_t>(cells));
  std::iota(keys.begin(), keys.end(), 0);
  const int kept = std::min(count, cells);
  for (int i = 0; i < kept; ++i) {
    std::swap(keys[static_cast<std::size_t>(i)],
              keys[static_cast<std::size_t>(dice(i, cells - 1))]);
  }
  keys.resize(static_cast<std::size_t>(kept));
  return case_of_keys(book, keys);
}

SparseCase with_parameters(const SparseCase& sites, RulebookProblem book) {
  book.sites = sites.book.sites;
  return {validated(book), sites.coords};
}

}  // namespace convladder::testing
