/// @file drawing.hpp
/// @brief Pictures of lines, shapes and text, drawn by Cairo as PNG or SVG.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command/image.hpp"

namespace convladder::command {

struct Point {
  double x = 0, y = 0;
};

/// Whether this build can draw: it was configured with Cairo.
bool can_draw();

/// A picture of shapes and text. Units are pixels; (0, 0) is the upper left corner of the upper
/// left pixel. Later shapes cover earlier ones. Copies share one drawing.
/// @throws std::logic_error from all functions if !can_draw(), std::runtime_error if Cairo fails
class Drawing {
 public:
  Drawing(int width, int height, Colour background = {255, 255, 255});
  /// A picture of pixels.
  explicit Drawing(const Image& image);

  int width() const { return width_; }
  int height() const { return height_; }

  /// Inserts a drawing into this one with its upper left corner at (x, y).
  void place(const Drawing& other, double x, double y);
  void fill_rectangle(Point corner, Point opposite, Colour colour);
  void fill_polygon(const std::vector<Point>& corners, Colour colour);
  void disc(Point centre, double radius, Colour colour);
  /// A line with round ends. @param opacity 0 (invisible) to 1
  void line(Point from, Point to, double thickness, Colour colour, double opacity = 1);
  /// A dashed line. @param dash, gap lengths in pixels
  void dashed_line(Point from, Point to, double thickness, Colour colour, double dash, double gap);
  /// Text in UTF-8, in the system's sans-serif font.
  /// @param baseline left end of the baseline @param size of the font in pixels
  void text(Point baseline, double size, Colour colour, std::string_view words);

  std::vector<std::byte> png() const;  ///< The bytes of a PNG file.
  std::string svg() const;             ///< The text of an SVG file.

 private:
  struct Surface;

  int width_, height_;
  std::shared_ptr<Surface> surface_;
};

/// The width of that text.
double text_width(double size, std::string_view words);

}  // namespace convladder::command
