#include "oracle/samples.hpp"

#include <cmath>
#include <stdexcept>

#include "core/arithmetic.hpp"
#include "core/parallel.hpp"

namespace convladder {
namespace {

void add(ExpectedElement& to, double a, double b) {
  to.value += a * b;
  to.magnitude += std::abs(a * b);
}

double at(std::span<const float> values, std::int64_t i) {
  return double{values[static_cast<std::size_t>(i)]};
}

/// The indices of a row-major offset in an array of four axes, of which the last three are given.
struct Indices {
  Indices(std::int64_t place, std::int64_t second, std::int64_t third, std::int64_t fourth)
      : a(place / fourth / third / second), b(place / fourth / third % second),
        c(place / fourth % third), d(place % fourth) {}
  std::int64_t a, b, c, d;
};

ExpectedElement conv2d_at(const Conv2dProblem& p, const Arrays& inputs, std::int64_t place) {
  const auto x = inputs.at("x").as<float>(), weights = inputs.at("weights").as<float>();
  const Indices y(place, p.K, p.P, p.Q);  // n k p q
  const std::int64_t channels = p.C / p.groups, first = y.b / (p.K / p.groups) * channels;
  ExpectedElement sum;
  if (p.bias) add(sum, at(inputs.at("bias").as<float>(), y.b), 1.0);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (int r = 0; r < p.R; ++r) {
      const std::int64_t h = y.c * p.stride.h - p.pad.top + std::int64_t{r} * p.dilation.h;
      for (int s = 0; s < p.S; ++s) {
        const std::int64_t w = y.d * p.stride.w - p.pad.left + std::int64_t{s} * p.dilation.w;
        if (h < 0 || h >= p.H || w < 0 || w >= p.W) continue;
        add(sum, at(x, ((y.a * p.C + first + c) * p.H + h) * p.W + w),
            at(weights, ((y.b * channels + c) * p.R + r) * p.S + s));
      }
    }
  }
  if (p.activation == Activation::relu && sum.value < 0) sum.value = 0;
  return sum;
}

ExpectedElement conv2d_dgrad_at(const Conv2dProblem& p, const Arrays& inputs, std::int64_t place) {
  const auto dy = inputs.at("dy").as<float>(), weights = inputs.at("weights").as<float>();
  const Indices x(place, p.C, p.H, p.W);  // n c h w
  const std::int64_t channels = p.C / p.groups, filters = p.K / p.groups;
  const std::int64_t first = x.b / channels * filters;
  ExpectedElement sum;
  for (std::int64_t k = first; k < first + filters; ++k) {
    for (int r = 0; r < p.R; ++r) {
      // The window that reads x at its tap r begins here, if it is one of ours.
      const std::int64_t top = x.c + p.pad.top - std::int64_t{r} * p.dilation.h;
      if (top < 0 || top % p.stride.h != 0 || top / p.stride.h >= p.P) continue;
      for (int s = 0; s < p.S; ++s) {
        const std::int64_t left = x.d + p.pad.left - std::int64_t{s} * p.dilation.w;
        if (left < 0 || left % p.stride.w != 0 || left / p.stride.w >= p.Q) continue;
        add(sum, at(dy, ((x.a * p.K + k) * p.P + top / p.stride.h) * p.Q + left / p.stride.w),
            at(weights, ((k * channels + x.b % channels) * p.R + r) * p.S + s));
      }
    }
  }
  return sum;
}

ExpectedElement conv2d_dw_at(const Conv2dProblem& p, const Arrays& inputs, std::int64_t place) {
  const auto x = inputs.at("x").as<float>(), dy = inputs.at("dy").as<float>();
  const std::int64_t channels = p.C / p.groups;
  const Indices tap(place, channels, p.R, p.S);  // k c r s
  const std::int64_t c = tap.a / (p.K / p.groups) * channels + tap.b;
  ExpectedElement sum;
  for (std::int64_t n = 0; n < p.N; ++n) {
    for (int row = 0; row < p.P; ++row) {
      const std::int64_t h = std::int64_t{row} * p.stride.h - p.pad.top + tap.c * p.dilation.h;
      if (h < 0 || h >= p.H) continue;
      for (int column = 0; column < p.Q; ++column) {
        const std::int64_t w =
            std::int64_t{column} * p.stride.w - p.pad.left + tap.d * p.dilation.w;
        if (w < 0 || w >= p.W) continue;
        add(sum, at(dy, ((n * p.K + tap.a) * p.P + row) * p.Q + column),
            at(x, ((n * p.C + c) * p.H + h) * p.W + w));
      }
    }
  }
  return sum;
}

ExpectedElement conv2d_db_at(const Conv2dProblem& p, const Arrays& inputs, std::int64_t k) {
  const auto dy = inputs.at("dy").as<float>();
  const std::int64_t plane = std::int64_t{p.P} * p.Q;
  ExpectedElement sum;
  for (std::int64_t n = 0; n < p.N; ++n) {
    for (std::int64_t i = 0; i < plane; ++i) add(sum, at(dy, (n * p.K + k) * plane + i), 1.0);
  }
  return sum;
}

ExpectedElement gemm_at(const GemmProblem& p, const Arrays& inputs, std::int64_t place) {
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  const std::int64_t m = place / p.N, n = place % p.N;
  ExpectedElement sum;
  for (std::int64_t k = 0; k < p.K; ++k) add(sum, at(a, m * p.K + k), at(b, k * p.N + n));
  return sum;
}

/// Where tap `tap` of window `window` reads along an axis; -1 in the padding.
std::int64_t read_by(const WindowAxis& axis, std::int64_t window, std::int64_t tap) {
  const std::int64_t i = window * axis.stride - axis.pad_before + tap * axis.dilation;
  return i >= 0 && i < axis.size ? i : -1;
}

ExpectedElement old_value(const Im2colProblem& p, const Arrays& inputs, std::int64_t place) {
  ExpectedElement sum;
  if (p.request != Request::write) add(sum, at(inputs.at("into").as<float>(), place), 1.0);
  return sum;
}

ExpectedElement im2col_at(const Im2colProblem& p, const Arrays& inputs, std::int64_t place) {
  ExpectedElement sum = old_value(p, inputs, place);
  if (p.request == Request::none) return sum;
  const Indices window(place % p.columns(), p.depth.out, p.height.out, p.width.out);
  const std::int64_t row = place / p.columns() % p.rows(), n = place / p.columns() / p.rows();
  const Indices tap(row, p.depth.kernel, p.height.kernel, p.width.kernel);  // c t r s
  const std::int64_t d = read_by(p.depth, window.b, tap.b);
  const std::int64_t h = read_by(p.height, window.c, tap.c);
  const std::int64_t w = read_by(p.width, window.d, tap.d);
  if (d < 0 || h < 0 || w < 0) return sum;
  add(sum,
      at(inputs.at("x").as<float>(),
         (n * p.C + tap.a) * p.channel_size() + (d * p.height.size + h) * p.width.size + w),
      1.0);
  return sum;
}

ExpectedElement col2im_at(const Im2colProblem& p, const Arrays& inputs, std::int64_t place) {
  ExpectedElement sum = old_value(p, inputs, place);
  if (p.request == Request::none) return sum;
  const auto col = inputs.at("col").as<float>();
  const Indices pixel(place % p.channel_size(), p.depth.size, p.height.size, p.width.size);
  const std::int64_t nc = place / p.channel_size();
  // The window whose tap reads pixel i along an axis; -1 if there is none.
  const auto window_of = [](const WindowAxis& axis, std::int64_t i, std::int64_t tap) {
    const std::int64_t start = i + axis.pad_before - tap * axis.dilation;
    return start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.out
               ? start / axis.stride
               : -1;
  };
  for (std::int64_t t = 0; t < p.depth.kernel; ++t) {
    for (std::int64_t r = 0; r < p.height.kernel; ++r) {
      for (std::int64_t s = 0; s < p.width.kernel; ++s) {
        const std::int64_t o = window_of(p.depth, pixel.b, t);
        const std::int64_t u = window_of(p.height, pixel.c, r);
        const std::int64_t v = window_of(p.width, pixel.d, s);
        if (o < 0 || u < 0 || v < 0) continue;
        const std::int64_t tap = (t * p.height.kernel + r) * p.width.kernel + s;
        add(sum,
            at(col, (nc * p.kernel_volume() + tap) * p.columns() +
                        (o * p.height.out + u) * p.width.out + v),
            1.0);
      }
    }
  }
  return sum;
}

/// The sum of from[table[k][row]] . (what `weight` says of tap k and channel s) over all taps and
/// channels of `from`.
template <class Weight>
ExpectedElement sparse_row_at(const SparseConvProblem& p, const Array& table, const Array& from,
                              std::int64_t row, const Weight& weight) {
  const auto rows = table.as<std::int32_t>();
  const auto values = from.as<float>();
  const std::int64_t row_count = table.shape()[1], channels = from.shape()[1];
  ExpectedElement sum;
  for (std::int64_t k = 0; k < p.book.KV; ++k) {
    const std::int64_t met = rows[static_cast<std::size_t>(k * row_count + row)];
    if (met < 0) continue;
    for (std::int64_t s = 0; s < channels; ++s)
      add(sum, at(values, met * channels + s), weight(k, s));
  }
  return sum;
}

/// An element of y, dx or dw of a sparse convolution; inputs in float.
ExpectedElement sparse_at(const std::string& ladder, const SparseConvProblem& p,
                          const Arrays& inputs, std::int64_t place) {
  if (ladder == "sparse_wgrad") {
    const auto features = inputs.at("features").as<float>(), dy = inputs.at("dy").as<float>();
    const auto pairs = inputs.at("pairs").as<std::int32_t>();
    const auto offsets = inputs.at("offsets").as<std::int32_t>();
    const Indices element(place, p.book.KV, p.Cin, p.Cout);
    ExpectedElement sum;
    const auto k = static_cast<std::size_t>(element.b);
    for (std::int64_t i = offsets[k]; i < offsets[k + 1]; ++i) {
      const auto pair = pairs.subspan(static_cast<std::size_t>(i * kPairColumns), kPairColumns);
      add(sum, at(features, std::int64_t{pair[1]} * p.Cin + element.c),
          at(dy, std::int64_t{pair[2]} * p.Cout + element.d));
    }
    return sum;
  }
  const auto weights = inputs.at("weights").as<float>();
  const auto weight = [&](std::int64_t k, std::int64_t ci, std::int64_t co) {
    return at(weights, (k * p.Cin + ci) * p.Cout + co);
  };
  if (ladder == "sparse_dgrad") {
    const std::int64_t ci = place % p.Cin;
    return sparse_row_at(p, inputs.at("nbr_back"), inputs.at("dy"), place / p.Cin,
                         [&](std::int64_t k, std::int64_t co) { return weight(k, ci, co); });
  }
  const std::int64_t co = place % p.Cout;
  ExpectedElement sum =
      sparse_row_at(p, inputs.at("nbr"), inputs.at("features"), place / p.Cout,
                    [&](std::int64_t k, std::int64_t ci) { return weight(k, ci, co); });
  if (p.bias) add(sum, at(inputs.at("bias").as<float>(), co), 1.0);
  if (p.activation == Activation::relu) sum.value = std::max(sum.value, 0.0);
  return sum;
}

}  // namespace

std::vector<ExpectedElement> reference_at(const std::string& ladder, const Problem& problem,
                                          const Arrays& inputs, const std::string& name,
                                          std::span<const std::int64_t> places) {
  const auto each = [&](const auto& element) {
    std::vector<ExpectedElement> elements(places.size());
    parallel_for(static_cast<std::int64_t>(places.size()), [&](std::int64_t i) {
      const auto at_i = static_cast<std::size_t>(i);
      elements[at_i] = element(places[at_i]);
    });
    return elements;
  };
  const auto of = [&](auto function, const auto& typed) {
    return each([&](std::int64_t place) { return function(typed, inputs, place); });
  };
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    if (ladder == "conv2d") return of(conv2d_at, *conv);
    if (ladder == "conv2d_dgrad") return of(conv2d_dgrad_at, *conv);
    return of(name == "db" ? conv2d_db_at : conv2d_dw_at, *conv);
  }
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return of(gemm_at, *gemm);
  if (const auto* columns = std::get_if<Im2colProblem>(&problem))
    return of(ladder == "im2col" ? im2col_at : col2im_at, *columns);
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem)) {
    Arrays widened;
    for (const auto& [array_name, array] : inputs) {
      widened.emplace(array_name,
                      array.dtype() == DType::i32 ? array : rounded_to(array, DType::f32));
    }
    return each([&](std::int64_t place) { return sparse_at(ladder, *conv, widened, place); });
  }
  throw std::logic_error("no sampled reference for " + ladder);
}

}  // namespace convladder
