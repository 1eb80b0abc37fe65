#include "command/pictures.hpp"

#include <algorithm>
#include <cmath>

namespace convladder::command {
namespace {

constexpr Colour kPaper = {250, 249, 246}, kInk = {38, 40, 54}, kGrey = {120, 122, 134};
constexpr Colour kWhite = {255, 255, 255}, kShadow = {20, 20, 40};
constexpr int kMargin = 36;         // around and between exhibits
constexpr int kCaptionHeight = 58;  // below each
constexpr int kTitleHeight = 64;

// Of one panel with the tiles of a map.
constexpr int kPanelWidth = 416, kPanelHeight = 312;

/// From the first block to the last: light grows all the way, so that the order shows without colours.
Colour launch_colour(double t) {
  static constexpr Colour kStops[] = {
      {44, 24, 96}, {60, 66, 170}, {36, 128, 178}, {38, 174, 148}, {134, 206, 90}, {252, 230, 94}};
  const double at = std::clamp(t, 0.0, 1.0) * 5;
  const int stop = std::min(static_cast<int>(at), 4);
  return between(kStops[stop], kStops[stop + 1], at - stop);
}

/// A line that can be seen on every colour.
void draw_path(Image& image, Point from, Point to, bool is_jump) {
  image.line(from, to, is_jump ? 2 : 4, kShadow, is_jump ? 0.12 : 0.3);
  image.line(from, to, is_jump ? 1 : 2, kWhite, is_jump ? 0.4 : 0.95);
}

void draw_end(Image& image, Point at, Colour inside) {
  image.disc(at, 5.5, kWhite);
  image.disc(at, 3.5, inside);
}

}  // namespace

Image contact_sheet(const std::string& title, const std::vector<Exhibit>& exhibits, int columns) {
  int width = 0, height = 0;
  for (const Exhibit& exhibit : exhibits) {
    width = std::max(width, exhibit.image.width());
    height = std::max(height, exhibit.image.height());
  }
  const int rows = (static_cast<int>(exhibits.size()) + columns - 1) / columns;
  Image sheet(columns * (width + kMargin) + kMargin,
              kTitleHeight + rows * (height + kCaptionHeight) + kMargin / 2 + kMargin, kPaper);
  draw_text(sheet, {double{kMargin}, kMargin + 16.0}, 13, kInk, title);
  for (std::size_t i = 0; i < exhibits.size(); ++i) {
    const Image& image = exhibits[i].image;
    const int x = kMargin + static_cast<int>(i) % columns * (width + kMargin);
    const int y = kMargin + kTitleHeight - kMargin / 2 + static_cast<int>(i) / columns * (height + kCaptionHeight);
    sheet.paste(image, x + (width - image.width()) / 2, y + (height - image.height()) / 2);
    const Point baseline{double(x), y + height + 27.0};
    draw_text(sheet, baseline, 10, kInk, exhibits[i].name);
    draw_text(sheet, {x + text_width(10, exhibits[i].name) + 16, baseline.y}, 8.5, kGrey, exhibits[i].remark);
  }
  return sheet;
}

Image tile_order_picture(const TileMapProblem& problem, std::span<const std::int32_t> units) {
  Image image(kPanelWidth, kPanelHeight, kPaper);
  const double gap = problem.batch > 1 ? 0.6 : 0;  // between products, in tiles
  const double across = problem.batch * (problem.tiles_n + gap) - gap;
  const double side = std::min(kPanelWidth / across, double{kPanelHeight} / problem.tiles_m);
  const double seam = side > 8 ? 1 : 0;  // of paper around each tile
  const double last_block = std::max<double>(1, units.empty() ? 1 : units[units.size() - kUnitColumns]);

  struct Place {
    Point corner, opposite;
    Point centre() const { return {(corner.x + opposite.x) / 2, (corner.y + opposite.y) / 2}; }
  };
  const auto place_of = [&](std::size_t unit) {
    const auto column = [&](std::size_t i) { return double(units[unit * kUnitColumns + i]); };
    const double x = (column(1) * (problem.tiles_n + gap) + column(3)) * side, y = column(2) * side;
    const double inside = side - 2 * seam;
    return Place{{x + seam + inside * column(4) / problem.k_steps, y + seam},
                 {x + seam + inside * column(5) / problem.k_steps, y + seam + inside}};
  };
  const std::size_t count = units.size() / kUnitColumns;
  for (std::size_t i = 0; i < count; ++i) {
    const Place place = place_of(i);
    image.fill_rectangle(place.corner, place.opposite, launch_colour(units[i * kUnitColumns] / last_block));
  }
  if (side < 6) return image;  // a line would hide the colours
  for (std::size_t i = 1; i < count; ++i) {
    const Point from = place_of(i - 1).centre(), to = place_of(i).centre();
    draw_path(image, from, to, std::hypot(to.x - from.x, to.y - from.y) > 1.5 * side);
  }
  if (count == 0) return image;
  draw_end(image, place_of(0).centre(), launch_colour(0));
  draw_end(image, place_of(count - 1).centre(), launch_colour(1));
  return image;
}

Image tile_order_legend() {
  Image image(kPanelWidth, kPanelHeight, kPaper);
  constexpr double kBar = 300;
  double y = 60;
  for (int x = 0; x < static_cast<int>(kBar); ++x) {
    image.fill_rectangle({double(x), y}, {x + 1.0, y + 18}, launch_colour(x / kBar));
  }
  draw_text(image, {0, y - 12}, 8.5, kInk, "first block");
  draw_text(image, {kBar - text_width(8.5, "last block"), y - 12}, 8.5, kInk, "last block");
  for (const char* line : {"A square is an output tile,", "a colour the time when its block starts;",
                           "the line follows the blocks.", "", "Where blocks share a tile, each",
                           "has its k-steps, left to right."}) {
    y += line[0] == '\0' ? 12 : 26;
    draw_text(image, {0, y + 26}, 8.5, kGrey, line);
  }
  return image;
}

}  // namespace convladder::command
