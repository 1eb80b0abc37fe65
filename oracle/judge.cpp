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

/// Where in its tile an output lies, and whether its window reads the tile's halo or the padding.
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
  // The tile's own input ends where the next tile's begins; what lies beyond is its halo.
  const std::int64_t own_h = (row / tile.rows + 1) * tile.rows * conv->stride.h - conv->pad.top;
  const std::int64_t own_w =
      (column / tile.columns + 1) * tile.columns * conv->stride.w - conv->pad.left;
  if (h + below > own_h || w + right > own_w) place += ", its window reaches into the halo";
  if (h < 0 || w < 0 || h + below > conv->H || w + right > conv->W) {
    place += ", its window reaches into the padding";
  }
  return place;
}

/// How much rounding to a type may change numbers: a part of them, and the least.
struct Rounding {
  double relative = 0, absolute = 0;
};

Rounding rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {std::ldexp(1.0, -11), std::ldexp(1.0, -25)};
    case DType::bf16: return {std::ldexp(1.0, -8), std::ldexp(1.0, -134)};
    default: return {};  // in the bound on the sum
  }
}

/// The number that a type has for it.
double rounded(double value, DType dtype) {
  return with_float_type(dtype, [&]<class T>(T) {
    return double{to_float(rounded_to<T>(static_cast<float>(value)))};
  });
}

/// A NaN has a few usual reasons.
std::string found_text(double value) {
  if (!std::isnan(value)) return text(value);
  return "NaN (not written, or computed from memory that holds no data)";
}

}  // namespace

double allowed_error(const Expected& expected, Data data) {
  const auto products = static_cast<double>(expected.longest_sum);
  if (expected.passes > 0) return (4 + 2 * expected.passes) * std::ldexp(1.0, -24);
  // Tensor cores keep 13 bits of fraction in sums of such products, and cut off what is behind. A
  // sum that is kept in float beside them loses what 128 products lose: of random numbers without a
  // sign a quarter of this on average, and 0.6 of it where most is lost.
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

double error_of_rounding(double size, DType dtype) {
  const Rounding rounding = rounding_of(dtype);
  return rounding.relative * size + rounding.absolute;
}

Verdict judge(const Expected& expected, const Array& found, Data data, const Problem& problem,
              OutputTile tile) {
  const ArraySpec& spec = expected.spec;
  if (found.shape() != spec.shape || found.dtype() != spec.dtype) {
    return {.max_error = std::numeric_limits<double>::infinity(),
            .difference = text(spec.name, " has shape ", to_string(found.shape()), " of ",
                               name_of(found.dtype()), ", expected ", to_string(spec.shape), " of ",
                               name_of(spec.dtype))};
  }
  Verdict verdict{.agrees = true, .exact = true};
  const double factor = allowed_error(expected, data);
  // Products below float's smallest normal number are rounded to multiples of 2^-149.
  const double underflow = static_cast<double>(expected.longest_sum) * std::ldexp(1.0, -149);
  const bool is_integer = spec.dtype == DType::i32;
  const auto integers = is_integer ? found.as<std::int32_t>() : std::span<const std::int32_t>();
  const Array widened = is_integer ? Array() : rounded_to(found, DType::f32);
  const auto floats = widened.as<float>();
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    double right = 0, value = 0, tolerance = 0;
    if (is_integer) {
      right = expected.integers[at];
      value = integers[at];
      verdict.exact = verdict.exact && value == right;
    } else {
      const double nearest = rounded(expected.values[at], spec.dtype);
      value = double{floats[at]};
      if (expected.grid > 0 && data == Data::integer) {
        // Where the nearest multiple need not be the right one, the bound alone decides.
        const double bound = factor * expected.magnitude[at];
        if (bound >= expected.grid / 2) tolerance = bound;
      }
      verdict.exact = verdict.exact && value == nearest;
      if (data == Data::integer) {
        right = spec.dtype == DType::f32 ? expected.values[at] : nearest;
      } else {
        // Beyond the type's largest number, infinity is right.
        right = std::isinf(nearest) ? nearest : expected.values[at];
        if (!expected.magnitude.empty()) {
          tolerance = factor * expected.magnitude[at];
          if (tolerance > 0) tolerance += underflow;
        }
        tolerance += error_of_rounding(std::abs(right) + tolerance, spec.dtype);
      }
    }
    const double error = value == right ? 0 : std::abs(value - right);  // also of infinities
    // Written positively and negated, so that NaN fails.
    if (!(error <= tolerance) && verdict.agrees) {
      verdict.agrees = false;
      const auto indices = indices_of(spec.shape, i);
      verdict.difference =
          text(element_name(spec, i), ": expected ", right, ", found ", found_text(value),
               tolerance > 0 && std::isfinite(error)
                   ? text(" (off by ", error, ", allowed ", tolerance, ")")
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
