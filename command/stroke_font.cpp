/// @file stroke_font.cpp
/// @brief Text for pictures: a geometric stroke font of lines and circular arcs.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <sstream>
#include <string>

#include "command/image.hpp"

namespace convladder::command {
namespace {

/// How to draw each character. The letter x is 10 units high; y points upwards from the base line.
///   L x y x y ...           a line through these points
///   A cx cy rx ry from to   an elliptic arc, angles in degrees, counter-clockwise from the right
const std::map<char, const char*>& strokes() {
  static const std::map<char, const char*> all = {
      {'a', "A 5 5 5 5 0 360 L 10 10 10 0"},
      {'b', "L 0 15 0 0 A 5 5 5 5 0 360"},
      {'c', "A 5 5 5 5 45 315"},
      {'d', "A 5 5 5 5 0 360 L 10 15 10 0"},
      {'e', "L 0 5 10 5 A 5 5 5 5 0 318"},
      {'f', "L 2.5 0 2.5 12 A 5.5 12 3 3 180 75 L 0 10 6 10"},
      {'g', "A 5 5 5 5 0 360 L 10 10 10 -1 A 5 -1 5 4.5 0 -145"},
      {'h', "L 0 15 0 0 A 4.5 5.5 4.5 4.5 180 0 L 9 5.5 9 0"},
      {'i', "L 0 10 0 0 L 0 14 0 14"},
      {'j', "L 2 10 2 -2.5 A -0.5 -2.5 2.5 2.5 0 -90 L 2 14 2 14"},
      {'k', "L 0 15 0 0 L 7.5 10 0 4 L 2.6 6.1 8 0"},
      {'l', "L 0 15 0 0"},
      {'m',
       "L 0 10 0 0 A 3.5 6.5 3.5 3.5 180 0 L 7 6.5 7 0 A 10.5 6.5 3.5 3.5 180 0 L 14 6.5 14 0"},
      {'n', "L 0 10 0 0 A 4.5 5.5 4.5 4.5 180 0 L 9 5.5 9 0"},
      {'o', "A 5 5 5 5 0 360"},
      {'p', "L 0 10 0 -5 A 5 5 5 5 0 360"},
      {'q', "A 5 5 5 5 0 360 L 10 10 10 -5"},
      {'r', "L 0 10 0 0 A 4.5 5.5 4.5 4.5 180 70"},
      {'s', "A 3.6 7.5 3.2 2.5 30 270 A 3.6 2.5 3.6 2.5 90 -145"},
      {'t', "L 2.5 14 2.5 3 A 5.5 3 3 3 180 275 L 0 10 6 10"},
      {'u', "L 0 10 0 4.5 A 4.5 4.5 4.5 4.5 180 360 L 9 10 9 0"},
      {'v', "L 0 10 4.2 0 8.4 10"},
      {'w', "L 0 10 3.2 0 6.6 9 10 0 13.2 10"},
      {'x', "L 0 10 8 0 L 8 10 0 0"},
      {'y', "L 0 10 4.3 0.4 L 8.6 10 2.2 -5"},
      {'z', "L 0 10 8 10 0 0 8 0"},
      {'0', "A 4.5 7 4.5 7 0 360"},
      {'1', "L 0 11.5 3.6 14 3.6 0"},
      {'2', "A 4.2 9.8 4.2 4.2 165 -35 L 7.64 7.39 0 0 8.6 0"},
      {'3', "A 4 10.5 3.6 3.5 150 -90 A 4 3.5 4.2 3.5 90 -150"},
      {'4', "L 6.8 0 6.8 14 0 4 9.2 4"},
      {'5', "L 7.6 14 1.4 14 0.75 7.7 A 4.1 4.7 4.4 4.7 140 -145"},
      {'6', "A 4.4 4.4 4.4 4.4 0 360 L 0.8 6.9 5.6 14"},
      {'7', "L 0 14 8.4 14 3 0"},
      {'8', "A 4.3 10.5 3.6 3.5 0 360 A 4.3 3.5 4.3 3.5 0 360"},
      {'9', "A 4.4 9.6 4.4 4.4 0 360 L 8 7.1 3.2 0"},
      {'.', "L 0 0 0 0"},
      {',', "L 0.6 0.4 -0.4 -2.2"},
      {':', "L 0 0 0 0 L 0 8 0 8"},
      {'-', "L 0 5 5 5"},
      {'_', "L 0 -2 8 -2"},
      {'+', "L 0 5 8 5 L 4 1 4 9"},
      {'=', "L 0 3.2 8 3.2 L 0 6.8 8 6.8"},
      {'/', "L 0 -2 6 15"},
      {'(', "A 6.9 6.5 7 9.5 135 225"},
      {')', "A -4.9 6.5 7 9.5 45 -45"},
  };
  return all;
}

constexpr double kGap = 3.2;     // between the ink of two letters
constexpr double kSpace = 5;     // the width of a space
constexpr double kUnits = 10;    // the height of the letter x
constexpr double kWeight = 1.7;  // the thickness of a stroke

/// Calls draw_line(from, to) for all strokes of a character, in font units.
template <class DrawLine>
void for_each_line(char c, const DrawLine& draw_line) {
  const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  const auto found = strokes().find(lower);
  if (found == strokes().end()) return;
  std::istringstream words(found->second);
  Point last;
  bool at_start = true;
  for (std::string word; words >> word;) {
    if (word == "L") {
      at_start = true;
      continue;
    }
    if (word == "A") {
      double cx, cy, rx, ry, from, to;
      words >> cx >> cy >> rx >> ry >> from >> to;
      const int steps = static_cast<int>(std::ceil(std::abs(to - from) / 9));
      for (int i = 0; i <= steps; ++i) {
        const double angle = (from + (to - from) * i / steps) * std::numbers::pi / 180;
        const Point next{cx + rx * std::cos(angle), cy + ry * std::sin(angle)};
        if (i > 0) draw_line(last, next);
        last = next;
      }
      continue;
    }
    Point next{std::stod(word), 0};
    words >> next.y;
    if (!at_start) draw_line(last, next);
    at_start = false;
    last = next;
  }
}

/// Where the ink of a character ends; it begins at 0.
double ink_width(char c) {
  double width = 0;
  for_each_line(c, [&](Point a, Point b) { width = std::max({width, a.x, b.x}); });
  return width;
}

}  // namespace

void draw_text(Image& image, Point baseline, double height, Colour colour, std::string_view words) {
  const double scale = height / kUnits;
  double x = baseline.x;
  for (const char c : words) {
    if (c == ' ') {
      x += kSpace * scale;
      continue;
    }
    for_each_line(c, [&](Point a, Point b) {
      image.line({x + a.x * scale, baseline.y - a.y * scale},
                 {x + b.x * scale, baseline.y - b.y * scale}, kWeight * scale, colour);
    });
    x += (ink_width(c) + kGap) * scale;
  }
}

double text_width(double height, std::string_view words) {
  double width = 0;
  for (const char c : words) width += c == ' ' ? kSpace : ink_width(c) + kGap;
  return (width - (words.empty() ? 0 : kGap)) * height / kUnits;
}

}  // namespace convladder::command
