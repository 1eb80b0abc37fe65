#include "oracle/made_up_sites.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/site_errors.hpp"

namespace convladder {
namespace {

/// A box of cells: all samples, and along each axis this many cells from the first on.
struct Box {
  PerAxis first = every_axis(0), extent = every_axis(1);
};

class Boxes {
 public:
  Boxes(const RulebookProblem& book, std::uint64_t seed)
      : book_(&book), random_(seed * 0x9e3779b97f4a7c15u + 3) {}

  Box whole() const { return {every_axis(0), book_->shape}; }

  /// A box of at least `cells` cells, if possible: as close to a cube as the grid permits.
  Box cube(std::int64_t cells) {
    Box box;
    for (bool grows = true; grows && count(box) < cells;) {
      grows = false;
      for (int axis = 0; axis < book_->ndim && count(box) < cells; ++axis) {
        if (box.extent[axis] == book_->shape[axis]) continue;
        ++box.extent[axis];
        grows = true;
      }
    }
    for (int axis = 0; axis < book_->ndim; ++axis)
      box.first[axis] = below(book_->shape[axis] - box.extent[axis] + 1);
    return box;
  }

  /// One cell across `axis`, the whole grid along the others.
  Box plane(int axis) {
    Box box = whole();
    box.first[axis] = below(book_->shape[axis]);
    box.extent[axis] = 1;
    return box;
  }

  /// The whole grid along `axis`, one cell across the others.
  Box line(int axis) {
    Box box = whole();
    for (int other = 0; other < book_->ndim; ++other) {
      if (other == axis) continue;
      box.first[other] = below(book_->shape[other]);
      box.extent[other] = 1;
    }
    return box;
  }

  int any_axis() { return below(book_->ndim); }

  std::int64_t count(const Box& box) const { return key_count(*book_, box.extent); }

  /// Keys (key_of()) of `count` cells of the box in random order, or of all.
  std::vector<std::int64_t> draw(const Box& box, std::int64_t wanted) {
    RulebookProblem grid = *book_;
    grid.shape = box.extent;
    const std::int64_t rows = std::min(wanted, count(box));
    const Array local = random_sites(grid, rows, random_());
    std::vector<std::int64_t> keys;
    for (std::int64_t row = 0; row < rows; ++row) {
      Site site = site_of(grid, local.as<std::int32_t>().data(), row);
      for (int axis = 0; axis < book_->ndim; ++axis) site.at[axis] += box.first[axis];
      keys.push_back(key_of(*book_, book_->shape, site));
    }
    return keys;
  }

 private:
  int below(int bound) {
    return static_cast<int>(random_() % static_cast<std::uint64_t>(std::max(bound, 1)));
  }

  const RulebookProblem* book_;
  std::mt19937_64 random_;
};

/// A number that is not a valid coordinate of an axis with that extent.
std::int32_t beyond(int extent, std::mt19937_64& random) {
  using Limits = std::numeric_limits<std::int32_t>;
  return std::array{-1, Limits::min(), extent, Limits::max()}[random() % 4];
}

}  // namespace

Array made_up_sites(const RulebookProblem& book, std::int64_t count, Places places, SiteOrder order,
                    std::uint64_t seed) {
  Boxes boxes(book, seed);
  std::vector<std::int64_t> keys;
  switch (places) {
    case Places::scattered: keys = boxes.draw(boxes.whole(), count); break;
    case Places::cluster: keys = boxes.draw(boxes.cube(2 * count), count); break;
    case Places::block: keys = boxes.draw(boxes.cube(count), count); break;
    case Places::plane: keys = boxes.draw(boxes.plane(boxes.any_axis()), count); break;
    case Places::line: keys = boxes.draw(boxes.line(boxes.any_axis()), count); break;
    case Places::corners: {
      Box low = boxes.cube(count), high = low;
      low.first = every_axis(0);
      for (int axis = 0; axis < book.ndim; ++axis)
        high.first[axis] = book.shape[axis] - high.extent[axis];
      keys = boxes.draw(low, ceil_div(count, std::int64_t{2}));
      const std::set<std::int64_t> taken(keys.begin(), keys.end());
      for (const std::int64_t key : boxes.draw(high, count / 2)) {
        if (!taken.contains(key)) keys.push_back(key);
      }
      break;
    }
  }
  if (order != SiteOrder::drawn) std::ranges::sort(keys);
  if (order == SiteOrder::reversed) std::ranges::reverse(keys);
  if (order == SiteOrder::innermost) {
    const int innermost = book.shape[book.ndim - 1];
    std::ranges::stable_sort(keys, {}, [&](std::int64_t key) { return key % innermost; });
  }
  Array coords(DType::i32, {static_cast<std::int64_t>(keys.size()), std::int64_t{1} + book.ndim});
  for (std::size_t row = 0; row < keys.size(); ++row) {
    write_site(book, site_of_key(book, book.shape, keys[row]), coords.as<std::int32_t>().data(),
               static_cast<std::int64_t>(row));
  }
  return coords;
}

Array random_sites(const RulebookProblem& book, std::int64_t count, std::uint64_t seed) {
  // Floyd's algorithm: the j-th number comes from [0, total - count + j], or is the largest of them
  // if it occurred before. ("Programming Pearls", 1987: a sample of distinct numbers.)
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 1);
  const auto total = static_cast<std::uint64_t>(key_count(book, book.shape));
  Array coords(DType::i32, {count, std::int64_t{1} + book.ndim});
  std::unordered_set<std::uint64_t> taken(static_cast<std::size_t>(count));
  for (std::int64_t row = 0; row < count; ++row) {
    const std::uint64_t largest = total - static_cast<std::uint64_t>(count - row);
    std::uint64_t key = random() % (largest + 1);
    if (!taken.insert(key).second) taken.insert(key = largest);
    write_site(book, site_of_key(book, book.shape, static_cast<std::int64_t>(key)),
               coords.as<std::int32_t>().data(), row);
  }
  return coords;
}

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
