#include "command/drawing.hpp"

#include <stdexcept>

#ifdef CONVLADDER_HAVE_CAIRO
#include <cairo-svg.h>
#include <cairo.h>

#include <cstdint>
#include <numbers>

#include "core/text.hpp"

namespace convladder::command {
namespace {

void check(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS)
    throw std::runtime_error(convladder::text("Cairo: ", cairo_status_to_string(status)));
}

using SurfaceHandle = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;

SurfaceHandle checked(cairo_surface_t* surface) {
  SurfaceHandle handle(surface, &cairo_surface_destroy);
  check(cairo_surface_status(surface));
  return handle;
}

/// A Cairo context on a surface.
class Pen {
 public:
  explicit Pen(cairo_surface_t* surface) : cairo_(cairo_create(surface), &cairo_destroy) {
    check(cairo_status(cairo_.get()));
  }
  cairo_t* get() const { return cairo_.get(); }

  void take(Colour colour, double opacity = 1) const {
    cairo_set_source_rgba(get(), colour.r / 255.0, colour.g / 255.0, colour.b / 255.0, opacity);
  }
  void take_font(double size) const {
    cairo_select_font_face(get(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(get(), size);
  }
  /// @throws std::runtime_error if any drawing operation has failed
  void done() const { check(cairo_status(get())); }

 private:
  std::unique_ptr<cairo_t, decltype(&cairo_destroy)> cairo_;
};

cairo_status_t append_bytes(void* to, const unsigned char* data, unsigned length) {
  auto* const bytes = static_cast<std::vector<std::byte>*>(to);
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  bytes->insert(bytes->end(), first, first + length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

bool can_draw() { return true; }

/// The recorded drawing operations, which are replayed on each output surface.
struct Drawing::Surface {
  SurfaceHandle handle;

  void draw_on(cairo_surface_t* target, double x, double y) const {
    const Pen pen(target);
    cairo_set_source_surface(pen.get(), handle.get(), x, y);
    cairo_paint(pen.get());
    pen.done();
  }
};

Drawing::Drawing(int width, int height, Colour background) : width_(width), height_(height) {
  const cairo_rectangle_t extents = {0, 0, double(width), double(height)};
  surface_ = std::make_shared<Surface>(
      checked(cairo_recording_surface_create(CAIRO_CONTENT_COLOR, &extents)));
  fill_rectangle({0, 0}, {double(width), double(height)}, background);
}

Drawing::Drawing(const Image& image) : width_(image.width()), height_(image.height()) {
  surface_ = std::make_shared<Surface>(
      checked(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width_, height_)));
  cairo_surface_t* const surface = surface_->handle.get();
  cairo_surface_flush(surface);
  unsigned char* const pixels = cairo_image_surface_get_data(surface);
  const int stride = cairo_image_surface_get_stride(surface);
  for (int y = 0; y < height_; ++y) {
    auto* const row = reinterpret_cast<std::uint32_t*>(pixels + std::ptrdiff_t{y} * stride);
    for (int x = 0; x < width_; ++x) {
      const Colour c = image.at(x, y);
      row[x] = static_cast<std::uint32_t>(c.r << 16 | c.g << 8 | c.b);
    }
  }
  cairo_surface_mark_dirty(surface);
}

void Drawing::place(const Drawing& other, double x, double y) {
  other.surface_->draw_on(surface_->handle.get(), x, y);
}

void Drawing::fill_rectangle(Point corner, Point opposite, Colour colour) {
  const Pen pen(surface_->handle.get());
  pen.take(colour);
  cairo_rectangle(pen.get(), corner.x, corner.y, opposite.x - corner.x, opposite.y - corner.y);
  cairo_fill(pen.get());
  pen.done();
}

void Drawing::fill_polygon(const std::vector<Point>& corners, Colour colour) {
  const Pen pen(surface_->handle.get());
  pen.take(colour);
  for (const Point& corner : corners) cairo_line_to(pen.get(), corner.x, corner.y);
  cairo_fill(pen.get());
  pen.done();
}

void Drawing::disc(Point centre, double radius, Colour colour) {
  const Pen pen(surface_->handle.get());
  pen.take(colour);
  cairo_arc(pen.get(), centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
  cairo_fill(pen.get());
  pen.done();
}

void Drawing::line(Point from, Point to, double thickness, Colour colour, double opacity) {
  const Pen pen(surface_->handle.get());
  pen.take(colour, opacity);
  cairo_set_line_width(pen.get(), thickness);
  cairo_set_line_cap(pen.get(), CAIRO_LINE_CAP_ROUND);
  cairo_move_to(pen.get(), from.x, from.y);
  cairo_line_to(pen.get(), to.x, to.y);
  cairo_stroke(pen.get());
  pen.done();
}

void Drawing::dashed_line(Point from, Point to, double thickness, Colour colour, double dash,
                          double gap) {
  const Pen pen(surface_->handle.get());
  pen.take(colour);
  cairo_set_line_width(pen.get(), thickness);
  const double dashes[] = {dash, gap};
  cairo_set_dash(pen.get(), dashes, 2, 0);
  cairo_move_to(pen.get(), from.x, from.y);
  cairo_line_to(pen.get(), to.x, to.y);
  cairo_stroke(pen.get());
  pen.done();
}

void Drawing::text(Point baseline, double size, Colour colour, std::string_view words) {
  const Pen pen(surface_->handle.get());
  pen.take(colour);
  pen.take_font(size);
  cairo_move_to(pen.get(), baseline.x, baseline.y);
  cairo_show_text(pen.get(), std::string(words).c_str());
  pen.done();
}

std::vector<std::byte> Drawing::png() const {
  const SurfaceHandle pixels =
      checked(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width_, height_));
  surface_->draw_on(pixels.get(), 0, 0);
  std::vector<std::byte> bytes;
  check(cairo_surface_write_to_png_stream(pixels.get(), &append_bytes, &bytes));
  return bytes;
}

std::string Drawing::svg() const {
  std::vector<std::byte> bytes;
  const SurfaceHandle file =
      checked(cairo_svg_surface_create_for_stream(&append_bytes, &bytes, width_, height_));
  cairo_svg_surface_set_document_unit(file.get(), CAIRO_SVG_UNIT_PX);
  surface_->draw_on(file.get(), 0, 0);
  cairo_surface_finish(file.get());
  check(cairo_surface_status(file.get()));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

double text_width(double size, std::string_view words) {
  static const SurfaceHandle nothing = checked(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
  const Pen pen(nothing.get());
  pen.take_font(size);
  cairo_text_extents_t extents{};
  cairo_text_extents(pen.get(), std::string(words).c_str(), &extents);
  pen.done();
  return extents.x_advance;
}

}  // namespace convladder::command

#else

namespace convladder::command {
namespace {

[[noreturn]] void fail() {
  throw std::logic_error("this build cannot draw pictures: it was configured without Cairo");
}

}  // namespace

struct Drawing::Surface {};

bool can_draw() { return false; }
Drawing::Drawing(int width, int height, Colour) : width_(width), height_(height) { fail(); }
Drawing::Drawing(const Image& image) : width_(image.width()), height_(image.height()) { fail(); }
void Drawing::place(const Drawing&, double, double) { fail(); }
void Drawing::fill_rectangle(Point, Point, Colour) { fail(); }
void Drawing::fill_polygon(const std::vector<Point>&, Colour) { fail(); }
void Drawing::disc(Point, double, Colour) { fail(); }
void Drawing::line(Point, Point, double, Colour, double) { fail(); }
void Drawing::dashed_line(Point, Point, double, Colour, double, double) { fail(); }
void Drawing::text(Point, double, Colour, std::string_view) { fail(); }
std::vector<std::byte> Drawing::png() const { fail(); }
std::string Drawing::svg() const { fail(); }
double text_width(double, std::string_view) { fail(); }

}  // namespace convladder::command

#endif
