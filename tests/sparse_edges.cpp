#include "tests/sparse_edges.hpp"

#include <array>

#include "core/padding_after.hpp"
#include "core/text.hpp"
#include "tests/golden.hpp"

namespace convladder::testing {
namespace {

/// The common cases of each mode.
void add_modes(std::vector<NamedSites>& list, Dice& dice) {
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

std::vector<NamedSites> make_edge_cases() {
  std::vector<NamedSites> list;
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
  // Padding that differs at both ends: none, more and less after the last site, also of an axis
  // alone; output extents follow.
  for (const SparseMode mode : {kStrided, kTransposed, kInverse}) {
    for (const auto& [before, after] : {std::pair{PerAxis{{2, 0}}, PerAxis{{0, 3}}},
                                        {PerAxis{{0, 1}}, PerAxis{{1, 1}}},
                                        {PerAxis{{1, 1}}, PerAxis{{0, 1}}}}) {
      RulebookProblem book = book_of(mode, 2, {{9, 8}}, {{3, 4}});
      book.stride = {{2, 1}};
      book.pad = before;
      if (mode == kTransposed) book.out_padding = {{1, 0}};
      add("padding that differs at both ends",
          random_case(with_padding_after(book, after), 40, dice), kPlaces,
          before[0] == 2 ? Size::small : Size::full);
    }
  }
  // Dilation larger and smaller than the stride, with and without a common divisor.
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
  // More rows than a block sorts at a time.
  add("more rows than a segment",
      case_where(book_of(kSubm, 1, {{2600}}, {{3}}),
                 [](const Site& s) { return s.at[0] % 5 != 3; }),
      kRows);
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

}  // namespace

const std::vector<NamedSites>& edge_cases() {
  static const std::vector<NamedSites> cases = make_edge_cases();
  return cases;
}

}  // namespace convladder::testing
