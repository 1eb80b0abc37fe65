#include "command/png_file.hpp"

#include <png.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstring>
#include <stdexcept>

#include "command/files.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

/// A pixel takes at least about 1/1032 byte of a PNG file, the limit of its compression.
constexpr double kMaxPixelsPerByte = 8 * 1032.0;  // at 1 bit per pixel

/// Reads a PNG with libpng, which reports errors by longjmp(). Therefore no object with a
/// destructor lives in a function that longjmp() may leave; the reader object outlives them.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &on_error, &on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
    png_set_read_fn(png_, this, &on_read);
    // The limits are checked in parse_png().
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  /// Reads up to the first pixel. Returns false on an error: see error().
  bool read_header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_info(png_, info_);
    // Converts everything to grey or RGB with 8 or 16 bits.
    png_set_expand(png_);
    png_set_strip_alpha(png_);
    if (std::endian::native == std::endian::little) png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  /// Reads all pixels into rows that the caller owns, and the end of the file. Returns false on an
  /// error: see error().
  bool read_pixels(png_bytep* rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  std::size_t width() const { return png_get_image_width(png_, info_); }
  std::size_t height() const { return png_get_image_height(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  int depth() const { return png_get_bit_depth(png_, info_); }
  std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  const char* error() const { return error_; }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* const self = static_cast<Decoder*>(png_get_error_ptr(png));
    std::strncpy(self->error_, message, sizeof self->error_ - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto* const self = static_cast<Decoder*>(png_get_io_ptr(png));
    if (count > self->bytes_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self->bytes_.data(), count);
    self->bytes_ = self->bytes_.subspan(count);
  }

  std::span<const std::byte> bytes_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char error_[128] = {};
};

}  // namespace

Samples read_png(const std::string& parameter, const std::filesystem::path& path) {
  return parse_png(parameter, path.string(), read_file(parameter, path));
}

Samples parse_png(const std::string& parameter, const std::string& file,
                  std::span<const std::byte> bytes) {
  const auto fail = [&](const std::string& why) {
    throw BadInput(text(parameter, " = ", file, ": ", why));
  };
  if (bytes.size() < 8 || png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) != 0) {
    fail("is not a PNG picture");
  }
  Decoder decoder(bytes);
  if (!decoder.read_header()) fail(text("is not a valid PNG picture: ", decoder.error()));
  const double pixels =
      static_cast<double>(decoder.width()) * static_cast<double>(decoder.height());
  if (pixels > kMaxPixelsPerByte * static_cast<double>(bytes.size())) {
    fail(
        text("promises ", decoder.width(), " x ", decoder.height(), " pixels, but ends too early"));
  }
  require_available(
      static_cast<double>(decoder.row_bytes()) * static_cast<double>(decoder.height()) +
          2 * pixels * decoder.channels(),
      text(parameter, " = ", file));

  std::vector<png_byte> data(decoder.row_bytes() * decoder.height());
  std::vector<png_bytep> rows(decoder.height());
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row] = data.data() + row * decoder.row_bytes();
  if (!decoder.read_pixels(rows.data()))
    fail(text("is not a valid PNG picture: ", decoder.error()));

  Samples samples{static_cast<int>(decoder.width()),
                  static_cast<int>(decoder.height()),
                  decoder.channels(),
                  decoder.depth(),
                  {}};
  const std::size_t per_row = decoder.width() * static_cast<std::size_t>(samples.channels);
  samples.values.resize(per_row * decoder.height());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::uint16_t* const to = samples.values.data() + row * per_row;
    if (samples.depth == 16) {
      std::memcpy(to, rows[row], per_row * 2);
    } else {
      std::copy_n(rows[row], per_row, to);
    }
  }
  return samples;
}

std::vector<std::byte> png_bytes(int width, int height, std::span<const std::uint8_t> rgb) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::byte> bytes(PNG_IMAGE_PNG_SIZE_MAX(image));
  std::size_t size = bytes.size();
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, rgb.data(), 0, nullptr) == 0) {
    throw std::runtime_error(text("libpng: ", image.message));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace convladder::command
