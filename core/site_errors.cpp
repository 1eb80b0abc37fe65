#include "core/site_errors.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/array.hpp"

namespace convladder {
namespace {

/// "row 7 (0,3,-1,5)".
std::string row_text(const RulebookProblem& book, std::int32_t row,
                     std::span<const std::int32_t> coords) {
  std::string line = text("row ", row);
  if (coords.empty()) return line;
  const auto columns = static_cast<std::size_t>(1 + book.ndim);
  return text(line, " (",
              joined(coords.subspan(static_cast<std::size_t>(row) * columns, columns), ","), ")");
}

/// For a row outside: ", where axis 1 must be from 0 to 9 and is -1"; the first of several such
/// axes.
std::string limit_text(const RulebookProblem& book, std::int32_t row,
                       std::span<const std::int32_t> coords) {
  if (coords.empty()) return "";
  const Site site = site_of(book, coords.data(), row);
  const auto limit = [](const std::string& what, int value, int extent) {
    return text(", where ", what, " must be from 0 to ", extent - 1, " and is ", value);
  };
  if (site.batch < 0 || site.batch >= book.batch)
    return limit("the batch index", site.batch, book.batch);
  int axis = 0;
  while (site.at[axis] >= 0 && site.at[axis] < book.shape[axis]) ++axis;
  return limit(text("axis ", axis), site.at[axis], book.shape[axis]);
}

}  // namespace

SiteErrors find_site_errors(const RulebookProblem& book, std::span<const std::int32_t> coords) {
  SiteErrors errors;
  std::vector<std::int64_t> keys;
  keys.reserve(static_cast<std::size_t>(book.sites));
  for (std::int32_t row = 0; row < book.sites; ++row) {
    const Site site = site_of(book, coords.data(), row);
    if (!is_inside(book, site)) {
      if (errors.outside++ == 0) errors.first_outside = row;
    } else {
      keys.push_back(key_of(book, book.shape, site));
    }
  }
  if (errors.outside != 0) return errors;
  std::vector<std::int32_t> rows(keys.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
    const std::int64_t key_a = keys[static_cast<std::size_t>(a)],
                       key_b = keys[static_cast<std::size_t>(b)];
    return key_a != key_b ? key_a < key_b : a < b;
  });
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (keys[static_cast<std::size_t>(rows[i])] != keys[static_cast<std::size_t>(rows[i - 1])])
      continue;
    ++errors.duplicates;
    errors.first_duplicate = std::min(errors.first_duplicate, rows[i]);
  }
  return errors;
}

void require_no_errors(const RulebookProblem& book, const SiteErrors& errors,
                       std::span<const std::int32_t> coords) {
  if (errors.outside != 0) {
    throw BadInput(
        text("coords: ", errors.outside, " of ", book.sites, " rows lie outside of batch ",
             book.batch, " and shape ",
             joined(std::vector<int>(book.shape.value, book.shape.value + book.ndim), ","),
             "; the first is ", row_text(book, errors.first_outside, coords),
             limit_text(book, errors.first_outside, coords)));
  }
  if (errors.duplicates != 0) {
    throw BadInput(text("coords: ", errors.duplicates, " of ", book.sites,
                        " rows repeat the site of a row before; the first is ",
                        row_text(book, errors.first_duplicate, coords)));
  }
}

}  // namespace convladder
