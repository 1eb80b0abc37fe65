#include "oracle/judge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convladder {
namespace {

/// The indices along each axis of flat element i.
std::vector<std::int64_t> indices_of(const Shape& shape, std::int64_t i) {
  std::vector<std::int64_t> indices(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    indices[axis] = i % shape[axis];
    i /= shape[axis];
  }
  return indices;
}

}  // namespace

std::string element_name(const ArraySpec& spec, std::int64_t i) {
  const std::vector<std::int64_t> indices = indices_of(spec.shape, i);
  std::vector<std::string> parts;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    parts.push_back(text(spec.axes[axis], "=", indices[axis]));
  }
  return text(spec.name, "[", joined(parts, ", "), "]");
}

namespace {

/// The position of an output in its tile, and whether its window reads the tile's halo or the
/// padding.
std::string place_in_tile(const Problem& problem, const ArraySpec& spec, OutputTile tile,
                          const std::vector<std::int64_t>& indices) {
  if (tile.rows == 0 || indices.size() < 2) return "";
  const std::int64_t row = indices[indices.size() - 2], column = indices.back();
  std::string place =
      text("; tile (", row / tile.rows, ", ", column / tile.columns, ") of ", tile.rows, " x ",
           tile.columns, ", at (", row % tile.rows, ", ", column % tile.columns, ") in it");
  const auto* conv = std::get_if<Conv2dProblem>(&problem);
  if (conv == nullptr || spec.axes != "nkpq") return place;
  const std::int64_t h = row * conv->stride.h - conv->pad.top;
  const std::int64_t w = column * conv->stride.w - conv->pad.left;
  const std::int64_t below = window_extent(conv->R, conv->dilation.h);
  const std::int64_t right = window_extent(conv->S, conv->dilation.w);
  // The tile's own input ends where the next tile's begins; the rest is its halo.
  const std::int64_t own_h = (row / tile.rows + 1) * tile.rows * conv->stride.h - conv->pad.top;
  const std::int64_t own_w =
      (column / tile.columns + 1) * tile.columns * conv->stride.w - conv->pad.left;
  if (h + below > own_h || w + right > own_w) place += ", its window reaches into the halo";
  if (h < 0 || w < 0 || h + below > conv->H || w + right > conv->W) {
    place += ", its window reaches into the padding";
  }
  return place;
}

/// The rounding error of a type: relative, and the least absolute error.
struct Rounding {
  double relative = 0, absolute = 0;
};

Rounding rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {std::ldexp(1.0, -11), std::ldexp(1.0, -25)};
    case DType::bf16: return {std::ldexp(1.0, -8), std::ldexp(1.0, -134)};
    default: return {};  // part of the bound on the sum
  }
}

/// The value rounded to a type.
double rounded(double value, DType dtype) {
  return with_float_type(dtype, [&]<class T>(T) {
    return double{to_float(rounded_to<T>(static_cast<float>(value)))};
  });
}

/// The smallest number that is rounded to infinity.
double beyond(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65520;
    case DType::bf16: return 0x1.ffp127;
    default: return 0x1.ffffffp127;
  }
}

/// Equal, or both NaN: if the expected value is NaN, only NaN is accepted.
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// NaN has a few usual causes.
std::string found_text(double value) {
  if (!std::isnan(value)) return text(value);
  return "NaN (not written, or computed from memory that holds no data)";
}

}  // namespace

double allowed_error(const Expected& expected, Data data) {
  const auto products = static_cast<double>(expected.longest_sum);
  if (expected.passes > 0) return (4 + 2 * expected.passes) * std::ldexp(1.0, -24);
  // FP8 tensor cores accumulate with 13 fraction bits and truncate. An FP32 accumulator beside them
  // loses the error of 128 products: for random numbers of one sign a quarter of this bound on
  // average, and at most 0.6 of it.
  if (expected.factors == DType::f8) return std::ldexp(1.0, -9);
  if (expected.factors != DType::f32) return (4 + products) * std::ldexp(1.0, -24);
  if (expected.precision == Precision::fp32) {
    return (4 + 2 * std::sqrt(products)) * std::ldexp(1.0, -24);
  }
  const double always = std::ldexp(1.0, -10);
  const double average = std::ldexp(1.0, -9) / std::sqrt(products);
  return (data == Data::positive ? std::min(always, average) : always) +
         (4 + products) * std::ldexp(1.0, -24);
}

double most_error(const Expected& expected) {
  const auto terms = static_cast<double>(expected.longest_sum);
  const double unit = std::ldexp(1.0, -24);
  // For a pass, which multiplies and adds: 6 units of the norm (Higham 2002, section 24.1). A
  // convolution has three transforms, and its bound already contains norms; a transform's bound
  // contains its largest output, and the norm of all outputs is at most that times the square root
  // of their number.
  if (expected.passes > 0 && expected.grid > 0) return (4 + 3 * 6 * expected.passes + terms) * unit;
  if (expected.passes > 0) return (4 + 6 * expected.passes * std::sqrt(terms)) * unit;
  if (expected.factors == DType::f8) return std::ldexp(4 * (32 + 1), -13);
  const double all = (4 + terms + static_cast<double>(expected.other_roundings)) * unit;
  return expected.precision == Precision::tf32 ? std::ldexp(1.0, -10) + all : all;
}

double error_of_rounding(double size, DType dtype) {
  const Rounding rounding = rounding_of(dtype);
  return rounding.relative * size + rounding.absolute;
}

Verdict judge(const Expected& expected, const Array& found, Data data, const Problem& problem,
              OutputTile tile, Roundings roundings, const Spread& spread) {
  const ArraySpec& spec = expected.spec;
  if (found.shape() != spec.shape || found.dtype() != spec.dtype) {
    return {.max_error = std::numeric_limits<double>::infinity(),
            .difference = text(spec.name, " has shape ", to_string(found.shape()), " of ",
                               name_of(found.dtype()), ", expected ", to_string(spec.shape), " of ",
                               name_of(spec.dtype))};
  }
  Verdict verdict{.agrees = true, .exact = true};
  const double factor = allowed_error(expected, data);
  const double most = roundings == Roundings::any ? std::max(factor, most_error(expected)) : factor;
  // Products below float's smallest normal number are rounded to multiples of 2^-149.
  const double underflow =
      static_cast<double>(expected.longest_sum) * std::ldexp(1.0, -149) + expected.absolute;
  const bool is_integer = spec.dtype == DType::i32;
  const auto integers = is_integer ? found.as<std::int32_t>() : std::span<const std::int32_t>();
  const Array widened = is_integer ? Array() : rounded_to(found, DType::f32);
  const auto floats = widened.as<float>();
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    double right = 0, value = 0, tolerance = 0, most_tolerance = 0;
    if (is_integer) {
      right = expected.integers[at];
      value = integers[at];
      verdict.exact = verdict.exact && value == right;
    } else {
      const double nearest = rounded(expected.values[at], spec.dtype);
      value = double{floats[at]};
      // Only ReLU makes a non-finite sum finite: negative infinity becomes 0.
      const bool has_infinity =
          !expected.magnitude.empty() && !std::isfinite(expected.magnitude[at]);
      const bool clamped = has_infinity && std::isfinite(nearest);
      const double before = clamped ? -std::numeric_limits<double>::infinity() : nearest;
      if (spread.allows(at, before, value, floats)) {
        verdict.exact = verdict.exact && same(value, nearest);
        continue;
      }
      if (expected.grid > 0 && data == Data::integer) {
        // If the nearest multiple need not be the right one, only the bound decides.
        const double bound = factor * expected.magnitude[at];
        if (bound >= expected.grid / 2) tolerance = bound;
      }
      verdict.exact = verdict.exact && same(value, nearest);
      if (data == Data::integer) {
        right = spec.dtype == DType::f32 ? expected.values[at] : nearest;
      } else {
        // Beyond the type's largest number, infinity is correct.
        right = std::isinf(nearest) ? nearest : expected.values[at];
        const auto with = [&](double factor_of_sum) {
          double error = 0;
          if (has_infinity) return error;  // next to an infinity, rounding does not matter
          if (!expected.magnitude.empty()) {
            error = factor_of_sum * expected.magnitude[at];
            if (error > 0) error += underflow;
          }
          return error + error_of_rounding(std::abs(expected.values[at]) + error, spec.dtype);
        };
        tolerance = with(factor);
        most_tolerance = with(most);
      }
    }
    double error = same(value, right) ? 0 : std::abs(value - right);  // also for infinities
    // Next to the largest number of a type, rounding may produce infinity in one result and not in
    // the other.
    if (!is_integer && std::isinf(value) != std::isinf(right) &&
        std::signbit(value) == std::signbit(right) && std::isfinite(expected.values[at])) {
      const double least = std::isinf(value) ? std::copysign(beyond(spec.dtype), value) : value;
      const double distance = std::abs(least - expected.values[at]);
      if (distance <= most_tolerance) error = distance;
    }
    // Both the comparison and its negation are used, so that NaN fails. (The tolerance of an
    // infinity may be NaN.)
    const bool fits = error == 0 || error <= tolerance;
    if (!fits && error <= most_tolerance) {
      verdict.adds_up = true;
    } else if (!fits && verdict.agrees) {
      verdict.agrees = false;
      const auto indices = indices_of(spec.shape, i);
      verdict.difference = text(
          element_name(spec, i), ": expected ", right, ", found ", found_text(value),
          tolerance > 0 && std::isfinite(error)
              ? text(" (off by ", error, ", allowed ", std::max(tolerance, most_tolerance), ")")
              : "",
          place_in_tile(problem, spec, tile, indices));
    }
    if (!(error <= verdict.max_error)) {
      verdict.max_error = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
  }
  return verdict;
}

Array rounded_spectra(const Expected& expected, const Array& found) {
  Array rounded = found;
  const auto numbers = rounded.as<float>();
  const double factor = allowed_error(expected, Data::integer);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (factor * expected.magnitude[i] < expected.grid / 2)
      numbers[i] = static_cast<float>(std::nearbyint(numbers[i] / expected.grid) * expected.grid);
  }
  return rounded;
}

}  // namespace convladder
