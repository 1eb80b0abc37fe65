#include "command/pictures.hpp"

#include <algorithm>
#include <cmath>

namespace convladder::command {
namespace {

constexpr Colour kPaper = {250, 249, 246}, kInk = {38, 40, 54}, kGrey = {120, 122, 134};
constexpr Colour kWhite = {255, 255, 255}, kShadow = {20, 20, 40};
constexpr int kMargin = 36;         // around and between exhibits
constexpr int kCaptionHeight = 58;  // below each
constexpr int kTitleHeight = 88;    // above them all
constexpr double kTitleFont = 24, kNameFont = 18, kSmallFont = 15;

// Pixels of a panel with the tiles of a map.
constexpr int kPanelWidth = 416, kPanelHeight = 312;

/// From the first block to the last: brightness increases monotonically, so that the order is
/// visible without colours.
Colour launch_colour(double t) {
  static constexpr Colour kStops[] = {{44, 24, 96},   {60, 66, 170},  {36, 128, 178},
                                      {38, 174, 148}, {134, 206, 90}, {252, 230, 94}};
  const double at = std::clamp(t, 0.0, 1.0) * 5;
  const int stop = std::min(static_cast<int>(at), 4);
  return between(kStops[stop], kStops[stop + 1], at - stop);
}

/// A line that is visible on every colour.
void draw_path(Drawing& image, Point from, Point to, bool is_jump) {
  image.line(from, to, is_jump ? 2 : 4, kShadow, is_jump ? 0.12 : 0.3);
  image.line(from, to, is_jump ? 1 : 2, kWhite, is_jump ? 0.4 : 0.95);
}

void draw_end(Drawing& image, Point at, Colour inside) {
  image.disc(at, 5.5, kWhite);
  image.disc(at, 3.5, inside);
}

}  // namespace

Drawing contact_sheet(const std::string& title, const std::string& subtitle,
                      const std::vector<Exhibit>& exhibits, int columns) {
  int width = 0, height = 0;
  for (const Exhibit& exhibit : exhibits) {
    width = std::max(width, exhibit.drawing.width());
    height = std::max(height, exhibit.drawing.height());
  }
  const int rows = (static_cast<int>(exhibits.size()) + columns - 1) / columns;
  Drawing sheet(columns * (width + kMargin) + kMargin,
                kTitleHeight + rows * (height + kCaptionHeight) + kMargin / 2 + kMargin, kPaper);
  sheet.text({kMargin + 2.0, kMargin + 16.0}, kTitleFont, kInk, title);
  sheet.text({kMargin + 2.0, kMargin + 46.0}, kSmallFont, kGrey, subtitle);
  for (std::size_t i = 0; i < exhibits.size(); ++i) {
    const Drawing& drawing = exhibits[i].drawing;
    const int x =
        kMargin + static_cast<int>(i) % columns * (width + kMargin) + (width - drawing.width()) / 2;
    const int y = kMargin + kTitleHeight - kMargin / 2 +
                  static_cast<int>(i) / columns * (height + kCaptionHeight);
    const int centred = y + (height - drawing.height()) / 2;
    sheet.place(drawing, x, centred);
    const Point baseline{x + 2.0, y + height + 27.0};
    sheet.text(baseline, kNameFont, kInk, exhibits[i].name);
    sheet.text({baseline.x + text_width(kNameFont, exhibits[i].name) + 16, baseline.y}, kSmallFont,
               kGrey, exhibits[i].remark);
  }
  return sheet;
}

Drawing tile_order_picture(const TileMapProblem& problem, std::span<const std::int32_t> units) {
  Drawing image(kPanelWidth, kPanelHeight, kPaper);
  const double gap = problem.batch > 1 ? 0.6 : 0;  // between products, in tiles
  const double across = problem.batch * (problem.tiles_n + gap) - gap;
  const double side = std::min(kPanelWidth / across, double{kPanelHeight} / problem.tiles_m);
  const double top = (kPanelHeight - side * problem.tiles_m) / 2;
  const double last_block =
      std::max<double>(1, units.empty() ? 1 : units[units.size() - kUnitColumns]);

  struct Place {
    Point corner, opposite;
    Point centre() const { return {(corner.x + opposite.x) / 2, (corner.y + opposite.y) / 2}; }
  };
  const auto column = [&](std::size_t unit, std::size_t i) {
    return double(units[unit * kUnitColumns + i]);
  };
  const auto place_of = [&](std::size_t unit) {
    const double x = (column(unit, 1) * (problem.tiles_n + gap) + column(unit, 3)) * side;
    const double y = top + column(unit, 2) * side;
    return Place{{x + side * column(unit, 4) / problem.k_steps, y},
                 {x + side * column(unit, 5) / problem.k_steps, y + side}};
  };
  const std::size_t count = units.size() / kUnitColumns;
  for (std::size_t i = 0; i < count; ++i) {
    const Place place = place_of(i);
    image.fill_rectangle(place.corner, place.opposite, launch_colour(column(i, 0) / last_block));
  }
  if (side < 6 || count == 0) return image;  // lines would hide the colours
  for (int batch = 0; batch < problem.batch; ++batch) {
    const double left = batch * (problem.tiles_n + gap) * side,
                 right = left + problem.tiles_n * side;
    for (int m = 1; m < problem.tiles_m; ++m) {
      image.line({left, top + m * side}, {right, top + m * side}, 1, kWhite, 0.25);
    }
    for (int n = 1; n < problem.tiles_n; ++n) {
      image.line({left + n * side, top}, {left + n * side, top + problem.tiles_m * side}, 1, kWhite,
                 0.25);
    }
  }
  const bool several_units = problem.map == TileMap::stream_k;
  for (std::size_t i = 1; i < count; ++i) {
    if (several_units && column(i, 0) != column(i - 1, 0))
      continue;  // each block has a separate
                 // line
    const Point from = place_of(i - 1).centre(), to = place_of(i).centre();
    draw_path(image, from, to, std::hypot(to.x - from.x, to.y - from.y) > 1.5 * side);
  }
  draw_end(image, place_of(0).centre(), launch_colour(0));
  draw_end(image, place_of(count - 1).centre(), launch_colour(1));
  return image;
}

Image bird_view(std::span<const std::int32_t> coords, const PerAxis& shape, double part) {
  constexpr int kSide = 480;
  constexpr std::size_t kColumns = 4;
  // The colour scale of the pixels; most sites are low, so the scale ends at the middle of the
  // grid.
  std::vector<double> height(std::size_t{kSide} * kSide, -1);
  const auto pixel = [part](double cell, int cells) {
    return static_cast<int>(std::floor(((cell / cells - 0.5) / part + 0.5) * kSide));
  };
  for (std::size_t i = 0; i < coords.size(); i += kColumns) {
    const double z = std::min(1.0, 2.0 * coords[i + 1] / shape[0]);
    // A site may cover several pixels.
    const int top = kSide - pixel(coords[i + 2] + 1.0, shape[1]),
              bottom = std::max(top + 1, kSide - pixel(coords[i + 2], shape[1]));
    const int left = pixel(coords[i + 3], shape[2]),
              right = std::max(left + 1, pixel(coords[i + 3] + 1.0, shape[2]));
    for (int y = std::max(0, top); y < std::min(bottom, kSide); ++y) {
      for (int x = std::max(0, left); x < std::min(right, kSide); ++x) {
        double& at = height[static_cast<std::size_t>(y) * kSide + static_cast<std::size_t>(x)];
        at = std::max(at, z);
      }
    }
  }
  Image image(kSide, kSide, {28, 29, 40});
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const double z = height[static_cast<std::size_t>(y) * kSide + static_cast<std::size_t>(x)];
      if (z >= 0) image.set(x, y, launch_colour(0.25 + 0.75 * z));
    }
  }
  return image;
}

Drawing tile_order_legend() {
  Drawing image(kPanelWidth, kPanelHeight, kPaper);
  constexpr double kBar = 300;
  double y = 60;
  for (int x = 0; x < static_cast<int>(kBar); ++x) {
    image.fill_rectangle({double(x), y}, {x + 1.0, y + 18}, launch_colour(x / kBar));
  }
  image.text({2, y - 12}, kSmallFont, kInk, "first block");
  image.text({kBar - text_width(kSmallFont, "last block"), y - 12}, kSmallFont, kInk, "last block");
  for (const char* line :
       {"Each square is an output tile, coloured", "by the index of the block that computes it.",
        "The line follows the order of the blocks.", "", "Blocks that share a tile divide its",
        "k-steps, from left to right."}) {
    y += line[0] == '\0' ? 12 : 26;
    image.text({2, y + 26}, kSmallFont, kGrey, line);
  }
  return image;
}

}  // namespace convladder::command
