/// @file sparse_layer.cpp
/// @brief A submanifold convolution of points: each site gets the number of its neighbours. The
/// file has a site a line: z y x, each from 0 to 63.
#include <convladder/rulebook.hpp>
#include <convladder/sparse_conv.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

int main(int count, char** words) try {
  if (count != 2) return std::puts("sparse_layer POINTS.txt"), 2;
  std::vector<std::int32_t> coords;  // [sites][4]: the sample, z, y, x
  std::ifstream file(words[1]);
  for (std::int32_t z, y, x; file >> z >> y >> x;) coords.insert(coords.end(), {0, z, y, x});
  const int sites = static_cast<int>(coords.size() / 4);

  // Which sites are neighbours: pairs [P][3] of tap, input row and output row.
  const auto book =
      convladder::validated(convladder::RulebookProblem{.mode = convladder::SparseMode::subm,
                                                        .ndim = 3,
                                                        .sites = sites,
                                                        .shape = {64, 64, 64},
                                                        .kernel = {3, 3, 3}});
  std::map<std::string, std::vector<std::int32_t>> found;
  const auto create = [&](const std::string& name, const convladder::Shape& shape) {
    std::vector<std::int32_t>& array = found[name];
    array.resize(static_cast<std::size_t>(shape[0] * shape[1]));
    return array.data();
  };
  convladder::cpu_reference::rulebook::hash_map(book, {coords.data(), create});
  const std::vector<std::int32_t>& pairs = found["pairs"];

  // One channel, all weights 1: a sum over the existing neighbours.
  const auto layer = convladder::validated(
      convladder::SparseConvProblem{.book = book,
                                    .N = sites,
                                    .M = sites,
                                    .pairs = static_cast<std::int64_t>(pairs.size() / 3),
                                    .most_pairs = sites});
  const std::vector<float> features(static_cast<std::size_t>(sites), 1), weights(27, 1);
  std::vector<float> y(features.size());
  convladder::cpu_reference::sparse_conv::direct(layer, {.features = features.data(),
                                                         .weights = weights.data(),
                                                         .y = y.data(),
                                                         .pairs = pairs.data()});
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int32_t* const site = coords.data() + 4 * i;
    std::printf("%d %d %d: %g\n", site[1], site[2], site[3], double{y[i]});
  }
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
