/// @file array_names.hpp
/// @brief The names of a ladder's arrays, for programs that access them by name.
#pragma once

#include "core/conv2d_gradients.hpp"
#include "core/fft_problem.hpp"
#include "core/gemm_problem.hpp"
#include "core/im2col_problem.hpp"
#include "core/sparse_avg_pool.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/sparse_global_pool_problem.hpp"
#include "core/sparse_pool_problem.hpp"
#include "core/tile_map_problem.hpp"
#include "core/voxelize_problem.hpp"

namespace convladder {

/// The arrays that all three sparse convolutions share: the rulebook, numbered as in the forward
/// pass.
template <class A, class Visit>
void for_each_array_of_rulebook(A& arrays, const Visit& visit) {
  visit("pairs", arrays.pairs);
  visit("offsets", arrays.offsets);
  visit("nbr", arrays.nbr);
  visit("mask", arrays.mask);
  visit("order", arrays.order);
  visit("split_order", arrays.split_order);
}

/// Calls visit(name, array) for each array of a ladder, with the name in its Signature.
template <class Visit>
void for_each_array(Conv2dArrays& arrays, const Visit& visit) {
  visit("x", arrays.x);
  visit("weights", arrays.weights);
  visit("bias", arrays.bias);
  visit("y", arrays.y);
}

/// The same.
template <class Visit>
void for_each_array(Conv2dDgradArrays& arrays, const Visit& visit) {
  visit("dy", arrays.dy);
  visit("weights", arrays.weights);
  visit("dx", arrays.dx);
}

/// The same.
template <class Visit>
void for_each_array(Conv2dWgradArrays& arrays, const Visit& visit) {
  visit("x", arrays.x);
  visit("dy", arrays.dy);
  visit("dw", arrays.dw);
  visit("db", arrays.db);
}

/// The same.
template <class Visit>
void for_each_array(GemmArrays& arrays, const Visit& visit) {
  visit("a", arrays.a);
  visit("b", arrays.b);
  visit("bias", arrays.bias);
  visit("c", arrays.c);
}

/// The same.
template <class Visit>
void for_each_array(Im2colArrays& arrays, const Visit& visit) {
  visit("x", arrays.x);
  visit("col", arrays.col);
}

/// The same.
template <class Visit>
void for_each_array(Col2imArrays& arrays, const Visit& visit) {
  visit("col", arrays.col);
  visit("x", arrays.x);
}

/// The same.
template <class Visit>
void for_each_array(TileMapArrays& arrays, const Visit& visit) {
  visit("create", arrays.create);
}

/// The same.
template <class Visit>
void for_each_array(RulebookArrays& arrays, const Visit& visit) {
  visit("coords", arrays.coords);
  visit("create", arrays.create);
}

/// The same.
template <class Visit>
void for_each_array(SparseConvArrays& arrays, const Visit& visit) {
  visit("features", arrays.features);
  visit("weights", arrays.weights);
  visit("bias", arrays.bias);
  visit("y", arrays.y);
  for_each_array_of_rulebook(arrays, visit);
}

/// The same.
template <class Visit>
void for_each_array(SparseDgradArrays& arrays, const Visit& visit) {
  visit("dy", arrays.dy);
  visit("weights", arrays.weights);
  visit("dx", arrays.dx);
  for_each_array_of_rulebook(arrays, visit);
  visit("nbr_back", arrays.nbr_back);
  visit("mask_back", arrays.mask_back);
  visit("order_back", arrays.order_back);
  visit("split_order_back", arrays.split_order_back);
}

/// The same.
template <class Visit>
void for_each_array(SparseWgradArrays& arrays, const Visit& visit) {
  visit("features", arrays.features);
  visit("dy", arrays.dy);
  visit("dw", arrays.dw);
  for_each_array_of_rulebook(arrays, visit);
}

/// The same.
template <class Visit>
void for_each_array(SparseMaxPoolArrays& arrays, const Visit& visit) {
  visit("features", arrays.features);
  visit("pairs", arrays.pairs);
  visit("nbr", arrays.nbr);
  visit("mask", arrays.mask);
  visit("y", arrays.y);
  visit("argmax", arrays.argmax);
}

/// The same.
template <class Visit>
void for_each_array(SparseMaxPoolDgradArrays& arrays, const Visit& visit) {
  visit("dy", arrays.dy);
  visit("argmax", arrays.argmax);
  visit("nbr_back", arrays.nbr_back);
  visit("mask_back", arrays.mask_back);
  visit("dx", arrays.dx);
}

/// The same.
template <class Visit>
void for_each_array(SparseAvgPoolArrays& arrays, const Visit& visit) {
  visit("features", arrays.features);
  visit("nbr", arrays.nbr);
  visit("y", arrays.y);
}

/// The same.
template <class Visit>
void for_each_array(SparseToDenseArrays& arrays, const Visit& visit) {
  visit("features", arrays.features);
  visit("coords", arrays.coords);
  visit("x", arrays.x);
}

/// The same.
template <class Visit>
void for_each_array(SparseGlobalPoolArrays& arrays, const Visit& visit) {
  visit("features", arrays.features);
  visit("coords", arrays.coords);
  visit("y", arrays.y);
}

/// The same.
template <class Visit>
void for_each_array(VoxelizeArrays& arrays, const Visit& visit) {
  visit("points", arrays.points);
  visit("create", arrays.create);
  visit("create_floats", arrays.create_floats);
}

/// The same.
template <class Visit>
void for_each_array(FftArrays& arrays, const Visit& visit) {
  visit("x", arrays.x);
  visit("y", arrays.y);
}

}  // namespace convladder
