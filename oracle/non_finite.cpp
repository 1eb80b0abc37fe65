#include "oracle/non_finite.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "core/fft_to_real.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder {
namespace {

constexpr RecordedReach kRecord[] = {
#include "oracle/non_finite_record.inc"
};

bool is_recorded(std::string_view kind, std::string_view input, std::string_view rung) {
  return std::ranges::any_of(kRecord, [&](const RecordedReach& row) {
    return row.kind == kind && row.input == input && row.rung == rung;
  });
}

/// The offsets of non-finite numbers.
std::vector<std::int64_t> places_in(const Array& array) {
  std::vector<std::int64_t> places;
  if (array.dtype() == DType::i32) return places;
  const Array widened = rounded_to(array, DType::f32);
  const auto numbers = widened.as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i])) places.push_back(static_cast<std::int64_t>(i));
  return places;
}

/// Whether TF32 rounds one of these numbers, which is not 0, to 0: infinity times that is NaN. The
/// smallest number of TF32 is 2^-136.
bool vanishes_in_tf32(const Array& array) {
  if (array.dtype() != DType::f32) return false;
  return std::ranges::any_of(
      array.as<float>(), [](float number) { return number != 0 && std::abs(number) < 0x1p-136f; });
}

/// The unit of a rung's transform.
struct Together {
  std::int64_t tile;  ///< Outputs along each axis; 0: the products of the definition.
  int images;         ///< Images that may share a transform.
  bool rows = false;  ///< Tiles belong to a row, and their windows are wide enough for two pieces.
};

Together together(const Rung& rung) {
  if (rung.whole_images || rung.float_spectra)
    return {std::numeric_limits<std::int32_t>::max(), rung.float_spectra ? 2 : 1};
  return {rung.winograd.m, 1, rung.winograd == kWinogradPieces};
}

/// Indices from `first` up to, but excluding, `last`.
struct Range {
  std::int64_t first = 0, last = 0;
};

/// Adds all elements of a box of an output of four axes.
void add_box(Spread& spread, bool any, const Shape& shape, const std::array<Range, 4>& box) {
  const auto clipped = [&](std::size_t axis) {
    return Range{std::max<std::int64_t>(box[axis].first, 0), std::min(box[axis].last, shape[axis])};
  };
  const Range n = clipped(0), c = clipped(1), h = clipped(2), w = clipped(3);
  for (std::int64_t i = n.first; i < n.last; ++i)
    for (std::int64_t j = c.first; j < c.last; ++j)
      for (std::int64_t p = h.first; p < h.last; ++p)
        for (std::int64_t q = w.first; q < w.last; ++q) {
          const auto at =
              static_cast<std::size_t>(((i * shape[1] + j) * shape[2] + p) * shape[3] + q);
          any ? spread.let_be_any(at) : spread.let_be_nan(at);
        }
}

constexpr Range kAll = {0, std::numeric_limits<std::int64_t>::max()};

/// The outputs of the tiles whose windows, of `tile + beyond` elements, contain index `at` of an
/// input.
Range of_tiles(std::int64_t at, std::int64_t tile, int beyond, std::int64_t pad) {
  if (tile >= std::numeric_limits<std::int32_t>::max()) return kAll;
  const std::int64_t place = at + pad;  // tile t reads from t * tile on
  if (place < 0) return {};             // it is in no tile
  const std::int64_t before = std::max<std::int64_t>(place - tile - beyond + 1, 0);
  return {(before + tile - 1) / tile * tile, (place / tile + 1) * tile};
}

/// The outputs whose window contains index `at` of the input.
std::vector<std::int64_t> of_windows(std::int64_t at, int taps, int pad, int stride, int dilation,
                                     std::int64_t outputs) {
  std::vector<std::int64_t> found;
  for (int tap = 0; tap < taps; ++tap) {
    const std::int64_t from = at + pad - std::int64_t{tap} * dilation;
    if (from >= 0 && from % stride == 0 && from / stride < outputs) found.push_back(from / stride);
  }
  return found;
}

void add_conv2d(Spread& spread, Reach reach, const Together& together, const std::string& ladder,
                const Conv2dProblem& conv, const std::string& input,
                const std::vector<std::int64_t>& places, const Shape& shape) {
  const std::int64_t group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const bool tiles = reach == Reach::tiles;
  std::set<std::int64_t> planes;
  if (input == "weights") {  // all outputs of its filter, or of its channel
    for (const std::int64_t place : places) {
      const oracle::Indices w(place, group_c, conv.R, conv.S);
      planes.insert(ladder == "conv2d" ? w.a : w.a / group_k * group_c + w.b);
    }
    for (const std::int64_t plane : planes)
      add_box(spread, tiles, shape, {kAll, {plane, plane + 1}, kAll, kAll});
    return;
  }
  if (ladder == "conv2d_wgrad") {  // all taps of its channel, or of its filter
    if (reach == Reach::groups) return;
    const std::int64_t channels = input == "dy" ? conv.K : conv.C;
    const std::int64_t plane =
        input == "dy" ? std::int64_t{conv.P} * conv.Q : std::int64_t{conv.H} * conv.W;
    for (const std::int64_t place : places) planes.insert(place / plane % channels);
    for (const std::int64_t c : planes) {
      if (input == "dy") {
        add_box(spread, tiles, shape, {{{c, c + 1}, kAll, kAll, kAll}});
      } else {
        const std::int64_t k = c / group_c * group_k;
        add_box(spread, tiles, shape,
                {{{k, k + group_k}, {c % group_c, c % group_c + 1}, kAll, kAll}});
      }
    }
    return;
  }
  // x of the forward pass, dy of the gradient: its channels, those of the outputs, and its image.
  const bool forward = ladder == "conv2d";
  const std::int64_t from_group = forward ? group_c : group_k,
                     to_group = forward ? group_k : group_c;
  const std::int64_t C = forward ? conv.C : conv.K, H = forward ? conv.H : conv.P,
                     W = forward ? conv.W : conv.Q;
  const int top = forward ? conv.pad.top : 2 - conv.pad.top;
  const int left = forward ? conv.pad.left : 2 - conv.pad.left;
  if (reach == Reach::zeros) return;
  std::set<std::array<std::int64_t, 6>> done;
  for (const std::int64_t place : places) {
    const oracle::Indices x(place, C, H, W);
    const std::int64_t group = x.b / from_group;
    if (tiles) {
      const int beyond = together.rows ? 5 : 2;
      const Range columns = of_tiles(x.d, together.tile, beyond, left);
      const Range images = {x.a / together.images * together.images,
                            (x.a / together.images + 1) * together.images};
      const Range of_group = {group * to_group, (group + 1) * to_group};
      if (together.rows) {
        for (const std::int64_t p : of_windows(x.c, conv.R, conv.pad.top, 1, 1, conv.P))
          add_box(spread, true, shape, {images, of_group, {p, p + 1}, columns});
        continue;
      }
      const Range rows = of_tiles(x.c, together.tile, beyond, top);
      if (done.insert({images.first, group, rows.first, rows.last, columns.first, columns.last})
              .second)
        add_box(spread, true, shape, {images, of_group, rows, columns});
      continue;
    }
    // In other groups, the outputs at the same positions.
    const auto other_groups = [&](std::int64_t p, std::int64_t q) {
      add_box(spread, false, shape,
              {{{x.a, x.a + 1}, {0, group * to_group}, {p, p + 1}, {q, q + 1}}});
      add_box(spread, false, shape,
              {{{x.a, x.a + 1}, {(group + 1) * to_group, shape[1]}, {p, p + 1}, {q, q + 1}}});
    };
    if (forward) {
      for (const std::int64_t p :
           of_windows(x.c, conv.R, conv.pad.top, conv.stride.h, conv.dilation.h, conv.P))
        for (const std::int64_t q :
             of_windows(x.d, conv.S, conv.pad.left, conv.stride.w, conv.dilation.w, conv.Q))
          other_groups(p, q);
    } else {
      for (int r = 0; r < conv.R; ++r)
        for (int s = 0; s < conv.S; ++s)
          other_groups(x.c * conv.stride.h - conv.pad.top + std::int64_t{r} * conv.dilation.h,
                       x.d * conv.stride.w - conv.pad.left + std::int64_t{s} * conv.dilation.w);
    }
  }
}

/// Rows without a tap contain zeros there: a weight reaches all rows of its channel.
void add_sparse(Spread& spread, const std::string& ladder, const SparseConvProblem& sparse,
                const std::vector<std::int64_t>& places, const Shape& shape) {
  std::set<std::int64_t> columns;
  for (const std::int64_t place : places)
    columns.insert(ladder == "sparse_conv" ? place % sparse.Cout
                                           : place / sparse.Cout % sparse.Cin);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (const std::int64_t column : columns)
      spread.let_be_nan(static_cast<std::size_t>(row * shape[1] + column));
}

/// Whether part `part` of frequency (u, v), re or im, is a term of the real point (h, w). The real
/// part of (re + im i) exp(2 pi i t / (H L)) depends on re if the cosine is not 0, and on im if the
/// sine is not 0; rungs know the roots of unity at quarter rotations and do not multiply by 0
/// there.
bool is_term_of(const FftProblem& fft, std::int64_t u, std::int64_t v, std::int64_t part,
                std::int64_t h, std::int64_t w) {
  const std::int64_t H = fft.rows(), turn = H * fft.L;
  const std::int64_t t = (u * h % H * fft.L + v * w % fft.L * H) % turn;
  return part == 0 ? 4 * t != turn && 4 * t != 3 * turn : t != 0 && 2 * t != turn;
}

/// Exempts the real points of a line or plane that have none of these frequencies as a term.
/// @param places in x, of that line @param first of its points in y
void let_points_be_free(Spread& spread, const FftProblem& fft,
                        const std::vector<std::int64_t>& places, std::int64_t first) {
  for (std::int64_t i = 0; i < std::int64_t{fft.rows()} * fft.L; ++i) {
    const bool is_term = std::ranges::any_of(places, [&](std::int64_t place) {
      const std::int64_t frequency = place / 2, half = fft.L / 2 + 1;
      return is_term_of(fft, frequency / half % fft.rows(), frequency % half, place % 2, i / fft.L,
                        i % fft.L);
    });
    if (!is_term) spread.let_be_free(static_cast<std::size_t>(first + i));
  }
}

/// Shared by a line or a plane; two real lines may be transformed as one.
Spread spread_of_lines(const FftProblem& fft, const Arrays& inputs, const ArraySpec& out) {
  const std::vector<std::int64_t> places = places_in(inputs.at("x"));
  if (places.empty()) return {};
  Spread spread(static_cast<std::size_t>(element_count(out.shape)));
  if (!is_to_real(fft)) spread.take_points();
  const std::int64_t of_x = element_count(inputs.at("x").shape()) / fft.N;
  const std::int64_t of_y = element_count(out.shape) / fft.N;
  std::set<std::int64_t> lines;
  for (const std::int64_t place : places) {
    const std::int64_t line = place / of_x, other = line ^ 1;
    lines.insert(line);
    if (fft.is_real() && other < fft.N) lines.insert(other);
  }
  for (const std::int64_t line : lines)
    for (std::int64_t i = line * of_y; i < (line + 1) * of_y; ++i)
      spread.let_be_any(static_cast<std::size_t>(i));
  for (std::size_t i = 0; is_to_real(fft) && i < places.size();) {
    const std::int64_t line = places[i] / of_x;
    std::vector<std::int64_t> of_line;
    for (; i < places.size() && places[i] / of_x == line; ++i) of_line.push_back(places[i]);
    let_points_be_free(spread, fft, of_line, line * of_y);
  }
  return spread;
}

}  // namespace

bool Spread::allows(std::size_t i, double right, double found, std::span<const float> all) const {
  if (kinds_.empty()) return false;
  if (kinds_[i] == Kind::free) return !std::isfinite(right) || !std::isfinite(found);
  if (std::isfinite(found)) {
    if (kinds_[i] != Kind::any || std::isfinite(right)) return false;
    if (points_) return !std::isfinite(all[i ^ 1]);
    return clamped_ && found == 0;
  }
  if (kinds_[i] == Kind::any) return true;
  return std::isnan(found) && (kinds_[i] == Kind::nan || (nan_for_infinity_ && std::isinf(right)));
}

std::span<const RecordedReach> recorded_reach() { return kRecord; }

bool all_finite(const Array& array) { return places_in(array).empty(); }

void add_reach(Spread& spread, Reach reach, const std::string& ladder, const Rung& rung,
               const Problem& problem, const std::string& input, const Array& array,
               const ArraySpec& out) {
  const std::vector<std::int64_t> places = places_in(array);
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) {
    if (reach == Reach::zeros && input == "weights" && ladder != "sparse_wgrad")
      add_sparse(spread, ladder, *sparse, places, out.shape);
    return;
  }
  const auto* conv = std::get_if<Conv2dProblem>(&problem);
  if (conv == nullptr || array.shape().size() != 4 || out.shape.size() != 4) return;
  const Together tiles = together(rung);
  if (reach == Reach::tiles && tiles.tile == 0) return;
  add_conv2d(spread, reach, tiles, ladder, *conv, input, places, out.shape);
}

Spread spread_of(const std::string& ladder, const Rung& rung, const Problem& problem,
                 const Arrays& inputs, const ArraySpec& out) {
  if (const auto* fft = std::get_if<FftProblem>(&problem))
    return spread_of_lines(*fft, inputs, out);
  if (std::ranges::all_of(inputs, [](const auto& input) { return all_finite(input.second); }))
    return {};
  Spread spread(static_cast<std::size_t>(element_count(out.shape)));
  const auto* conv = std::get_if<Conv2dProblem>(&problem);
  if (conv != nullptr && conv->activation == Activation::relu) spread.let_be_clamped();
  constexpr std::pair<Reach, const char*> kKinds[] = {
      {Reach::zeros, "zeros"}, {Reach::groups, "groups"}, {Reach::tiles, "tiles"}};
  for (const auto& [input, array] : inputs) {
    if (all_finite(array)) continue;
    const std::string recorded =
        ladder == "conv2d_transpose" && input == "x" ? "dy" : input;  // see oracle's definition
    for (const auto& [reach, kind] : kKinds) {
      if (reach == Reach::tiles || is_recorded(kind, recorded, rung.name))
        add_reach(spread, reach, ladder, rung, problem, input, array, out);
    }
    if (is_recorded("nan", recorded, rung.name)) spread.let_infinity_be_nan();
  }
  const bool rounds_to_tf32 =
      rung.tf32 == Tf32::operands && precision_of(problem) == Precision::tf32;
  if (rounds_to_tf32 &&
      std::ranges::any_of(inputs, [](const auto& input) { return vanishes_in_tf32(input.second); }))
    spread.let_infinity_be_nan();
  return spread;
}

}  // namespace convladder
