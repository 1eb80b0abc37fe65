/// @file photograph_file.hpp
/// @brief A photograph from a file, whatever its format.
#pragma once

#include <filesystem>
#include <string>

#include "command/png_file.hpp"

namespace convladder::command {

/// Reads a PNG; a build with TurboJPEG reads JPEG and BMP, too. What the file is, its first bytes
/// say, not its name. Grey JPEGs have one channel.
/// @param parameter what the picture is for, for messages
/// @throws BadInput that names the file
Samples read_photograph(const std::string& parameter, const std::filesystem::path& path);

}  // namespace convladder::command
