/// @file sparse_storage_edges.cpp
/// @brief Edges of how rungs of the rulebook keep sites.
#include <functional>
#include <tuple>
#include <utility>

#include "core/text.hpp"
#include "tests/sparse_edges.hpp"

namespace convladder::testing {
namespace {

/// Sites in the corners of a large grid and in its middle, a few side by side.
SparseCase corners_of(const RulebookProblem& book) {
  std::vector<std::vector<int>> rows;
  for (int corner = 0; corner < 1 << book.ndim; ++corner) {
    for (const int step : {0, 1, 3}) {
      std::vector<int> row = {book.batch - 1};
      for (int axis = 0; axis < book.ndim; ++axis) {
        const int inwards = (axis + step) % 2 + step / 2;
        row.push_back(corner >> axis & 1 ? book.shape[axis] - 1 - inwards : inwards);
      }
      rows.push_back(row);
    }
  }
  for (const int step : {1, 0, 2}) {
    std::vector<int> row = {0};
    for (int axis = 0; axis < book.ndim; ++axis) row.push_back(book.shape[axis] / 2 + step);
    rows.push_back(row);
  }
  return case_of(book, rows);
}

// Where hash tables look first. Written once more: a planted bug for each tells when these are no
// longer the rungs' own, and sites with these keys no longer fill the last places.

/// cuda_optimized/rulebook/shared/site_hash.cuh: the bucket of a key, of 2^(bits - 2).
std::uint32_t bucket_in_site_hash(std::uint64_t key, int bits) {
  std::uint32_t mixed = static_cast<std::uint32_t>(key) * 0x9e3779b1u +
                        static_cast<std::uint32_t>(key >> 32) * 0x85ebca6bu;
  mixed ^= mixed >> 15;
  return (mixed * 0xc2b2ae35u) >> (34 - bits);
}

/// cuda_optimized/rulebook/shared/run_index.cuh: the place of a run of 32 cells.
std::uint32_t place_in_run_table(std::uint64_t run, std::uint32_t capacity) {
  const std::uint64_t hash = static_cast<std::uint32_t>(run) * 2654435769u;
  return static_cast<std::uint32_t>(hash * capacity >> 32);
}

/// cuda_optimized/rulebook/strided/hash_set.cu: the slot of a key.
std::uint64_t slot_in_set(std::uint64_t key, std::uint64_t slots) {
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
  key = (key ^ key >> 27) * 0x94d049bb133111ebu;
  return (key ^ key >> 31) & (slots - 1);
}

}  // namespace

/// Rungs that keep sites in words of 32 cells along x: lines of more than one word, with rows in
/// the order of their keys and without, and with coords at any address.
void add_lines_of_words(std::vector<NamedSites>& list, Dice& dice) {
  const RulebookProblem cube = book_of(kSubm, 3, {{3, 4, 70}}, every_axis(3));
  list.push_back({"lines of three words, in order",
                  case_where(cube,
                             [](const Site& site) {
                               return (site.at[0] + 5 * site.at[1] + site.at[2] * site.at[2]) % 3 >
                                      0;
                             }),
                  kPlaces, Size::small, 0});
  for (const std::size_t misalignment : {0u, 4u})
    list.push_back({"lines of three words, in no order", random_case(cube, 500, dice), kPlaces,
                    misalignment == 0 ? Size::small : Size::full, misalignment});
  // Too many words for one each.
  const RulebookProblem huge = book_of(kSubm, 3, {{2000, 2000, 1000}}, every_axis(3));
  list.push_back({"4 10^9 cells, in lines of 32 words",
                  case_of(huge, {{0, 5, 6, 32},
                                 {0, 5, 5, 31},
                                 {0, 5, 5, 32},
                                 {0, 1999, 1999, 999},
                                 {0, 1999, 1998, 998},
                                 {0, 0, 0, 0},
                                 {0, 0, 1, 0},
                                 {0, 4, 6, 63},
                                 {0, 5, 6, 64}}),
                  kPlaces, Size::small, 0});
  // Taps of a line within 32 cells, and beyond.
  for (const int dilation : {15, 17}) {
    RulebookProblem book = book_of(kStrided, 3, {{3, 4, 70}}, every_axis(3));
    book.dilation = {{1, 1, dilation}};
    book.pad = {{1, 1, 8}};
    list.push_back({text("taps over ", window_extent(3, dilation), " cells"),
                    random_case(book, 200, dice), kPlaces, Size::full});
  }
}

/// Grids and lines whose sizes are round numbers, where a size that is rounded up stays what it is.
void add_round_sizes(std::vector<NamedSites>& list, Dice& dice) {
  const RulebookProblem words = book_of(kSubm, 3, {{3, 4, 64}}, every_axis(3));
  list.push_back({"lines of two whole words, in no order", random_case(words, 300, dice), kPlaces});
  list.push_back({"lines of two whole words, in order",
                  case_where(words,
                             [](const Site& site) {
                               return (site.at[0] + 3 * site.at[1] + 2 * site.at[2]) % 5 > 1 ||
                                      site.at[2] % 32 == 31;
                             }),
                  kPlaces, Size::full, 0});
  list.push_back({"lines of one whole word, all sites",
                  case_where(book_of(kSubm, 3, {{2, 4, 32}}, every_axis(3)), everywhere), kPlaces,
                  Size::full});
  // Powers of two, also of outputs: the key of the last one has as many bits as there are.
  for (const SparseMode mode : {kStrided, kTransposed, kInverse}) {
    RulebookProblem level = downsampling(mode, every_axis(mode == kTransposed ? 4 : 8));
    level.batch = 2;
    if (mode == kTransposed) level.out_padding = every_axis(1);
    SparseCase sites = random_case(level, 100, dice);
    list.push_back({"output grids of a power of two", sites, kPlaces,
                    mode == kStrided ? Size::small : Size::full});
  }
  RulebookProblem blocks = book_of(kStrided, 2, {{16, 64}}, every_axis(2));
  blocks.stride = every_axis(2);
  list.push_back(
      {"all outputs of a power of two", case_where(blocks, everywhere), kPlaces, Size::full});
}

/// Between the small grids, which have a row for each cell, and those whose keys need 64 bits: as
/// many cells as a power of two, and one line less or more, where rungs give up a kind of index.
void add_large_grids(std::vector<NamedSites>& list) {
  const auto add = [&](const std::string& name, SparseMode mode, PerAxis shape,
                       std::vector<std::string> rungs = {}) {
    RulebookProblem book = book_of(mode, 3, shape, every_axis(3));
    if (mode != kSubm) book.pad = every_axis(1);  // as many outputs as inputs
    list.push_back({name, corners_of(book), kPlaces, Size::full});
    list.back().once = true;
    list.back().rungs = std::move(rungs);
  };
  for (const SparseMode mode : {kSubm, kStrided}) {
    add("2^26 cells", mode, {{256, 512, 512}});
    add("2^30 cells", mode, {{1024, 1024, 1024}});
    add("a line less than 2^31 cells", mode, {{2047, 1024, 1024}});
    add("2^31 cells", mode, {{2048, 1024, 1024}});
  }
  // Up to here they have a word for each run of 32 cells, if sites are in order.
  const std::vector<std::string> kRunGrids = {
      "cuda_optimized/rulebook/submanifold/cooperative_launch"};
  for (const auto& [name, extent] :
       {std::pair{"2^28 cells", 512}, {"2^28 cells and a line", 513}}) {
    RulebookProblem book = book_of(kSubm, 3, {{extent, 1024, 512}}, every_axis(3));
    std::vector<std::vector<int>> rows = {
        {0, 0, 0, 0}, {0, 0, 0, 31}, {0, 0, 0, 32}, {0, 0, 1, 31}};
    for (const int x : {480, 510, 511}) rows.push_back({0, extent - 1, 1022, x});
    for (const int x : {479, 480, 511}) rows.push_back({0, extent - 1, 1023, x});
    list.push_back({name, case_of(book, rows), kPlaces, Size::full});
    list.back().once = true;
    list.back().rungs = kRunGrids;
  }
}

/// Sites whose search begins in the last place of a hash table: it goes on at the first.
void add_full_last_places(std::vector<NamedSites>& list) {
  constexpr int kSites = 16;  // for which the tables have their least size
  const auto add = [&](const std::string& name, SparseMode mode, int cells, int kernel,
                       const std::function<bool(int)>& is_last) {
    std::vector<std::vector<int>> rows;
    // In descending order: rungs that need no table for sorted sites take it.
    for (int x = cells - 1; x >= 0 && static_cast<int>(rows.size()) < kSites; --x)
      if (is_last(x)) rows.push_back({0, x});
    list.push_back({name, case_of(book_of(mode, 1, {{cells}}, {{kernel}}), rows), kPlaces});
  };
  add("last bucket of a hash table", kSubm, 500, 3,
      [](int x) { return bucket_in_site_hash(static_cast<std::uint64_t>(x), 6) == 15; });
  add("last place of a table of runs", kSubm, 32 * 2000, 3, [](int x) {
    const std::uint32_t capacity = kSites * 3 / 2 + 32;
    return x % 32 == 7 &&
           place_in_run_table(static_cast<std::uint64_t>(x) / 32, capacity) == capacity - 1;
  });
  add("last slot of a hash set", kStrided, 1000, 1, [](int x) {
    return slot_in_set(static_cast<std::uint64_t>(x), 2 * kSites) == 2 * kSites - 1;
  });
}

/// More tiles of rows than a block sums up in one round: 1024. A tile has 256 rows or 128.
void add_many_tiles(std::vector<NamedSites>& list) {
  const auto add = [&](SparseMode mode, int rows, std::vector<std::string> rungs) {
    RulebookProblem book = book_of(mode, 1, {{rows + rows / 8}}, {{3}});
    if (mode != kSubm) book.pad = {{1}};
    // Eight of nine cells are sites.
    list.push_back({"more than 1024 tiles of rows",
                    case_where(book, [](const Site& site) { return site.at[0] % 9 != 4; }), kPlaces,
                    Size::full});
    list.back().once = true;
    list.back().rungs = std::move(rungs);
  };
  add(kSubm, 1024 * 256 + 1, {"cuda_optimized/rulebook/submanifold/brick_lists"});
  add(kStrided, 1024 * 128 + 1, {"cuda_optimized/rulebook/strided/input_lists"});
}

/// What rungs of the rulebook choose by: the kernel's sides and dilation, the rows' order, and how
/// many there are. Beside the cases above, which are on the other side.
void add_choices(std::vector<NamedSites>& list) {
  Dice dice(27);
  const auto add = [&](const std::string& name, const SparseCase& sites, Size size = Size::full) {
    list.push_back({name, sites, kPlaces, size, 0});
  };
  RulebookProblem cube = book_of(kSubm, 3, {{3, 4, 32}}, every_axis(3));
  add("lines of one word, in order",
      case_where(cube, [](const Site& s) { return (s.at[0] + s.at[1] + s.at[2]) % 3 > 0; }));
  cube.dilation = every_axis(2);
  add("a cube of 27 taps, dilated", random_case(cube, 60, dice));
  RulebookProblem flat = book_of(kStrided, 3, {{6, 5, 7}}, {{3, 3, 5}});
  flat.pad = every_axis(1);
  add("kernel 3x3x5", random_case(flat, 60, dice));
  RulebookProblem apart = book_of(kTransposed, 1, {{30}}, {{3}});
  apart.dilation = {{17}};
  add("ascending taps over 35 cells", random_case(apart, 12, dice));
  add("4 10^9 cells, rows in order",
      case_of(book_of(kSubm, 3, {{2000, 2000, 1000}}, every_axis(3)),
              {{0, 0, 0, 0}, {0, 5, 5, 31}, {0, 5, 5, 32}, {0, 5, 6, 32}, {0, 1999, 1999, 999}}));
  const auto line = [](int cells) { return book_of(kSubm, 1, {{cells}}, {{1}}); };
  add("more rows than three large blocks have threads", random_case(line(2600), 2400, dice));
  add("more than 32 tiles of 256 rows", random_case(line(9000), 8300, dice));
  list.back().once = true;
  // Bricks have 2 x 8 x 8 cells: each site is at an edge or a corner of one.
  add("windows across four bricks",
      case_where(book_of(kSubm, 3, {{5, 16, 24}}, every_axis(3)), [](const Site& s) {
        return (s.at[1] + 1) % 8 < 2 && (s.at[2] + 1) % 8 < 2 && (s.at[0] + s.at[1]) % 5 > 0;
      }));
  // Grids of blocks that wait for each other end where a device has no room for more of them.
  const auto crowd = [&](const std::string& name, const RulebookProblem& book, int sites) {
    add(name, random_case(book, sites, dice));
    list.back().once = true;
    list.back().rungs = {"cuda_optimized/rulebook/submanifold/cooperative_launch"};
  };
  crowd("more rows than resident blocks have threads", line(14000), 12'300);
  crowd("more rows than resident blocks have threads, 3x3x3",
        book_of(kSubm, 3, {{5, 30, 32}}, every_axis(3)), 4'100);
  // Blocks of the rungs with bricks are smaller, so more of them have room.
  for (const auto& [name, book, sites] :
       {std::tuple{"many rows in bricks", line(18000), 16'600},
        std::tuple{"many rows in bricks, 3x3x3", book_of(kSubm, 3, {{18, 32, 32}}, every_axis(3)),
                   17'000},
        std::tuple{"many rows in bricks, 7x7", book_of(kSubm, 2, {{100, 100}}, {{7, 7}}), 9'000}}) {
    crowd(name, book, sites);
    list.back().rungs = {"cuda_optimized/rulebook/submanifold/paged_bricks",
                         "cuda_optimized/rulebook/submanifold/brick_lists"};
  }
  crowd("more rows than are sorted in one launch", line(66000), 65'600);
  list.back().rungs = {"cuda_optimized/rulebook/submanifold/paged_bricks"};
}

}  // namespace convladder::testing
