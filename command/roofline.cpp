#include "command/roofline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>
#include <vector>

#include "core/text.hpp"

namespace convladder::command {
namespace {

using TimedRow = benchmarks::Row;
using benchmarks::Run;

constexpr int kWidth = 1200, kHeight = 690;
constexpr Point kUpperLeft = {88, 112}, kLowerRight = {1164, 540};  // of the axes
constexpr Colour kPaper = {250, 249, 246}, kInk = {38, 40, 54}, kGrey = {120, 122, 134};
constexpr Colour kGrid = {228, 228, 224};
constexpr double kLetters = 15, kSmallLetters = 13;  // sizes of the font
constexpr int kNameLines = 4;                        // of the problems' names, below the axes

/// A precision and its arithmetic ceiling.
struct Precision {
  const char* dtype;
  const char* ceiling;
  Colour colour;
};

constexpr std::array<Precision, 3> kPrecisions = {{{"fp32", "fma_tflops", {66, 150, 92}},
                                                   {"tf32", "tf32_tflops", {125, 95, 163}},
                                                   {"fp16", "fp16_tflops", {201, 112, 48}}}};

enum class Shape { disc, square, diamond, triangle };

struct Operation {
  const char* ladder;
  const char* words;
  Shape shape;
};

/// The content of a picture.
struct Subject {
  const char* title;
  std::vector<Operation> operations;  ///< the ladders that have arithmetic
  std::size_t precisions;             ///< of kPrecisions, so many
};

const Subject& subject_of(Convolutions kind) {
  static const Subject dense = {"The fastest rung of each problem and the ceilings of the GPU",
                                {{"conv2d", "forward", Shape::disc},
                                 {"conv2d_dgrad", "input gradient", Shape::square},
                                 {"conv2d_wgrad", "weight gradient", Shape::diamond},
                                 {"gemm", "product", Shape::triangle}},
                                2};
  static const Subject sparse = {
      "The fastest rung of each sparse problem and the ceilings of the GPU",
      {{"sparse_conv", "forward", Shape::disc},
       {"sparse_dgrad", "input gradient", Shape::square},
       {"sparse_wgrad", "weight gradient", Shape::diamond}},
      3};
  return kind == Convolutions::dense ? dense : sparse;
}

void draw_shape(Drawing& image, Point at, Shape shape, Colour colour) {
  switch (shape) {
    case Shape::disc: image.disc(at, 5.5, colour); return;
    case Shape::square:
      image.fill_rectangle({at.x - 5, at.y - 5}, {at.x + 5, at.y + 5}, colour);
      return;
    case Shape::diamond:
      image.fill_polygon({{at.x, at.y - 7}, {at.x + 7, at.y}, {at.x, at.y + 7}, {at.x - 7, at.y}},
                         colour);
      return;
    case Shape::triangle:
      image.fill_polygon({{at.x, at.y - 7}, {at.x + 6.5, at.y + 6}, {at.x - 6.5, at.y + 6}},
                         colour);
      return;
  }
}

/// A point of the picture.
struct Mark {
  double intensity = 0;  ///< Operations a byte.
  double tflops = 0;
  std::string problem;
  const Precision* precision = nullptr;
  Shape shape = Shape::disc;
};

/// The fastest rungs; a rung that rounds its operands is shown only if it is faster than FP32.
std::vector<Mark> marks_of(const Run& run, const Subject& subject) {
  std::map<std::tuple<std::string, std::string, std::string>, const TimedRow*> fastest;
  for (const TimedRow& row : run.rows) {
    if (row.l2 != "warm" || !(row.tflops > 0) || row.bytes <= 0) continue;
    const TimedRow*& best = fastest[{row.ladder, row.problem, row.dtype}];
    if (best == nullptr || row.median_us < best->median_us) best = &row;
  }
  std::vector<Mark> marks;
  for (const auto& [key, row] : fastest) {
    const auto strict = fastest.find({row->ladder, row->problem, "fp32"});
    if (strict != fastest.end() && row->median_us > strict->second->median_us) continue;
    const auto operation =
        std::find_if(subject.operations.begin(), subject.operations.end(),
                     [&, ladder = row->ladder](const Operation& o) { return o.ladder == ladder; });
    const auto* const end = kPrecisions.begin() + subject.precisions;
    const auto* const precision =
        std::find_if(kPrecisions.begin(), end,
                     [&, dtype = row->dtype](const Precision& p) { return p.dtype == dtype; });
    if (operation == subject.operations.end() || precision == end) continue;
    marks.push_back({row->tflops * 1e6 * row->median_us / static_cast<double>(row->bytes),
                     row->tflops, row->problem, precision, operation->shape});
  }
  return marks;
}

struct Range {
  double low, high;
};

/// Two logarithmic axes.
struct Axes {
  Range x_range, y_range;

  double x(double value) const {
    return kUpperLeft.x + (kLowerRight.x - kUpperLeft.x) * std::log(value / x_range.low) /
                              std::log(x_range.high / x_range.low);
  }
  double y(double value) const {
    return kLowerRight.y - (kLowerRight.y - kUpperLeft.y) * std::log(value / y_range.low) /
                               std::log(y_range.high / y_range.low);
  }
  Point at(double intensity, double tflops) const { return {x(intensity), y(tflops)}; }
};

void centred_text(Drawing& image, Point baseline, double size, Colour colour,
                  const std::string& words) {
  image.text({baseline.x - text_width(size, words) / 2, baseline.y}, size, colour, words);
}

std::string number(const char* format, double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, format, value);
  return digits;
}

void draw_axes(Drawing& image, const Axes& axes) {
  const auto powers = [](Range range) {
    std::vector<double> all;
    for (int power = -12; power <= 12; ++power) {
      const double value = std::pow(10.0, power);
      if (value >= range.low && value <= range.high) all.push_back(value);
    }
    return all;
  };
  for (const double value : powers(axes.y_range)) {
    const double y = axes.y(value);
    image.line({kUpperLeft.x, y}, {kLowerRight.x, y}, 1, kGrid);
    const std::string words = number("%g", value);
    image.text({kUpperLeft.x - 12 - text_width(kLetters, words), y + 5}, kLetters, kGrey, words);
  }
  for (const double value : powers(axes.x_range)) {
    const double x = axes.x(value);
    image.line({x, kUpperLeft.y}, {x, kLowerRight.y}, 1, kGrid);
    centred_text(image, {x, kLowerRight.y + 22}, kLetters, kGrey, number("%g", value));
  }
  image.line(kUpperLeft, {kUpperLeft.x, kLowerRight.y}, 1.2, kGrey);
  image.line({kUpperLeft.x, kLowerRight.y}, kLowerRight, 1.2, kGrey);
  image.text({kUpperLeft.x + 10, kUpperLeft.y + 16}, kLetters, kGrey, "TFLOP/s");
  image.text({kUpperLeft.x, kHeight - 14.0}, kLetters, kGrey,
             "Arithmetic intensity in operations per byte of the arrays, and the problems");
}

/// Bandwidth ceilings on the left, arithmetic ceilings on the right.
void draw_roof(Drawing& image, const Axes& axes, double tb_s, double peak, Colour colour,
               bool dashed) {
  const auto stretch = [&](Point from, Point to) {
    if (dashed) {
      image.dashed_line(from, to, 2, colour, 8, 6);
    } else {
      image.line(from, to, 2, colour);
    }
  };
  const double corner = std::clamp(peak / tb_s, axes.x_range.low, axes.x_range.high);
  const double begin = std::clamp(axes.y_range.low / tb_s, axes.x_range.low, corner);
  if (begin < corner) stretch(axes.at(begin, begin * tb_s), axes.at(corner, corner * tb_s));
  if (peak / tb_s < axes.x_range.high)
    stretch(axes.at(corner, peak), axes.at(axes.x_range.high, peak));
}

void draw_legend(Drawing& image, const Subject& subject, double copy, double copy_l2) {
  const double y = 86;
  double x = kUpperLeft.x;
  image.line({x, y - 4}, {x + 30, y - 4}, 2, kGrey);
  const auto say = [&](double gap, const std::string& words) {
    image.text({x + gap, y}, kLetters, kGrey, words);
    x += gap + text_width(kLetters, words) + 26;
  };
  say(38, text("copy, ", number("%.1f", copy), " TB/s"));
  image.dashed_line({x, y - 4}, {x + 22, y - 4}, 2, kGrey, 8, 6);
  say(32, text("within the L2, ", number("%.1f", copy_l2), " TB/s"));
  for (const Operation& operation : subject.operations) {
    draw_shape(image, {x + 6, y - 4}, operation.shape, kGrey);
    say(18, operation.words);
  }
  for (std::size_t i = 0; i < subject.precisions; ++i) {
    draw_shape(image, {x + 6, y - 4}, Shape::disc, kPrecisions[i].colour);
    say(18, kPrecisions[i].dtype);
  }
}

/// The label of a problem in the picture: "4096" for cube-4096; one label for all maps of a GEMM;
/// "large-64" for large-64-subm3, since most sparse problems are submanifold.
std::string short_name(std::string name) {
  if (const auto kernel = name.find("-subm3"); kernel != std::string::npos)
    return name.substr(0, kernel);
  if (name.find("-k3") != std::string::npos) return name;
  if (name.starts_with("cube-")) name = name.substr(5);
  return name.substr(0, name.find('-'));
}

/// Labels each problem once, below its mark of lowest arithmetic intensity, in several lines so
/// that neighbouring labels do not overlap.
void draw_names(Drawing& image, const Axes& axes, const std::vector<Mark>& marks) {
  std::map<std::string, double> intensities;
  for (const Mark& mark : marks) {
    double& least = intensities.emplace(short_name(mark.problem), mark.intensity).first->second;
    least = std::min(least, mark.intensity);
  }
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, intensity] : intensities) sorted.emplace_back(axes.x(intensity), name);
  std::sort(sorted.begin(), sorted.end());
  std::array<double, kNameLines> ends{};
  for (const auto& [x, name] : sorted) {
    const double half = text_width(kSmallLetters, name) / 2 + 4;
    const double* const free = std::find_if(ends.begin(), ends.end(),
                                            [&, begin = x - half](double e) { return begin > e; });
    const std::size_t line =
        free == ends.end() ? kNameLines - 1 : static_cast<std::size_t>(free - ends.begin());
    ends[line] = x + half;
    const double y = kLowerRight.y + 54 + 20 * static_cast<double>(line);
    image.line({x, kLowerRight.y + 30}, {x, y - 14}, 1, kGrid);
    centred_text(image, {x, y}, kSmallLetters, kInk, name);
  }
}

}  // namespace

std::optional<Drawing> roofline_picture(const Run& run, Convolutions kind) {
  const Subject& subject = subject_of(kind);
  const std::vector<Mark> marks = marks_of(run, subject);
  const auto ceiling = [&](const char* name) {
    const auto found = run.ceilings.find(name);
    return found == run.ceilings.end() ? 0.0 : found->second;
  };
  const double copy = ceiling("copy_tb_s"), copy_l2 = ceiling("copy_l2_tb_s");
  const double fma = ceiling("fma_tflops");
  if (!can_draw() || marks.empty() || !(copy > 0) || !(copy_l2 > 0) || !(fma > 0))
    return std::nullopt;

  Axes axes{{1e30, 0}, {1e30, 0}};
  for (const Mark& mark : marks) {
    axes.x_range = {std::min(axes.x_range.low, mark.intensity / 1.4),
                    std::max(axes.x_range.high, mark.intensity * 1.4)};
    axes.y_range.low = std::min(axes.y_range.low, mark.tflops / 1.5);
  }
  axes.y_range.low = std::min(axes.y_range.low, fma / 20);
  for (std::size_t i = 0; i < subject.precisions; ++i)
    axes.y_range.high = std::max(axes.y_range.high, 1.6 * ceiling(kPrecisions[i].ceiling));

  Drawing image(kWidth, kHeight, kPaper);
  image.text({kUpperLeft.x, 40}, 21, kInk, subject.title);
  image.text({kUpperLeft.x, 64}, kLetters, kGrey, text(run.gpu, ", ", run.date, ", L2 warm"));
  draw_legend(image, subject, copy, copy_l2);
  draw_axes(image, axes);
  for (std::size_t i = subject.precisions; i-- > 0;) {
    const auto& [dtype, name, colour] = kPrecisions[i];
    const double peak = ceiling(name);
    if (!(peak > 0)) continue;
    draw_roof(image, axes, copy_l2, peak, colour, true);
    draw_roof(image, axes, copy, peak, colour, false);
    const std::string words = text(dtype, ": ", number("%.0f", peak));
    image.text({kLowerRight.x - 8 - text_width(kLetters, words), axes.y(peak) - 8}, kLetters,
               colour, words);
  }
  for (const Mark& mark : marks)
    draw_shape(image, axes.at(mark.intensity, mark.tflops), mark.shape, mark.precision->colour);
  draw_names(image, axes, marks);
  return image;
}

}  // namespace convladder::command
