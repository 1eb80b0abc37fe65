/// @file ladders.cpp
/// @brief The table of LadderCommand: one row per ladder.
#include <map>
#include <stdexcept>

#include "command/ladders/ladder_command.hpp"

namespace convladder::command {

LadderCommand col2im_command();
LadderCommand conv2d_command();
LadderCommand conv2d_dgrad_command();
LadderCommand conv2d_transpose_command();
LadderCommand conv2d_wgrad_command();
LadderCommand fft_command();
LadderCommand gemm_command();
LadderCommand im2col_command();
LadderCommand rulebook_command();
LadderCommand sparse_avg_pool_command();
LadderCommand sparse_conv_command();
LadderCommand sparse_dgrad_command();
LadderCommand sparse_global_pool_command();
LadderCommand sparse_max_pool_command();
LadderCommand sparse_max_pool_dgrad_command();
LadderCommand sparse_to_dense_command();
LadderCommand sparse_wgrad_command();
LadderCommand tile_map_command();
LadderCommand voxelize_command();

const LadderCommand& command_of(const std::string& ladder) {
  static const std::map<std::string, LadderCommand> commands = {
      {"col2im", col2im_command()},
      {"conv2d", conv2d_command()},
      {"conv2d_dgrad", conv2d_dgrad_command()},
      {"conv2d_transpose", conv2d_transpose_command()},
      {"conv2d_wgrad", conv2d_wgrad_command()},
      {"fft", fft_command()},
      {"gemm", gemm_command()},
      {"im2col", im2col_command()},
      {"rulebook", rulebook_command()},
      {"sparse_avg_pool", sparse_avg_pool_command()},
      {"sparse_conv", sparse_conv_command()},
      {"sparse_dgrad", sparse_dgrad_command()},
      {"sparse_global_pool", sparse_global_pool_command()},
      {"sparse_max_pool", sparse_max_pool_command()},
      {"sparse_max_pool_dgrad", sparse_max_pool_dgrad_command()},
      {"sparse_to_dense", sparse_to_dense_command()},
      {"sparse_wgrad", sparse_wgrad_command()},
      {"tile_map", tile_map_command()},
      {"voxelize", voxelize_command()},
  };
  const auto found = commands.find(ladder);
  if (found == commands.end()) throw std::logic_error("no command for the ladder " + ladder);
  return found->second;
}

}  // namespace convladder::command
