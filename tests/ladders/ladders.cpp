/// @file ladders.cpp
/// @brief The table of tests: a row a ladder.
#include <map>
#include <stdexcept>

#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {

LadderTests col2im_tests();
LadderTests conv2d_tests();
LadderTests conv2d_dgrad_tests();
LadderTests conv2d_wgrad_tests();
LadderTests gemm_tests();
LadderTests im2col_tests();
LadderTests tile_map_tests();
LadderTests voxelize_tests();
LadderTests fft_tests();
LadderTests sparse_tests(const std::string& ladder);

const LadderTests& tests_of(const std::string& ladder) {
  static const std::map<std::string, LadderTests> tests = [] {
    std::map<std::string, LadderTests> rows = {
        {"col2im", col2im_tests()},
        {"conv2d", conv2d_tests()},
        {"conv2d_dgrad", conv2d_dgrad_tests()},
        {"conv2d_wgrad", conv2d_wgrad_tests()},
        {"fft", fft_tests()},
        {"gemm", gemm_tests()},
        {"im2col", im2col_tests()},
        {"tile_map", tile_map_tests()},
        {"voxelize", voxelize_tests()},
    };
    for (const char* name :
         {"rulebook", "sparse_avg_pool", "sparse_conv", "sparse_dgrad", "sparse_global_pool",
          "sparse_max_pool", "sparse_max_pool_dgrad", "sparse_to_dense", "sparse_wgrad"})
      rows.emplace(name, sparse_tests(name));
    return rows;
  }();
  const auto found = tests.find(ladder);
  if (found == tests.end()) throw std::logic_error("no tests for the ladder " + ladder);
  return found->second;
}

}  // namespace convladder::testing
