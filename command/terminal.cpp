#include "command/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"

namespace convladder::command {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool is_terminal(int file) { return isatty(file) && environment("TERM") != "dumb"; }

bool colours() {
  static const bool wanted = is_terminal(STDOUT_FILENO) && environment("NO_COLOR").empty();
  return wanted;
}

const char* code_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::bold: return "\033[1m";
    case Style::dim: return "\033[2m";
    case Style::good: return "\033[32m";
    case Style::bad: return "\033[1;31m";
    case Style::warning: return "\033[33m";
  }
  return "";
}

}  // namespace

bool can_show_progress() {
  static const bool can = is_terminal(STDERR_FILENO);
  return can;
}

void flush_output() {
  if (std::fflush(stdout) != 0 && errno != EPIPE)
    throw BadInput("standard output cannot be written");
}

std::size_t output_width() {
  const std::string_view columns = environment("COLUMNS");
  std::size_t width = 0;
  const auto [end, failed] =
      std::from_chars(columns.data(), columns.data() + columns.size(), width);
  if (failed == std::errc() && end == columns.data() + columns.size() && width > 0) return width;
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return std::numeric_limits<std::size_t>::max();
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;  // the first that is set decides
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

std::string styled(Style style, std::string_view text) {
  if (!colours() || style == Style::plain || text.empty()) return std::string(text);
  return std::string(code_of(style)).append(text).append("\033[0m");
}

std::string printable(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return clean;
}

std::string left(std::string_view text, std::size_t width) {
  return std::string(text).append(width - std::min(width, text.size()), ' ');
}

std::string right(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ').append(text);
}

}  // namespace convladder::command
