/// @file photograph.hpp
/// @brief Photographs as inputs of a convolution, and its outputs as photographs.
#pragma once

#include <string>
#include <vector>

#include "command/image.hpp"
#include "command/png_file.hpp"
#include "core/array.hpp"

namespace convladder::command {

/// A filter for photographs. Each channel is filtered by itself: a depthwise convolution.
struct Filter {
  enum class Look {
    plain,       ///< the result is a picture
    magnitude,   ///< two results a channel, the parts of a vector: its length
    around_grey  ///< positive and negative results, lighter and darker than grey
  };
  std::string name;
  std::string what;  ///< In a line.
  int taps;          ///< R = S
  /// One or two filters, each R * S weights: products with 8-bit samples add up exactly in float.
  std::vector<std::vector<float>> weights;
  Look look;
  double gain;  ///< From a result to the picture's brightness.
};

/// All filters.
const std::vector<Filter>& filters();

/// The filter of that name. @throws BadInput that names the nearest.
const Filter& filter_named(const std::string& name);

/// The photograph as x [1][channels][height][width]; values are its samples, 0 to 255 or 0 to
/// 65535.
Array photograph_array(const Samples& samples);

/// The filter's weights for so many channels: [channels * filters][1][R][S], a channel's side by
/// side.
Array filter_weights(const Filter& filter, int channels);

/// The photograph itself as a picture.
Image picture_of(const Samples& samples);

/// A convolution's result y [1][channels * filters][P][Q] as a picture.
/// @param depth bits of the photograph's samples
Image picture_of(const Filter& filter, const Array& y, int depth);

}  // namespace convladder::command
