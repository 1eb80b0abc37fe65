/// @file photograph.hpp
/// @brief A photograph as three planes of floats from 0 to 255, from and to a PNG file.
#pragma once

#include <png.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

/// Red, green and blue, each [height][width].
struct Photograph {
  int height = 0, width = 0;
  std::vector<float> planes;
};

inline Photograph read_png(const std::string& file) {
  png_image image{.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_file(&image, file.c_str()))
    throw std::runtime_error(file + ": " + image.message);
  image.format = PNG_FORMAT_RGB;
  std::vector<unsigned char> pixels(PNG_IMAGE_SIZE(image));
  if (!png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr))
    throw std::runtime_error(file + ": " + image.message);
  Photograph photograph{static_cast<int>(image.height), static_cast<int>(image.width), {}};
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t i = channel; i < pixels.size(); i += 3) photograph.planes.push_back(pixels[i]);
  return photograph;
}

inline void write_png(const std::string& file, const Photograph& photograph) {
  const std::size_t size = photograph.planes.size() / 3;
  std::vector<unsigned char> pixels(3 * size);
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t i = 0; i < size; ++i)
      pixels[3 * i + channel] = static_cast<unsigned char>(
          std::clamp(std::round(photograph.planes[channel * size + i]), 0.0f, 255.0f));
  png_image image{.version = PNG_IMAGE_VERSION,
                  .width = static_cast<png_uint_32>(photograph.width),
                  .height = static_cast<png_uint_32>(photograph.height),
                  .format = PNG_FORMAT_RGB};
  if (!png_image_write_to_file(&image, file.c_str(), 0, pixels.data(), 0, nullptr))
    throw std::runtime_error(file + ": " + image.message);
}
