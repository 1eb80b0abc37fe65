#include "tests/sparse_problems.hpp"

#include <array>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::testing {
namespace {

/// Of input and output rows.
struct Channels {
  int in, out;
};

/// Who can get a problem's sites wrong.
enum class Shows {
  places,  ///< A rulebook alone: convolutions see rows, taps and pairs, and no coordinates.
  rows     ///< Convolutions, too.
};

/// A problem of the list.
struct Named {
  std::string name;
  SparseCase sites;
  Shows shows;
  Size size = Size::small;
  std::optional<std::size_t> misalignment = {};  ///< If it must be this one.
  std::optional<Channels> channels = {};         ///< Likewise.
  bool once = false;                             ///< As TestProblem has it.
  std::vector<std::string> rungs = {};           ///< As TestProblem has it.
};

constexpr auto kSubm = SparseMode::subm, kStrided = SparseMode::strided,
               kTransposed = SparseMode::transposed, kInverse = SparseMode::inverse;

RulebookProblem book_of(SparseMode mode, int ndim, PerAxis shape, PerAxis kernel) {
  return {.mode = mode, .ndim = ndim, .shape = shape, .kernel = kernel};
}

/// k3 s2 p1 in 3-D: the layer that makes a sparse network's next level.
RulebookProblem downsampling(SparseMode mode, PerAxis shape) {
  RulebookProblem book = book_of(mode, 3, shape, every_axis(3));
  book.stride = every_axis(2);
  book.pad = every_axis(1);
  return book;
}

constexpr auto kPlaces = Shows::places, kRows = Shows::rows;

bool everywhere(const Site&) { return true; }

/// The common cases of each mode.
void add_modes(std::vector<Named>& list, Dice& dice) {
  for (const SparseMode mode : {kSubm, kStrided, kTransposed, kInverse}) {
    const bool subm = mode == kSubm;
    const auto add = [&](const std::string& name, const SparseCase& sites, Shows shows, Size size) {
      list.push_back({name, sites, shows, size});
    };
    RulebookProblem book = book_of(mode, 3, {{5, 6, 7}}, every_axis(3));
    if (!subm) book.stride = every_axis(2), book.pad = every_axis(1);
    add("no sites", case_of(book, {}), kRows, Size::small);
    add("one site", case_of(book, {{0, 2, 3, 4}}), kRows, Size::small);
    add("the eight corners",
        case_where(book,
                   [&](const Site& site) {
                     for (int axis = 0; axis < 3; ++axis) {
                       const int last = book.shape[axis] - 1;
                       if (site.at[axis] != 0 && site.at[axis] != last) return false;
                     }
                     return true;
                   }),
        kPlaces, Size::full);
    add("all sites", case_where(book, everywhere), subm ? kRows : kPlaces, Size::full);
    RulebookProblem gaps = book;
    gaps.batch = 6;
    add("batch ids with gaps",
        case_of(gaps, {{4, 2, 2, 2}, {1, 2, 2, 2}, {4, 2, 2, 3}, {1, 3, 3, 3}, {5, 0, 0, 0}}),
        kPlaces, Size::small);
    add("rows in no order", random_case(book, 90, dice), kRows, Size::small);
    RulebookProblem blocks = book_of(mode, 2, {{50, 41}}, every_axis(3));
    if (!subm) blocks.stride = {{2, 1, 1, 1}}, blocks.pad = every_axis(1);
    add("more rows than a block has threads", random_case(blocks, 1100, dice), kPlaces, Size::full);
    // 2^32 + 2^16 cells: keys of two sites agree in their low 32 bits.
    RulebookProblem wide = book_of(mode, 2, {{65537, 65536}}, every_axis(3));
    if (!subm) wide.pad = every_axis(1);
    add("keys that collide in 32 bits", case_of(wide, {{0, 65536, 0}, {0, 0, 0}, {0, 0, 1}}),
        kPlaces, Size::small);
    for (int ndim = 1; ndim <= 4; ++ndim) {
      RulebookProblem axes = book_of(mode, ndim, {{5, 4, 6, 3}}, {{3, 1, 3, 1}});
      if (!subm) {
        axes.kernel = {{3, 2, 1, 2}};
        axes.stride = {{2, 1, 2, 1}};
        axes.pad = {{1, 0, 0, 1}};
      }
      add(text("each axis another, ", ndim, "-D"), random_case(axes, 40, dice), kPlaces,
          Size::full);
      axes.dilation = {{2, 1, 2, 2}};
      if (!subm) axes.pad = {{2, 1, 1, 2}};
      if (mode == kTransposed) axes.out_padding = {{1, 0, 1, 1}};
      add(text("each axis another, dilated, ", ndim, "-D"), random_case(axes, 40, dice), kPlaces,
          Size::small);
    }
  }
}

/// Rungs that keep sites in words of 32 cells along x: lines of more than one word, with rows in
/// the order of their keys and without, and with coords at any address.
void add_lines_of_words(std::vector<Named>& list, Dice& dice) {
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
void add_round_sizes(std::vector<Named>& list, Dice& dice) {
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

/// Between the small grids, which have a row for each cell, and those whose keys need 64 bits: as
/// many cells as a power of two, and one line less or more, where rungs give up a kind of index.
void add_large_grids(std::vector<Named>& list) {
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
  const std::vector<std::string> kRunGrids = {"cuda_optimized/rulebook/fused",
                                              "cuda_optimized/rulebook/mirrored_lists"};
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

// Where hash tables look first. Written once more: a planted bug for each tells when these are no
// longer the rungs' own, and sites with these keys no longer fill the last places.

/// cuda_optimized/rulebook/site_hash.cuh: the bucket of a key, of 2^(bits - 2).
std::uint32_t bucket_in_site_hash(std::uint64_t key, int bits) {
  std::uint32_t mixed = static_cast<std::uint32_t>(key) * 0x9e3779b1u +
                        static_cast<std::uint32_t>(key >> 32) * 0x85ebca6bu;
  mixed ^= mixed >> 15;
  return (mixed * 0xc2b2ae35u) >> (34 - bits);
}

/// cuda_optimized/rulebook/run_table.cuh: the place of a run of 32 cells.
std::uint32_t place_in_run_table(std::uint64_t run, std::uint32_t capacity) {
  const std::uint64_t hash = static_cast<std::uint32_t>(run) * 2654435769u;
  return static_cast<std::uint32_t>(hash * capacity >> 32);
}

/// cuda_optimized/rulebook/hash_set_of_outputs.cu: the slot of a key.
std::uint64_t slot_in_set(std::uint64_t key, std::uint64_t slots) {
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
  key = (key ^ key >> 27) * 0x94d049bb133111ebu;
  return (key ^ key >> 31) & (slots - 1);
}

/// Sites whose search begins in the last place of a hash table: it goes on at the first.
void add_full_last_places(std::vector<Named>& list) {
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
void add_many_tiles(std::vector<Named>& list) {
  const auto add = [&](SparseMode mode, int rows, const char* rung) {
    RulebookProblem book = book_of(mode, 1, {{rows + rows / 8}}, {{3}});
    if (mode != kSubm) book.pad = {{1}};
    std::vector<std::vector<int>> sites;
    for (int x = 0; static_cast<int>(sites.size()) < rows; ++x)
      if (x % 9 != 4) sites.push_back({0, x});
    list.push_back({"more than 1024 tiles of rows", case_of(book, sites), kPlaces, Size::full});
    list.back().once = true;
    list.back().rungs = {rung};
  };
  add(kSubm, 1024 * 256 + 1, "cuda_optimized/rulebook/mirrored_lists");
  add(kStrided, 1024 * 128 + 1, "cuda_optimized/rulebook/lists_of_inputs");
}

/// What rungs of the rulebook choose by: the kernel's sides and dilation, the rows' order, and how
/// many there are. Beside the cases above, which are on the other side.
void add_choices(std::vector<Named>& list) {
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
}

std::vector<Named> edge_cases() {
  std::vector<Named> list;
  Dice dice(4711);
  const auto add = [&](const std::string& name, const SparseCase& sites, Shows shows,
                       Size size = Size::small) {
    list.push_back({name, sites, shows, size});
  };
  add_full_last_places(list);  // early: the tests with planted bugs end with the first that fails
  add_modes(list, dice);
  add_lines_of_words(list, dice);

  // Kernel volumes around the 32 bits of a mask's word.
  add("1 tap", random_case(book_of(kSubm, 2, {{9, 9}}, every_axis(1)), 30, dice), kRows);
  add("33 taps", random_case(book_of(kSubm, 1, {{90}}, {{33}}), 60, dice), kRows);
  add("125 taps", random_case(book_of(kSubm, 3, {{6, 7, 8}}, every_axis(5)), 60, dice), kRows,
      Size::full);
  for (const int last : {31, 32, 64, 65}) {
    RulebookProblem book = book_of(kStrided, 2, {{3, 80}}, {{1, last}});
    book.stride = {{1, 3}};
    add(text(last, " taps"), random_case(book, 70, dice), kRows, Size::full);
  }
  // Windows that do not overlap, that leave gaps, and that reach far beyond the border.
  RulebookProblem pooling = book_of(kStrided, 3, {{6, 8, 7}}, every_axis(2));
  pooling.stride = every_axis(2);
  add("windows side by side", random_case(pooling, 120, dice), kRows);
  RulebookProblem gaps = book_of(kStrided, 2, {{17, 19}}, every_axis(1));
  gaps.stride = every_axis(3);
  add("inputs that no window holds", random_case(gaps, 100, dice), kRows);
  RulebookProblem vanish = book_of(kStrided, 1, {{9}}, {{1}});
  vanish.stride = {{2}};
  add("no output at all", case_of(vanish, {{0, 1}, {0, 3}, {0, 7}}), kRows);
  RulebookProblem far = book_of(kStrided, 2, {{5, 5}}, every_axis(3));
  far.pad = every_axis(6);
  add("padding beyond the kernel", random_case(far, 12, dice), kPlaces, Size::full);
  RulebookProblem cropped = book_of(kTransposed, 2, {{6, 5}}, every_axis(3));
  cropped.stride = every_axis(2);
  cropped.pad = every_axis(3);
  add("outputs cut off by padding", random_case(cropped, 20, dice), kRows);
  // Dilation over the stride and the other way round, with and without a common divisor.
  for (const auto& [stride, dilation] :
       {std::array{2, 2}, {2, 3}, {3, 2}, {4, 2}, {2, 4}, {3, 3}}) {
    for (const SparseMode mode : {kStrided, kTransposed, kInverse}) {
      RulebookProblem book = book_of(mode, 2, {{14, 13}}, every_axis(3));
      book.stride = every_axis(stride);
      book.dilation = every_axis(dilation);
      book.pad = {{dilation, 1}};
      const bool coprime = stride == 2 && dilation == 3;
      add(text("stride ", stride, ", dilation ", dilation), random_case(book, 60, dice), kPlaces,
          coprime ? Size::small : Size::full);
    }
  }
  RulebookProblem dilated = book_of(kSubm, 2, {{14, 13}}, {{3, 5}});
  dilated.dilation = {{3, 2}};
  add("subm, dilation 3", random_case(dilated, 80, dice), kPlaces);
  // Shapes whose pairs can be counted by hand (sparse_test.cpp counts them).
  const RulebookProblem volume = book_of(kSubm, 3, every_axis(9), every_axis(3));
  add("a line", case_where(volume, [](const Site& s) { return s.at[0] == 4 && s.at[1] == 4; }),
      kPlaces, Size::full);
  add("a plane", case_where(volume, [](const Site& s) { return s.at[0] == 4; }), kPlaces,
      Size::full);
  add("a checkerboard",
      case_where(book_of(kSubm, 3, every_axis(4), every_axis(3)),
                 [](const Site& s) { return (s.at[0] + s.at[1] + s.at[2]) % 2 == 0; }),
      kRows, Size::full);
  add("a shell",
      case_where(volume,
                 [](const Site& s) {
                   int distance = 0;
                   for (int axis = 0; axis < 3; ++axis)
                     distance += (s.at[axis] - 4) * (s.at[axis] - 4);
                   return distance >= 9 && distance <= 16;
                 }),
      kRows, Size::full);
  // Larger than any int32 volume (traveller59/spconv#745).
  RulebookProblem large = book_of(kTransposed, 3, every_axis(1224), every_axis(2));
  large.stride = every_axis(2);
  add("an output volume over 2^31", case_of(large, {{0, 285, 280, 256}}), kPlaces);
  Dice more(8);
  add("a level of a network", random_case(downsampling(kStrided, {{8, 9, 10}}), 250, more), kRows,
      Size::full);
  add("back from a level of a network",
      random_case(downsampling(kInverse, {{8, 9, 10}}), 250, more), kRows, Size::full);
  for (const GoldenCase& golden : golden_cases())
    add(text("golden ", golden.name), golden.sites, kPlaces, Size::full);
  // Sorted rows on lines of several words of 32 cells, and taps in one word, in two, and further
  // apart.
  const auto scattered = [](const Site& s) { return (s.at[0] * 7 + s.at[1] * 5 / 3) % 4 < 2; };
  add("sorted rows, lines of 70 cells",
      case_where(book_of(kSubm, 3, {{2, 3, 70}}, every_axis(3)),
                 [](const Site& s) { return (s.at[0] + s.at[1] * 5 + s.at[2] * 7 / 3) % 4 < 2; }),
      kPlaces);
  RulebookProblem apart = book_of(kSubm, 2, {{3, 100}}, {{1, 5}});
  apart.dilation = {{1, 21}};
  add("sorted rows, taps 21 cells apart", case_where(apart, scattered), kPlaces);
  RulebookProblem samples = book_of(kSubm, 2, {{4, 33}}, {{3, 5}});
  samples.batch = 3;
  samples.dilation = {{1, 7}};
  add("sorted rows, three samples", case_where(samples, scattered), kPlaces);

  Dice round(32);
  add_round_sizes(list, round);
  add_large_grids(list);
  add_many_tiles(list);
  add_choices(list);
  return list;
}

/// Channels and rows that decide which tiles rungs take, and whether rows are copied in pieces of
/// 16 bytes. One side has few channels wherever that makes no difference, and the taps are few.
std::vector<Named> layer_cases(const std::string& ladder) {
  struct Layer {
    const char* name;
    int rows, taps;
    Channels channels;
    std::size_t misalignment = 0;
    bool weights = true;  ///< Whether the weight gradient, whose tiles are of channels, needs it.
  };
  constexpr Layer kLayers[] = {
      // Few rows, and wide on both sides: tiles of the weights, and several steps over channels.
      {"wide", 60, 3, {64, 64}},
      {"wide", 50, 3, {32, 64}},
      {"wide, in four whole tiles", 40, 3, {128, 128}},
      {"wide, behind the last whole tile", 40, 3, {36, 132}},
      {"wide, misaligned", 50, 3, {40, 72}, 4},
      // More rows than the 1024 for which there are small tiles.
      {"many rows", 1030, 3, {8, 24}},
      {"many rows, up to 64 channels", 800, 2, {40, 64}, 0, false},
      {"many rows, over 64 channels", 800, 2, {24, 136}, 0, false},
      // On a machine that tests make small: a tile or two for each multiprocessor.
      {"some rows", 300, 1, {24, 32}},
      {"some rows, over 64 channels", 300, 1, {40, 72}},
      {"some rows, odd, up to 32 channels", 300, 1, {17, 23}},
      {"some rows, odd, up to 64 channels", 300, 1, {19, 41}},
      {"some rows, odd", 400, 1, {9, 23}},
      {"some rows, odd, over 32 channels", 400, 1, {23, 41}},
      {"some rows, odd, over 64 channels", 400, 1, {19, 67}}};
  std::vector<Named> list;
  Dice dice(64);
  for (const Layer& layer : kLayers) {
    if (ladder == "sparse_wgrad" && !layer.weights) continue;
    // The input gradient's rows are those of the input.
    Channels channels = layer.channels;
    if (ladder == "sparse_dgrad") std::swap(channels.in, channels.out);
    // A quarter of the cells are sites. Two taps make up to twice as many rows of them.
    const SparseMode mode = layer.taps == 3 ? kSubm : kStrided;
    const RulebookProblem book = book_of(mode, 1, {{4 * layer.rows}}, {{layer.taps}});
    list.push_back({layer.name, random_case(book, layer.rows, dice), kRows, Size::small,
                    layer.misalignment, channels});
  }
  return list;
}

/// Channels for the i-th problem, and bytes between a 256-byte boundary and its arrays. So many of
/// each that all combinations come up over the list, and bias and activation with each.
constexpr std::array<Channels, 7> kChannels = {
    {{1, 1}, {3, 7}, {16, 16}, {17, 4}, {5, 33}, {33, 17}, {24, 40}}};
constexpr std::array<std::size_t, 5> kMisalignments = {0, 4, 0, 8, 12};

/// The same for poolings: of each width of a vector, with rows in one block and in several.
constexpr std::array<int, 9> kPoolChannels = {1, 3, 16, 17, 6, 33, 8, 132, 2};

/// And for dense tensors: around a tile.
constexpr std::array<int, 7> kDenseChannels = {1, 32, 3, 33, 31, 16, 65};
constexpr std::int64_t kMostElements = 100'000;  ///< Of a dense tensor.

SparseMode mode_of_golden(const std::string& word) {
  return word == "subm" ? kSubm : word == "conv" ? kStrided : kTransposed;
}

PerAxis per_axis(const nlohmann::json& numbers, int otherwise) {
  PerAxis values = every_axis(otherwise);
  for (std::size_t axis = 0; axis < numbers.size(); ++axis)
    values[static_cast<int>(axis)] = numbers[axis].get<int>();
  return values;
}

GoldenCase golden_case(const nlohmann::json& json) {
  GoldenCase golden;
  golden.name = json["name"];
  golden.why = json["why"];
  RulebookProblem book{.mode = mode_of_golden(json["mode"]),
                       .ndim = static_cast<int>(json["shape"].size()),
                       .shape = per_axis(json["shape"], 1),
                       .kernel = per_axis(json["K"], 1),
                       .stride = per_axis(json["stride"], 1),
                       .pad = per_axis(json["pad"], 0),
                       .dilation = per_axis(json["dil"], 1)};
  if (!json["out_padding"].is_null()) book.out_padding = per_axis(json["out_padding"], 0);
  const auto sites = json["coords"].get<std::vector<std::vector<int>>>();
  for (const auto& site : sites) book.batch = std::max(book.batch, site[0] + 1);
  golden.sites = case_of(book, sites);
  for (const auto& site : json["out_coords"]) {
    for (const auto& number : site) golden.out_coords.push_back(number.get<std::int32_t>());
  }
  for (int k = 0; k < golden.sites.book.KV; ++k) {
    const auto pairs = json["pairs_in_out"].find(std::to_string(k));
    if (pairs == json["pairs_in_out"].end()) continue;
    auto in_out = pairs->get<std::vector<std::array<std::int32_t, 2>>>();
    std::ranges::sort(in_out, {}, [](const auto& pair) { return pair[1]; });
    for (const auto& [in, out] : in_out) golden.pairs.insert(golden.pairs.end(), {k, in, out});
  }
  if (json.contains("all_ones_output"))
    golden.all_ones_output = json["all_ones_output"].get<std::vector<int>>();
  return golden;
}

}  // namespace

bool is_sparse(const std::string& ladder) {
  return ladder == "rulebook" || ladder.starts_with("sparse_");
}

TestProblem sparse_problem(const std::string& ladder, const std::string& name,
                           const SparseCase& sites, const SparseConvProblem& layer) {
  if (ladder == "rulebook") {
    TestProblem test{.name = name, .problem = sites.book};
    test.given.emplace("coords", sites.coords);
    return test;
  }
  if (ladder == "sparse_to_dense") {
    TestProblem test{
        .name = name,
        .problem = validated(SparseToDenseProblem{.grid = sites.book, .C = layer.Cin})};
    test.given.emplace("coords", sites.coords);
    return test;
  }
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  if (ladder.starts_with("sparse_max_pool")) {
    const SparsePoolProblem pool = pooling_over(book, layer.Cin);
    TestProblem test{.name = name, .problem = pool};
    test.given = rulebook_inputs(book, convladder::ladder(ladder).signature(pool));
    if (ladder == "sparse_max_pool_dgrad")
      test.given.emplace("argmax", argmax_of_made_up(book, pool.C, Data::integer, 1));
    return test;
  }
  TestProblem test{.name = name, .problem = convolution_over(book, layer)};
  test.given = rulebook_inputs(book, convladder::ladder(ladder).signature(test.problem));
  return test;
}

std::vector<TestProblem> sparse_problems(const std::string& ladder) {
  const bool pools = ladder.starts_with("sparse_max_pool"), to_dense = ladder == "sparse_to_dense";
  std::vector<Named> cases = edge_cases();
  if (ladder != "rulebook" && !to_dense)
    std::erase_if(cases, [](const Named& entry) { return entry.shows == Shows::places; });
  if (ladder != "rulebook" && !to_dense && !pools)
    for (Named& layer : layer_cases(ladder)) cases.push_back(std::move(layer));
  if (pools) {  // a sum over nothing needs no care, a maximum does
    RulebookProblem gaps = book_of(kInverse, 2, {{17, 19}}, every_axis(1));
    gaps.stride = every_axis(3);
    Dice dice(7);
    cases.push_back({"outputs without candidates", random_case(gaps, 60, dice), kRows});
  }
  std::vector<TestProblem> list;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Named& entry = cases[i];
    Channels channels = entry.channels.value_or(kChannels[i % kChannels.size()]);
    if (pools) channels.in = kPoolChannels[i % kPoolChannels.size()];
    if (to_dense) {
      channels.in = kDenseChannels[i % kDenseChannels.size()];
      // One mode has all sets of sites, most of them in grids that are small enough.
      const RulebookProblem& book = entry.sites.book;
      const std::int64_t cells = key_count(book, book.shape);
      if (book.mode != kSubm || cells * channels.in > kMostElements) continue;
    }
    SparseConvProblem layer{.Cin = channels.in, .Cout = channels.out};
    if (ladder == "sparse_conv") {
      layer.bias = i % 3 == 1;
      if (i % 4 == 1) layer.activation = Activation::relu;
    }
    list.push_back(sparse_problem(ladder, entry.name, entry.sites, layer));
    list.back().size = entry.size;
    list.back().once = entry.once;
    list.back().rungs = entry.rungs;
    list.back().misalignment =
        entry.misalignment.value_or(kMisalignments[i % kMisalignments.size()]);
  }
  return list;
}

std::vector<TestProblem> sparse_rounding_problems(const std::string& ladder) {
  if (ladder != "sparse_conv" && ladder != "sparse_dgrad" && ladder != "sparse_wgrad") return {};
  struct Case {
    int rows;
    Channels channels;  ///< The sums are over those of the input, or over the rows.
    std::size_t misalignment = 0;
  };
  // Few rows and wide, more rows than tiles for few have, and rows that are copied one by one.
  constexpr Case kCases[] = {{150, {128, 136}}, {1030, {128, 24}}, {140, {129, 33}, 4}};
  std::vector<TestProblem> list;
  Dice dice(128);
  for (const Case& one : kCases) {
    // One tap: at the border of a kernel, sums are shorter.
    const RulebookProblem book = book_of(kSubm, 1, {{2 * one.rows}}, {{1}});
    Channels channels = one.channels;
    if (ladder == "sparse_dgrad") std::swap(channels.in, channels.out);
    list.push_back(sparse_problem(ladder, kRounding, random_case(book, one.rows, dice),
                                  {.Cin = channels.in, .Cout = channels.out}));
    list.back().misalignment = one.misalignment;
    list.back().equal_sums = true;
  }
  return list;
}

std::vector<TestProblem> random_sparse_problems(const std::string& ladder, int count,
                                                std::uint64_t seed) {
  // Convolutions do not see where sites are: fewer of them, and fewer taps, make as many tiles.
  const bool rows_alone = ladder != "rulebook" && ladder != "sparse_to_dense";
  const int most_sites = rows_alone ? 70 : 150, most_taps = rows_alone ? 30 : 256;
  Dice dice(seed);
  std::vector<TestProblem> list;
  while (static_cast<int>(list.size()) < count) {
    RulebookProblem book{.mode = static_cast<SparseMode>(dice(0, 3)), .ndim = dice(1, 4)};
    book.batch = dice(1, 3);
    int cells = book.batch, taps = 1;
    for (int axis = 0; axis < book.ndim; ++axis) {
      book.shape[axis] = dice(1, book.ndim == 1 ? 200 : book.ndim == 4 ? 6 : 16);
      book.kernel[axis] = dice(1, book.ndim == 4 ? 3 : 4);
      book.dilation[axis] = dice(1, 3);
      cells *= book.shape[axis];
      if (book.mode == kSubm) book.kernel[axis] |= 1;
      taps *= book.kernel[axis];
      if (book.mode == kSubm) continue;
      book.stride[axis] = dice(1, 3);
      book.pad[axis] = dice(0, 4);
      if (book.mode == kTransposed)
        book.out_padding[axis] = dice(0, std::max(book.stride[axis], book.dilation[axis]) - 1);
    }
    if (taps > most_taps) continue;
    try {
      const SparseCase sites = random_case(book, dice(0, std::min(cells, most_sites)), dice);
      list.push_back(sparse_problem(ladder, text("random ", list.size() + 1, " of seed ", seed),
                                    sites, {.Cin = dice(1, 20), .Cout = dice(1, 20)}));
    } catch (const BadInput&) {
      continue;  // a kernel that does not fit
    }
  }
  return list;
}

const std::vector<GoldenCase>& golden_cases() {
  static const std::vector<GoldenCase> cases = [] {
    std::ifstream stream(CONVLADDER_GOLDEN_FILE);
    std::vector<GoldenCase> all;
    for (const nlohmann::json& json : nlohmann::json::parse(stream))
      all.push_back(golden_case(json));
    return all;
  }();
  return cases;
}

}  // namespace convladder::testing
