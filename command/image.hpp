/// @file image.hpp
/// @brief A picture in colour, and what one draws on it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace convladder::command {

/// A colour, sRGB, 0 to 255.
struct Colour {
  std::uint8_t r = 0, g = 0, b = 0;
};

/// The colour a fraction `t` of the way from one to the other, as the eye sees it (in OKLab).
Colour between(Colour from, Colour to, double t);

struct Point {
  double x = 0, y = 0;
};

/// An 8-bit RGB picture. Drawing is antialiased and clipped to the picture; (0, 0) is the upper
/// left corner of the upper left pixel.
class Image {
 public:
  Image(int width, int height, Colour background = {255, 255, 255});

  int width() const { return width_; }
  int height() const { return height_; }
  /// Red, green, blue of each pixel, row by row.
  const std::vector<std::uint8_t>& rgb() const { return rgb_; }

  Colour at(int x, int y) const;
  void set(int x, int y, Colour colour);

  /// Copies a picture; its upper left corner comes to (x, y).
  void paste(const Image& other, int x, int y);
  void fill_rectangle(Point corner, Point opposite, Colour colour);
  /// A line with round ends. @param opacity 0 (invisible) to 1
  void line(Point from, Point to, double thickness, Colour colour, double opacity = 1);
  void disc(Point centre, double radius, Colour colour);

 private:
  void blend(int x, int y, Colour colour, double coverage);

  int width_, height_;
  std::vector<std::uint8_t> rgb_;
};

/// Writes text in a plain stroke font: lower-case letters, digits and a little punctuation.
/// @param height of the letter "x", in pixels
/// @param baseline left end of the line on which the letters stand
void draw_text(Image& image, Point baseline, double height, Colour colour, std::string_view words);

/// The width of that text in pixels.
double text_width(double height, std::string_view words);

}  // namespace convladder::command
