/// @file rulebook.hpp
/// @brief The reference rulebook in all forms, and the sparse convolutions and poolings over it.
#pragma once

#include <string>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// A rulebook in canonical order, in every form that a sparse convolution may read.
struct Rulebook {
  RulebookProblem problem;      ///< Its parameters.
  int N = 0, M = 0;             ///< Input and output rows.
  Array out_coords = {};        ///< [M][1 + ndim]
  Array pairs = {};             ///< [P][3]: k, in, out; sorted by k, then out
  Array offsets = {};           ///< [KV + 1]: where the pairs of tap k begin
  Array nbr = {};               ///< [KV][M]: input row, or -1
  Array nbr_back = {};          ///< [KV][N]: output row, or -1
  Array mask = {};              ///< [M][mask_words(KV)]
  Array mask_back = {};         ///< [N][mask_words(KV)]
  Array order = {};             ///< [1][M]: rows sorted by their masks, see rulebook_signature()
  Array split_order = {};       ///< [2][M]: the same for each half of the taps
  Array order_back = {};        ///< [1][N]
  Array split_order_back = {};  ///< [2][N]
};

/// Builds a rulebook from the definition: for each tap of each site, the output is found by testing
/// the equation `in = out * stride - pad + k * dilation`, and sites are compared coordinate by
/// coordinate, without keys.
/// @throws BadInput for sites outside of the grid or duplicates
Rulebook make_rulebook(const RulebookProblem& book, const Array& coords);

/// The convolution over a rulebook. @param layer its channels, types, bias and activation; the
/// other members are set here
SparseConvProblem convolution_over(const Rulebook& rulebook, SparseConvProblem layer);

/// The pooling over a rulebook, of rows of C channels.
SparsePoolProblem pooling_over(const Rulebook& rulebook, int C);

/// argmax [rows][C] of a pooling (defined in SparsePoolProblem), over a table nbr [KV][rows].
Array argmax_over(const Array& nbr, const Array& features);

/// The argmax of a pooling of features of C channels that make_inputs() draws.
Array argmax_of_made_up(const Rulebook& rulebook, int C, Data data, std::uint64_t seed);

/// The rulebook's arrays that are inputs in `signature`, with its shapes.
Arrays rulebook_inputs(const Rulebook& rulebook, const Signature& signature);

}  // namespace convladder
