#include "ladders/ladders.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "ladders/tables.hpp"

namespace convladder {
namespace {

/// The edit distance of a and b (Levenshtein): the least number of insertions, deletions and
/// replacements.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const std::vector<Ladder>& ladders() {
  static const std::vector<Ladder> all = {
      conv2d_ladder(),
      conv2d_dgrad_ladder(),
      conv2d_wgrad_ladder(),
      im2col_ladder(),
      col2im_ladder(),
      gemm_ladder(),
      tile_map_ladder(),
      rulebook_ladder(),
      sparse_conv_ladder(),
      sparse_dgrad_ladder(),
      sparse_wgrad_ladder(),
      sparse_max_pool_ladder(),
      sparse_max_pool_dgrad_ladder(),
      sparse_avg_pool_ladder(),
      sparse_global_pool_ladder(),
      sparse_to_dense_ladder(),
      voxelize_ladder(),
      fft_ladder(),
  };
  return all;
}

const std::vector<Ladder>& aliases() {
  static const std::vector<Ladder> all = {conv2d_transpose_alias()};
  return all;
}

const Ladder& ladder(const std::string& name) {
  std::vector<std::string> names;
  for (const std::vector<Ladder>* all : {&ladders(), &aliases()}) {
    for (const Ladder& candidate : *all) {
      if (candidate.name == name) return candidate;
      names.push_back(candidate.name);
    }
  }
  throw BadInput(text("ladder = ", name, ": unknown; the ladders are ", joined(names, ", "),
                      "\nnearest: ", nearest(name, names)));
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](const std::string& a, const std::string& b) {
                                       return edit_distance(word, a) < edit_distance(word, b);
                                     });
  return best == candidates.end() ? std::string() : *best;
}

}  // namespace convladder
