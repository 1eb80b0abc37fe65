/// @file photograph.hpp
/// @brief Photographs as inputs of a convolution, and outputs as pictures.
#pragma once

#include <string>
#include <vector>

#include "command/image.hpp"
#include "command/png_file.hpp"
#include "core/array.hpp"

namespace convladder::command {

/// A filter for photographs. Each channel is filtered separately, as a depthwise convolution.
struct Filter {
  enum class Look {
    plain,       ///< the result is a picture
    magnitude,   ///< two results per channel, the components of a vector, shown as its length
    around_grey  ///< signed results, shown lighter or darker than grey
  };
  std::string name;
  std::string what;  ///< A one-line description.
  int taps;          ///< R = S
  /// One or two filters of R * S weights; their products with 8-bit samples are summed exactly in
  /// float.
  std::vector<std::vector<float>> weights;
  Look look;
  double gain;  ///< Converts a result to the brightness of the picture.
};

/// All filters.
const std::vector<Filter>& filters();

/// The filter of that name. @throws BadInput that names the nearest.
const Filter& filter_named(const std::string& name);

/// The photograph as x [1][channels][height][width]; values are its samples, 0 to 255 or 0 to
/// 65535.
Array photograph_array(const Samples& samples);

/// The weights of the filter for this number of channels: [channels * filters][1][R][S], the
/// filters of a channel adjacent.
Array filter_weights(const Filter& filter, int channels);

/// The photograph itself as a picture.
Image picture_of(const Samples& samples);

/// The result y [1][channels * filters][P][Q] of a convolution as a picture.
/// @param depth bits per sample of the photograph
Image picture_of(const Filter& filter, const Array& y, int depth);

}  // namespace convladder::command
