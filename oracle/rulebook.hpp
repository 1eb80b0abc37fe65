/// @file rulebook.hpp
/// @brief The reference rulebook, in all forms, and the sparse convolutions over it.
#pragma once

#include <string>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// A rulebook in the canonical order, in every form that a sparse convolution may read.
struct Rulebook {
  RulebookProblem problem;  ///< Its parameters.
  int N = 0, M = 0;         ///< Input and output rows.
  Array out_coords = {};    ///< [M][1 + ndim]
  Array pairs = {};         ///< [P][3]: k, in, out; sorted by k, then out
  Array offsets = {};       ///< [KV + 1]: where the pairs of tap k begin
  Array nbr = {};           ///< [KV][M]: input row, or -1
  Array nbr_back = {};      ///< [KV][N]: output row, or -1
  Array mask = {};          ///< [M][mask_words(KV)]
};

/// Builds a rulebook from the definition alone: for each tap of each site, the outputs are found
/// by trying the equation `in = out * stride - pad + k * dilation` itself, without a division, and
/// sites are compared coordinate by coordinate, without keys.
/// @throws BadInput for sites outside of the grid or duplicates
Rulebook make_rulebook(const RulebookProblem& book, const Array& coords);

/// The convolution over a rulebook.
SparseConvProblem convolution_over(const Rulebook& rulebook, int Cin, int Cout);

/// Those of the rulebook's arrays that are inputs in `signature`.
Arrays rulebook_inputs(const Rulebook& rulebook, const Signature& signature);

}  // namespace convladder
