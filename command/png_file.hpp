/// @file png_file.hpp
/// @brief Reads PNG pictures with full validation, and writes plain ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace convladder::command {

/// The samples of a picture, row by row, the channels of a pixel adjacent.
struct Samples {
  int width = 0, height = 0;
  int channels = 0;  ///< 1 (grey) or 3 (red, green, blue)
  int depth = 8;     ///< bits per sample: 8 or 16
  std::vector<std::uint16_t> values;
};

/// Reads any PNG: palettes are converted to colours, 1 to 4 bits to 8 bits; transparency is
/// dropped, and no colour correction is applied.
/// @param parameter the option that names the picture, for messages
/// @throws BadInput that names the file if it is not a PNG, truncated, damaged, or larger than the
/// memory
Samples read_png(const std::string& parameter, const std::filesystem::path& path);

/// The same from memory. @param file its name, for messages
Samples parse_png(const std::string& parameter, const std::string& file,
                  std::span<const std::byte> bytes);

/// An 8-bit RGB picture as a PNG file. @param rgb 3 * width * height bytes
std::vector<std::byte> png_bytes(int width, int height, std::span<const std::uint8_t> rgb);

}  // namespace convladder::command
