#include "oracle/bad_sites.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "core/site_errors.hpp"

namespace convladder {
namespace {

/// A number that is no coordinate of an axis with that extent.
std::int32_t beyond(int extent, std::mt19937_64& random) {
  using Limits = std::numeric_limits<std::int32_t>;
  return std::array{-1, Limits::min(), extent, Limits::max()}[random() % 4];
}

}  // namespace

BadSites bad_sites(const RulebookProblem& book, Array coords, BadSite kind, std::int64_t count,
                   std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 11);
  const auto numbers = coords.as<std::int32_t>();
  const auto columns = static_cast<std::size_t>(1 + book.ndim);
  const auto sites = static_cast<std::uint64_t>(book.sites);
  const std::int64_t usable = kind == BadSite::repeated ? book.sites / 2 : book.sites;
  for (std::int64_t i = 0; i < std::min(count, usable); ++i) {
    const auto row = numbers.subspan(random() % sites * columns, columns);
    if (kind == BadSite::repeated) {
      std::size_t other = 0;
      do other = random() % sites * columns;
      while (numbers.data() + other == row.data());
      std::ranges::copy(numbers.subspan(other, columns), row.begin());
    } else {
      const std::size_t column = random() % columns;
      row[column] =
          beyond(column == 0 ? book.batch : book.shape[static_cast<int>(column) - 1], random);
    }
  }
  std::string refusal;
  try {
    require_no_errors(book, find_site_errors(book, numbers));
  } catch (const BadInput& error) {
    refusal = error.what();
  }
  return {std::move(coords), std::move(refusal)};
}

}  // namespace convladder
