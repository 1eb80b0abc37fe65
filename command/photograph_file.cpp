#include "command/photograph_file.hpp"

#ifdef CONVLADDER_HAVE_TURBOJPEG
#include <turbojpeg.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>

#include "command/files.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() &&
         std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

#ifdef CONVLADDER_HAVE_TURBOJPEG
struct Destroy {
  void operator()(void* decoder) const { tjDestroy(decoder); }
  void operator()(unsigned char* pixels) const { tjFree(pixels); }
};

[[noreturn]] void refuse(const std::string& parameter, const std::string& file, const char* format,
                         void* decoder) {
  throw BadInput(text(parameter, " = ", file, ": is not a valid ", format,
                      " picture: ", tjGetErrorStr2(decoder)));
}

Samples parse_jpeg(const std::string& parameter, const std::string& file,
                   std::span<const std::byte> bytes) {
  const std::unique_ptr<void, Destroy> decoder(tjInitDecompress());
  if (!decoder) throw std::bad_alloc();
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling,
                          &colours) != 0) {
    refuse(parameter, file, "JPEG", decoder.get());
  }
  Samples samples{width, height, colours == TJCS_GRAY ? 1 : 3, 8, {}};
  const double numbers = static_cast<double>(width) * height * samples.channels;
  require_available(3 * numbers, text(parameter, " = ", file));
  std::vector<unsigned char> pixels(static_cast<std::size_t>(numbers));
  if (tjDecompress2(decoder.get(), data, bytes.size(), pixels.data(), width, 0, height,
                    samples.channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
    refuse(parameter, file, "JPEG", decoder.get());
  }
  samples.values.assign(pixels.begin(), pixels.end());
  return samples;
}

Samples read_bmp(const std::string& parameter, const std::string& file) {
  int width = 0, height = 0, format = TJPF_RGB;
  const std::unique_ptr<unsigned char, Destroy> pixels(
      tjLoadImage(file.c_str(), &width, 1, &height, &format, 0));
  if (!pixels) refuse(parameter, file, "BMP", nullptr);
  Samples samples{width, height, 3, 8, {}};
  const std::size_t numbers =
      static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3;
  samples.values.assign(pixels.get(), pixels.get() + numbers);
  return samples;
}
#endif

}  // namespace

Samples read_photograph(const std::string& parameter, const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(parameter, path);
  const std::string file = path.string();
  const bool jpeg = begins_with(bytes, "\xff\xd8\xff"), bmp = begins_with(bytes, "BM");
#ifdef CONVLADDER_HAVE_TURBOJPEG
  if (jpeg) return parse_jpeg(parameter, file, bytes);
  if (bmp) return read_bmp(parameter, file);
#endif
  require(!jpeg && !bmp, parameter, file,
          text("is a ", jpeg ? "JPEG" : "BMP",
               ", which is supported only in a build with TurboJPEG (package libturbojpeg0-dev); "
               "this build reads PNG"));
  return parse_png(parameter, file, bytes);
}

}  // namespace convladder::command
