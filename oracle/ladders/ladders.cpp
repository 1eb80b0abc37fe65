/// @file ladders.cpp
/// @brief The table of definitions: one row per ladder.
#include <map>
#include <stdexcept>

#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {

Definition col2im_definition();
Definition conv2d_definition();
Definition conv2d_dgrad_definition();
Definition conv2d_transpose_definition();
Definition conv2d_wgrad_definition();
Definition fft_definition();
Definition gemm_definition();
Definition im2col_definition();
Definition rulebook_definition();
Definition sparse_avg_pool_definition();
Definition sparse_conv_definition();
Definition sparse_dgrad_definition();
Definition sparse_global_pool_definition();
Definition sparse_max_pool_definition();
Definition sparse_max_pool_dgrad_definition();
Definition sparse_to_dense_definition();
Definition sparse_wgrad_definition();
Definition tile_map_definition();
Definition voxelize_definition();

const Definition& definition_of(const std::string& ladder) {
  static const std::map<std::string, Definition> definitions = {
      {"col2im", col2im_definition()},
      {"conv2d", conv2d_definition()},
      {"conv2d_dgrad", conv2d_dgrad_definition()},
      {"conv2d_transpose", conv2d_transpose_definition()},
      {"conv2d_wgrad", conv2d_wgrad_definition()},
      {"fft", fft_definition()},
      {"gemm", gemm_definition()},
      {"im2col", im2col_definition()},
      {"rulebook", rulebook_definition()},
      {"sparse_avg_pool", sparse_avg_pool_definition()},
      {"sparse_conv", sparse_conv_definition()},
      {"sparse_dgrad", sparse_dgrad_definition()},
      {"sparse_global_pool", sparse_global_pool_definition()},
      {"sparse_max_pool", sparse_max_pool_definition()},
      {"sparse_max_pool_dgrad", sparse_max_pool_dgrad_definition()},
      {"sparse_to_dense", sparse_to_dense_definition()},
      {"sparse_wgrad", sparse_wgrad_definition()},
      {"tile_map", tile_map_definition()},
      {"voxelize", voxelize_definition()},
  };
  const auto found = definitions.find(ladder);
  if (found == definitions.end()) throw std::logic_error("no reference for the ladder " + ladder);
  return found->second;
}

}  // namespace convladder::oracle
