#include "provenance/source_hash.hpp"

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace convladder {
namespace {

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// The length of the literal that begins with the quote at `begin`, both quotes included.
std::size_t quoted_length(std::string_view source, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < source.size() && source[end] != source[begin]) end += source[end] == '\\' ? 2 : 1;
  return std::min(end + 1, source.size()) - begin;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// How programs call a rung: no part of its kernels.
constexpr std::string_view kInterface = "core/implementation.hpp";

/// Adds the file and what it includes to `hash`, each file once.
void add_file(const std::filesystem::path& root, const std::string& source,
              std::set<std::string>& seen, std::uint64_t& hash) {
  if (!seen.insert(source).second) return;
  const std::string code = without_comments(read(root / source));
  for (const char letter : source + "\n" + code) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  constexpr std::string_view kInclude = "#include\"";
  for (std::size_t at = code.find(kInclude); at != std::string::npos;
       at = code.find(kInclude, at + 1)) {
    const std::size_t begin = at + kInclude.size();
    const std::string name = code.substr(begin, code.find('"', begin) - begin);
    // As the compiler looks: beside the file first, then from the root.
    const std::string beside =
        (std::filesystem::path(source).parent_path() / name).lexically_normal().generic_string();
    const std::string included = std::filesystem::exists(root / beside) ? beside : name;
    if (included == kInterface) continue;
    add_file(root, included, seen, hash);
    // A header's kernels stand in the .cu file of its name.
    const std::string kernels =
        std::filesystem::path(included).replace_extension(".cu").generic_string();
    if (std::filesystem::exists(root / kernels)) add_file(root, kernels, seen, hash);
  }
}

}  // namespace

std::string without_comments(std::string_view source) {
  std::string result;
  bool space = false;    // white space or a comment since the last character
  bool newline = false;  // among it a line break, which ends a directive
  std::size_t line = 0;  // where the result's last line begins
  const auto add = [&](std::string_view piece) {
    if (newline) {
      // Only a directive's line break means something: before it and behind it.
      if (!result.empty() && (result[line] == '#' || piece[0] == '#')) {
        result += '\n';
        line = result.size();
        space = false;
      }
    }
    if (space && !result.empty() && is_word(result.back()) && is_word(piece[0])) result += ' ';
    result += piece;
    space = newline = false;
  };
  for (std::size_t i = 0; i < source.size();) {
    if (source.substr(i, 2) == "//") {
      i = std::min(source.find('\n', i), source.size());
      space = true;
    } else if (source.substr(i, 2) == "/*") {
      i = std::min(source.find("*/", i + 2), source.size() - 2) + 2;
      space = true;
    } else if (source.substr(i, 2) == "\\\n") {
      i += 2;  // a directive goes on
      space = true;
    } else if (std::isspace(static_cast<unsigned char>(source[i])) != 0) {
      newline = newline || source[i] == '\n';
      space = true;
      ++i;
    } else if (source[i] == '"' || (source[i] == '\'' && (i == 0 || !is_word(source[i - 1])))) {
      const std::size_t length = quoted_length(source, i);
      add(source.substr(i, length));
      i += length;
    } else {
      add(source.substr(i, 1));
      ++i;
    }
  }
  return result;
}

std::string source_hash(const std::filesystem::path& root, const std::string& source) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::set<std::string> seen;
  add_file(root, source, seen, hash);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace convladder
