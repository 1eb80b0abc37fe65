/// @file image.hpp
/// @brief Colours, and a picture of pixels.
#pragma once

#include <cstdint>
#include <vector>

namespace convladder::command {

/// A colour, sRGB, 0 to 255.
struct Colour {
  std::uint8_t r = 0, g = 0, b = 0;
};

/// The colour at fraction `t` of the way from one colour to the other, interpolated in the
/// perceptual colour space OKLab.
Colour between(Colour from, Colour to, double t);

/// An 8-bit RGB picture of pixels; (0, 0) is the upper left one.
class Image {
 public:
  Image(int width, int height, Colour background = {255, 255, 255});

  int width() const { return width_; }
  int height() const { return height_; }
  /// Red, green, blue of each pixel, row by row.
  const std::vector<std::uint8_t>& rgb() const { return rgb_; }

  Colour at(int x, int y) const;
  void set(int x, int y, Colour colour);

 private:
  int width_, height_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace convladder::command
