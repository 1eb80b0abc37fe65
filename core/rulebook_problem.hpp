/// @file rulebook_problem.hpp
/// @brief Rulebooks of sparse convolution: the input site of each output site and tap.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/arithmetic.hpp"
#include "core/output_creator.hpp"
#include "core/types.hpp"

namespace convladder {

/// The most axes of the grid of sites, beside the batch.
inline constexpr int kMaxAxes = 4;

/// One value per axis, outermost first (z, y, x); values beyond the problem's axes are unused.
struct PerAxis {
  int value[kMaxAxes] = {};  ///< By axis.
  /// The number of an axis.
  HOST_DEVICE constexpr int operator[](int axis) const { return value[axis]; }
  /// The number of an axis, to set.
  HOST_DEVICE constexpr int& operator[](int axis) { return value[axis]; }
};

/// All axes alike.
constexpr PerAxis every_axis(int value) { return {{value, value, value, value}}; }

/// The mode of a sparse convolution, which determines its output sites.
enum class SparseMode {
  subm,     ///< submanifold: at the input's sites only
  strided,  ///< at every site whose window holds an input: in = out * stride - pad + k * dilation
  transposed,  ///< at every site that an input reaches: out = in * stride - pad + k * dilation
  inverse      ///< the inverse of `strided`: outputs are the sites from which `strided` was built
};

/// Every mode, by its name on the command line.
inline constexpr std::array<std::string_view, 4> kSparseModes = {"subm", "strided", "transposed",
                                                                 "inverse"};

/// As on the command line: "subm".
constexpr std::string_view name_of(SparseMode mode) {
  return kSparseModes[static_cast<std::size_t>(mode)];
}

/// The form of a rulebook, in addition to out_coords.
enum class RulebookForm {
  pairs,   ///< the list of pairs
  table,   ///< output-stationary: nbr and mask
  sorted,  ///< the table, and `order`: its rows, sorted by their masks
  split    ///< the table, and an order for each half of the taps
};

/// Every form, by its name on the command line.
inline constexpr std::array<std::string_view, 4> kRulebookForms = {"pairs", "table", "sorted",
                                                                   "split"};

/// As on the command line: "table".
constexpr std::string_view name_of(RulebookForm form) {
  return kRulebookForms[static_cast<std::size_t>(form)];
}

/// The number of row orders of a form: one per part of the taps.
HOST_DEVICE constexpr int orders_of(RulebookForm form) {
  return form == RulebookForm::split ? 2 : form == RulebookForm::sorted ? 1 : 0;
}

/// The first tap of part `part` if KV taps are divided into `parts` parts; KV for part = parts.
HOST_DEVICE constexpr int first_tap(int KV, int parts, int part) {
  const int before = ceil_div(KV, parts) * part;
  return before < KV ? before : KV;
}

/// The parameters of a rulebook. The sites themselves are data: `coords` [sites][1 + ndim], int32,
/// batch first, distinct and inside of `batch` and `shape`, in any order. Trivially copyable.
///
/// A pair (k, in, out) says that input row `in` contributes to output row `out` at tap k; taps are
/// numbered row-major, last axis fastest. Both sites exist and belong to the same sample of the
/// batch, and their coordinates satisfy the equation of the mode (Graham and van der Maaten,
/// "Submanifold Sparse Convolutional Networks", 2017; spconv has all four modes).
///
/// Rows: output row m of `subm` is input row m. The outputs of `strided` and `transposed` are
/// numbered in the order of their sites (batch, then outermost axis first). `inverse` is the
/// rulebook of `strided` with inputs and outputs exchanged: its inputs are the outputs of
/// `strided`, and its outputs are the rows of `coords`.
struct RulebookProblem {
  SparseMode mode = SparseMode::subm;  ///< The mode.
  int ndim = 3;                        ///< Axes beside the batch, 1 to 4.
  int batch = 1;                       ///< Samples; batch indices may have gaps.
  int sites = 0;                       ///< Rows of `coords`; may be 0.
  PerAxis shape = every_axis(1);       ///< Extents of the grid that contains `coords`.
  PerAxis kernel = every_axis(3);      ///< Taps; must be odd for `subm`, so that there is a centre
                                       ///< tap.
  PerAxis stride = every_axis(1);      ///< Must be 1 for `subm`.
  /// Padding before the first site, and after the last one unless out_padding differs. Set by
  /// validated() for `subm`.
  PerAxis pad = every_axis(0);
  PerAxis dilation = every_axis(1);  ///< Distance between neighbouring taps.
  /// For `transposed`, additional output extent at the end; for the other two modes with windows,
  /// the difference of the padding at the end from `pad`. See with_padding_after() of
  /// core/padding_after.hpp.
  PerAxis out_padding = every_axis(0);
  RulebookForm form = RulebookForm::pairs;  ///< The form to build.

  // Set by validated().

  /// Extents of the grid of the computed sites: the outputs, or the inputs for `inverse`.
  PerAxis out_shape = every_axis(0);
  int KV = 0;  ///< The kernel volume: the number of taps.
};

/// A site: a sample of the batch and coordinates.
struct Site {
  int batch = 0;  ///< The sample.
  PerAxis at;     ///< The coordinates.
};

/// Row `row` of coords [rows][1 + ndim].
HOST_DEVICE inline Site site_of(const RulebookProblem& book, const std::int32_t* coords,
                                std::int64_t row) {
  const std::int32_t* from = coords + row * (1 + book.ndim);
  Site site{from[0], {}};
  for (int axis = 0; axis < book.ndim; ++axis) site.at[axis] = from[1 + axis];
  return site;
}

/// Writes a site to row `row` of coords [rows][1 + ndim].
HOST_DEVICE inline void write_site(const RulebookProblem& book, const Site& site,
                                   std::int32_t* coords, std::int64_t row) {
  std::int32_t* to = coords + row * (1 + book.ndim);
  to[0] = site.batch;
  for (int axis = 0; axis < book.ndim; ++axis) to[1 + axis] = site.at[axis];
}

/// Tap k, axis by axis.
HOST_DEVICE inline PerAxis tap_of(const RulebookProblem& book, int k) {
  PerAxis tap;
  for (int axis = book.ndim - 1; axis >= 0; --axis) {
    tap[axis] = k % book.kernel[axis];
    k /= book.kernel[axis];
  }
  return tap;
}

/// The output site of an input at a tap, if it is inside of out_shape: one test per tap, for any
/// stride, dilation and padding. `inverse` behaves like `strided`.
HOST_DEVICE inline bool output_of(const RulebookProblem& book, const Site& in, const PerAxis& tap,
                                  Site* out) {
  out->batch = in.batch;
  for (int axis = 0; axis < book.ndim; ++axis) {
    const std::int64_t shift = std::int64_t{tap[axis]} * book.dilation[axis] -
                               book.pad[axis];  // in = out * stride + shift
    std::int64_t at = in.at[axis];
    if (book.mode == SparseMode::transposed) {
      at = at * book.stride[axis] + shift;
    } else {
      at -= shift;
      if (at < 0 || at % book.stride[axis] != 0) return false;
      at /= book.stride[axis];
    }
    if (at < 0 || at >= book.out_shape[axis]) return false;
    out->at[axis] = static_cast<int>(at);
  }
  return true;
}

/// The input site of an output at a tap, if it is inside of `shape`: the inverse of output_of().
HOST_DEVICE inline bool input_of(const RulebookProblem& book, const Site& out, const PerAxis& tap,
                                 Site* in) {
  in->batch = out.batch;
  for (int axis = 0; axis < book.ndim; ++axis) {
    const std::int64_t shift = std::int64_t{tap[axis]} * book.dilation[axis] - book.pad[axis];
    std::int64_t at = out.at[axis];
    if (book.mode == SparseMode::transposed) {
      at -= shift;
      if (at < 0 || at % book.stride[axis] != 0) return false;
      at /= book.stride[axis];
    } else {
      at = at * book.stride[axis] + shift;
    }
    if (at < 0 || at >= book.shape[axis]) return false;
    in->at[axis] = static_cast<int>(at);
  }
  return true;
}

/// The index of a site in a dense grid of `extents` per sample, row-major: a 64-bit key that sorts
/// like the sites.
HOST_DEVICE inline std::int64_t key_of(const RulebookProblem& book, const PerAxis& extents,
                                       const Site& site) {
  std::int64_t key = site.batch;
  for (int axis = 0; axis < book.ndim; ++axis) key = key * extents[axis] + site.at[axis];
  return key;
}

/// The site of a key: the inverse of key_of().
HOST_DEVICE inline Site site_of_key(const RulebookProblem& book, const PerAxis& extents,
                                    std::int64_t key) {
  Site site;
  for (int axis = book.ndim - 1; axis >= 0; --axis) {
    site.at[axis] = static_cast<int>(key % extents[axis]);
    key /= extents[axis];
  }
  site.batch = static_cast<int>(key);
  return site;
}

/// All keys in a grid of `extents` are less than this.
HOST_DEVICE inline std::int64_t key_count(const RulebookProblem& book, const PerAxis& extents) {
  std::int64_t count = book.batch;
  for (int axis = 0; axis < book.ndim; ++axis) count *= extents[axis];
  return count;
}

/// Words of a row's mask: bit k % 32 of word k / 32 is set if the row has a pair at tap k.
HOST_DEVICE constexpr int mask_words(int KV) { return (KV + 31) / 32; }

/// Columns of `pairs`: k, in, out.
inline constexpr int kPairColumns = 3;

/// The same problem with pad (for `subm`), out_shape and KV. @throws BadInput if a parameter is out
/// of range, the kernel does not fit, or keys or rows would not fit their integers.
RulebookProblem validated(RulebookProblem problem);

/// One line: "subm, 125562 sites in 80x1600x1600, kernel 3x3x3".
std::string describe(const RulebookProblem& problem);

/// The arrays, all int32: coords [sites][1 + ndim] to out_coords [M][1 + ndim], and
/// - form `pairs`: pairs [P][3]; rungs that compute the table as an intermediate result may return
///   it, too;
/// - the other forms: nbr [KV][M] (the input row of output m at tap k, or -1) and mask
///   [M][mask_words(KV)];
/// - `sorted`: order [1][M], the rows sorted by their masks as unsigned integers, bit 0 lowest; the
///   sort is stable. `split`: order [2][M], the same for the first half of the taps (the larger
///   one) and for the second, each by its own bits.
Signature rulebook_signature(const RulebookProblem& problem);

/// The arrays at the place where a rung runs.
struct RulebookArrays {
  using Problem = RulebookProblem;       ///< The problem type of these arrays.
  const std::int32_t* coords = nullptr;  ///< [sites][1 + ndim]
  OutputCreator create = {};             ///< called once for each output of the form
};

/// @throws BadInput unless the problem is validated() and its arrays are given.
void require_complete(const RulebookProblem& problem, const RulebookArrays& arrays);

}  // namespace convladder
