/// @file photograph_file.hpp
/// @brief Reads a photograph from a file in any supported format.
#pragma once

#include <filesystem>
#include <string>

#include "command/png_file.hpp"

namespace convladder::command {

/// Reads a PNG; a build with TurboJPEG also reads JPEG and BMP. The format is determined by the
/// first bytes of the file, not by its name. Grey JPEGs have one channel.
/// @param parameter the option that names the picture, for messages
/// @throws BadInput that names the file
Samples read_photograph(const std::string& parameter, const std::filesystem::path& path);

}  // namespace convladder::command
