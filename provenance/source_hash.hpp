/// @file source_hash.hpp
/// @brief A fingerprint of a rung's code: its source and all of ours that it includes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace convladder {

/// The source without comments, and with the white space that separates nothing taken out, so that
/// neither prose nor a formatter changes the hash.
std::string without_comments(std::string_view source);

/// Sixteen hexadecimal digits (64-bit FNV-1a) over the file `source`, relative to `root`, and over
/// every file under `root` that it includes with quotes, directly or not, each without comments;
/// with a header also over the .cu file of its name, where its kernels are.
/// core/implementation.hpp, the interface between rungs and programs, does not count.
/// @throws std::runtime_error if the source, or one that it includes, cannot be read.
std::string source_hash(const std::filesystem::path& root, const std::string& source);

}  // namespace convladder
