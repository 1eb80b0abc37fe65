/// @file terminal.hpp
/// @brief Properties of standard output and standard error, and text for them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convladder::command {

/// True if standard error is a terminal that supports control sequences, so that progress can be
/// shown.
bool can_show_progress();

/// Flushes standard output. A closed pipe, as after `head`, is not an error.
/// @throws BadInput if it cannot be written for another reason
void flush_output();

/// The number in COLUMNS, otherwise the width of the terminal on standard output; a very large
/// number if it is not a terminal.
std::size_t output_width();

/// True if the locale's character encoding is UTF-8.
bool speaks_utf8();

enum class Style { plain, bold, dim, good, bad, warning };

/// The text in colours, if standard output is a terminal and NO_COLOR is not set (no-color.org).
std::string styled(Style style, std::string_view text);

/// The text with '?' for control characters, which could move the cursor or imitate a second line.
std::string printable(std::string_view text);

/// `text` padded with spaces to `width` characters, on the right or on the left.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

}  // namespace convladder::command
