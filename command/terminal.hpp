/// @file terminal.hpp
/// @brief What standard output and standard error are, and text for them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convladder::command {

/// True if standard error shows a person how far we are: a terminal that understands control
/// sequences.
bool can_show_progress();

/// What was printed, to standard output now. A reader that is gone, as `head` is, has what it
/// wants.
/// @throws BadInput if it cannot be written for another reason
void flush_output();

/// The number in COLUMNS, or else the columns of the terminal that standard output is; a very large
/// number where it is none.
std::size_t output_width();

/// True if the locale's characters are UTF-8.
bool speaks_utf8();

enum class Style { plain, bold, dim, good, bad, warning };

/// The text in colours, if standard output is a terminal and NO_COLOR is not set (no-color.org).
std::string styled(Style style, std::string_view text);

/// The text with '?' for control characters, which could move the cursor or fake a second line.
std::string printable(std::string_view text);

/// `text`, filled up with spaces to `width` characters: on its right, or on its left.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

}  // namespace convladder::command
