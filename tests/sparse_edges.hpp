/// @file sparse_edges.hpp
/// @brief Sites and parameters at which rungs of the sparse ladders go wrong, each with a name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tests/problems.hpp"
#include "tests/sites.hpp"

namespace convladder::testing {

/// Of input and output rows.
struct Channels {
  int in, out;
};

/// Who can get a problem's sites wrong.
enum class Shows {
  places,  ///< A rulebook alone: convolutions see rows, taps and pairs, and no coordinates.
  rows     ///< Convolutions, too.
};

/// Sites and parameters, and what they show.
struct NamedSites {
  std::string name;
  SparseCase sites;
  Shows shows;
  Size size = Size::small;
  std::optional<std::size_t> misalignment = {};  ///< If it must be this one.
  std::optional<Channels> channels = {};         ///< Likewise.
  bool once = false;                             ///< As TestProblem has it.
  std::vector<std::string> rungs = {};           ///< As TestProblem has it.
};

inline constexpr auto kSubm = SparseMode::subm, kStrided = SparseMode::strided,
                      kTransposed = SparseMode::transposed, kInverse = SparseMode::inverse;

/// A rulebook whose other parameters are the default.
inline RulebookProblem book_of(SparseMode mode, int ndim, PerAxis shape, PerAxis kernel) {
  return {.mode = mode, .ndim = ndim, .shape = shape, .kernel = kernel};
}

/// k3 s2 p1 in 3-D: the layer that makes a sparse network's next level.
inline RulebookProblem downsampling(SparseMode mode, PerAxis shape) {
  RulebookProblem book = book_of(mode, 3, shape, every_axis(3));
  book.stride = every_axis(2);
  book.pad = every_axis(1);
  return book;
}

inline constexpr auto kPlaces = Shows::places, kRows = Shows::rows;

/// For case_where(): all sites of the grid.
inline bool everywhere(const Site&) { return true; }

/// All of them, those below included. They are computed once per process.
const std::vector<NamedSites>& edge_cases();

/// Those at which rungs of the rulebook go wrong by how they keep sites: in words of 32 cells, in
/// grids, in hash tables, in tiles of rows. In sparse_storage_edges.cpp.
void add_lines_of_words(std::vector<NamedSites>& list, Dice& dice);
void add_round_sizes(std::vector<NamedSites>& list, Dice& dice);
void add_large_grids(std::vector<NamedSites>& list);
void add_full_last_places(std::vector<NamedSites>& list);
void add_many_tiles(std::vector<NamedSites>& list);
void add_choices(std::vector<NamedSites>& list);

}  // namespace convladder::testing
