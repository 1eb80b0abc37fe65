/// @file drawn_ladders.cpp
/// @brief The table of random problems for `fuzz`: one row per ladder.
#include <map>
#include <stdexcept>

#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {

DrawnLadder drawn_col2im();
DrawnLadder drawn_conv2d();
DrawnLadder drawn_conv2d_dgrad();
DrawnLadder drawn_conv2d_wgrad();
DrawnLadder drawn_fft();
DrawnLadder drawn_gemm();
DrawnLadder drawn_im2col();
DrawnLadder drawn_rulebook();
DrawnLadder drawn_sparse_avg_pool();
DrawnLadder drawn_sparse_conv();
DrawnLadder drawn_sparse_dgrad();
DrawnLadder drawn_sparse_global_pool();
DrawnLadder drawn_sparse_max_pool();
DrawnLadder drawn_sparse_max_pool_dgrad();
DrawnLadder drawn_sparse_to_dense();
DrawnLadder drawn_sparse_wgrad();
DrawnLadder drawn_tile_map();
DrawnLadder drawn_voxelize();

const DrawnLadder& drawn_ladder(const std::string& ladder) {
  static const std::map<std::string, DrawnLadder> drawn = {
      {"col2im", drawn_col2im()},
      {"conv2d", drawn_conv2d()},
      {"conv2d_dgrad", drawn_conv2d_dgrad()},
      {"conv2d_wgrad", drawn_conv2d_wgrad()},
      {"fft", drawn_fft()},
      {"gemm", drawn_gemm()},
      {"im2col", drawn_im2col()},
      {"rulebook", drawn_rulebook()},
      {"sparse_avg_pool", drawn_sparse_avg_pool()},
      {"sparse_conv", drawn_sparse_conv()},
      {"sparse_dgrad", drawn_sparse_dgrad()},
      {"sparse_global_pool", drawn_sparse_global_pool()},
      {"sparse_max_pool", drawn_sparse_max_pool()},
      {"sparse_max_pool_dgrad", drawn_sparse_max_pool_dgrad()},
      {"sparse_to_dense", drawn_sparse_to_dense()},
      {"sparse_wgrad", drawn_sparse_wgrad()},
      {"tile_map", drawn_tile_map()},
      {"voxelize", drawn_voxelize()},
  };
  const auto found = drawn.find(ladder);
  if (found == drawn.end())
    throw std::logic_error("fuzz has no random problems for the ladder " + ladder);
  return found->second;
}

}  // namespace convladder::command
