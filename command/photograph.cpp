#include "command/photograph.hpp"

#include <algorithm>
#include <cmath>

#include "command/parameters.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

/// The outer product of the binomial coefficients 1 6 15 20 15 6 1, whose sum is 64, with
/// themselves: approximately a Gaussian of standard deviation 1.2. The weights are sums of powers
/// of two, so that products are exact.
std::vector<float> binomial() {
  constexpr float kRow[] = {1, 6, 15, 20, 15, 6, 1};
  std::vector<float> weights;
  for (const float a : kRow) {
    for (const float b : kRow) weights.push_back(a * b / 4096);
  }
  return weights;
}

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

}  // namespace

const std::vector<Filter>& filters() {
  using Look = Filter::Look;
  static const std::vector<Filter> all = {
      {"gaussian", "a soft blur", 7, {binomial()}, Look::plain, 1},
      {"sharpen",
       "sharpens: amplifies the difference of each pixel from its neighbours",
       3,
       {{0, -1, 0, -1, 5, -1, 0, -1, 0}},
       Look::plain,
       1},
      {"emboss",
       "emboss: illumination from the upper left",
       3,
       {{-2, -1, 0, -1, 1, 1, 0, 1, 2}},
       Look::plain,
       1},
      {"sobel",
       "edge strength: the length of the gradient",
       3,
       {{-1, 0, 1, -2, 0, 2, -1, 0, 1}, {-1, -2, -1, 0, 0, 0, 1, 2, 1}},
       Look::magnitude,
       0.6},
      {"laplacian",
       "second derivative of the brightness",
       3,
       {{0, 1, 0, 1, -4, 1, 0, 1, 0}},
       Look::around_grey,
       3},
  };
  return all;
}

const Filter& filter_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Filter& filter : filters()) names.push_back(filter.name);
  parse_word("filter", name, names);
  return *std::find_if(filters().begin(), filters().end(),
                       [&](const Filter& filter) { return filter.name == name; });
}

Array photograph_array(const Samples& samples) {
  Array array(DType::f32, {1, samples.channels, samples.height, samples.width});
  const auto x = array.as<float>();
  const auto channels = static_cast<std::size_t>(samples.channels);
  const std::size_t plane = samples.values.size() / channels;
  for (std::size_t pixel = 0; pixel < plane; ++pixel) {
    for (std::size_t c = 0; c < channels; ++c)
      x[c * plane + pixel] = samples.values[pixel * channels + c];
  }
  return array;
}

Array filter_weights(const Filter& filter, int channels) {
  const auto count = static_cast<std::int64_t>(filter.weights.size());
  Array array(DType::f32, {channels * count, 1, filter.taps, filter.taps});
  auto to = array.as<float>().begin();
  for (int c = 0; c < channels; ++c) {
    for (const auto& weights : filter.weights) to = std::copy(weights.begin(), weights.end(), to);
  }
  return array;
}

Image picture_of(const Samples& samples) {
  Image image(samples.width, samples.height);
  const auto channels = static_cast<std::size_t>(samples.channels);
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint8_t>(samples.depth == 16 ? samples.values[i] >> 8
                                                         : samples.values[i]);
  };
  std::size_t i = 0;
  for (int y = 0; y < samples.height; ++y) {
    for (int x = 0; x < samples.width; ++x, i += channels) {
      image.set(x, y,
                {byte(i), byte(i + (channels > 1 ? 1 : 0)), byte(i + (channels > 1 ? 2 : 0))});
    }
  }
  return image;
}

Image picture_of(const Filter& filter, const Array& y, int depth) {
  const std::size_t parts = filter.weights.size();
  const std::size_t channels = static_cast<std::size_t>(y.shape()[1]) / parts;
  const int height = static_cast<int>(y.shape()[2]), width = static_cast<int>(y.shape()[3]);
  const std::size_t plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const auto values = y.as<float>();
  const double gain = depth == 16 ? filter.gain / 257 : filter.gain;

  const auto sample = [&](std::size_t channel, std::size_t pixel) {
    const auto part = [&](std::size_t i) {
      return double{values[(channel * parts + i) * plane + pixel]};
    };
    switch (filter.look) {
      case Filter::Look::plain: return to_byte(gain * part(0));
      case Filter::Look::magnitude: return to_byte(gain * std::hypot(part(0), part(1)));
      case Filter::Look::around_grey: return to_byte(128 + gain * part(0));
    }
    return std::uint8_t{0};
  };
  Image image(width, height);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const std::size_t pixel = static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
                                static_cast<std::size_t>(column);
      const std::uint8_t first = sample(0, pixel);
      image.set(column, row,
                channels == 1 ? Colour{first, first, first}
                              : Colour{first, sample(1, pixel), sample(2, pixel)});
    }
  }
  return image;
}

}  // namespace convladder::command
