#include "command/parameters.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "command/npy.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

int to_int(const std::string& parameter, std::int64_t value) {
  require(value <= kMaxInt, parameter, value, "must be less than 2^31");
  require(value >= -kMaxInt, parameter, value, "must be more than -2^31");
  return static_cast<int>(value);
}

/// The number of axes in "[n][c][h][w]".
std::size_t axes_in(const std::string& axes) {
  return static_cast<std::size_t>(std::count(axes.begin(), axes.end(), '['));
}

}  // namespace

std::int64_t parse_whole(const std::string& parameter, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && !text.empty();
  require(error != std::errc::result_out_of_range || !whole, parameter, text, "is too large");
  require(error == std::errc() && whole, parameter, text, "is not an integer");
  return value;
}

std::string parse_word(const std::string& parameter, const std::string& word,
                       const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  throw BadInput(text(parameter, " = ", word, ": must be one of ", joined(words, ", "),
                      "\nnearest: ", nearest(word, words)));
}

std::optional<std::string> Parameters::first() const {
  if (values_.empty()) return {};
  return values_.begin()->first;
}

void Parameters::require_only(const std::string& who, const std::vector<std::string>& names) const {
  for (const auto& [name, value] : values_) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw BadInput(text(name, " = ", value, ": ", who,
                        " does not have this parameter; its parameters are ", joined(names, ", "),
                        "\nnearest: --", nearest(name, names)));
  }
}

std::optional<std::string> Parameters::word(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return {};
  return found->second;
}

std::optional<std::string> Parameters::word(const std::string& name,
                                            const std::vector<std::string>& words) const {
  const auto found = word(name);
  if (found) parse_word(name, *found, words);
  return found;
}

Layout Parameters::layout() const {
  return word("layout", {"nchw", "nhwc"}) == "nhwc" ? Layout::nhwc : Layout::nchw;
}

std::optional<TileMap> Parameters::map() const {
  std::vector<std::string> names;
  for (const TileMapName& known : kTileMaps) names.emplace_back(known.name);
  const auto name = word("map", names);
  if (!name) return {};
  return std::find_if(kTileMaps.begin(), kTileMaps.end(),
                      [&](const TileMapName& known) { return known.name == *name; })
      ->map;
}

std::optional<int> Parameters::number(const std::string& name) const {
  const auto found = word(name);
  if (!found) return {};
  return to_int(name, parse_whole(name, *found));
}

std::vector<int> Parameters::numbers(const std::string& name) const {
  std::vector<int> numbers;
  const auto found = word(name);
  if (!found) return numbers;
  for (std::string_view rest = *found;;) {
    const std::size_t comma = rest.find(',');
    try {
      numbers.push_back(to_int(name, parse_whole(name, rest.substr(0, comma))));
    } catch (const BadInput& error) {
      if (comma == std::string_view::npos && numbers.empty()) throw;
      throw BadInput(text(error.what(), " (in ", *found, ")"));
    }
    if (comma == std::string_view::npos) return numbers;
    rest.remove_prefix(comma + 1);
  }
}

bool Parameters::pads_same() const {
  const std::string pad = word("pad").value_or("");
  if (pad == "same") return true;
  require(std::ranges::none_of(pad, [](unsigned char c) { return std::isalpha(c) != 0; }), "pad",
          pad, "must be numbers, or the word same");
  return false;
}

std::vector<int> Parameters::for_each_axis(const std::string& name, std::size_t rank,
                                           int fallback) const {
  std::vector<int> values = numbers(name);
  if (values.empty()) values = {fallback};
  if (values.size() == 1) values.assign(rank, values.front());
  require(values.size() == rank, name, joined(values, ","),
          text("must be one number, or one per axis of this ", rank, "-D problem"));
  return values;
}

std::vector<double> Parameters::reals(const std::string& name) const {
  std::vector<double> values;
  const auto found = word(name);
  if (!found) return values;
  for (std::string_view rest = *found;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const char* const last = part.data() + part.size();
    float in_float = 0;
    const auto [end, error] = std::from_chars(part.data(), last, in_float);
    const bool number = end == last && !part.empty();
    require(error != std::errc::result_out_of_range || !number, name, *found,
            text(part, " does not fit float32"));
    require(error == std::errc() && number && std::isfinite(in_float), name, *found,
            text("'", part, "' is not a finite number"));
    std::from_chars(part.data(), last, values.emplace_back());
    if (part.size() == rest.size()) return values;
    rest.remove_prefix(part.size() + 1);
  }
}

std::optional<Array> Parameters::array(const std::string& name,
                                       const std::vector<std::string>& axes, DType dtype) {
  const auto path = word(name);
  if (!path) return {};
  NpyFile file = read_npy(name, *path);
  Array& array = file.array;
  const std::string stored = file.converted.empty()
                                 ? name_of(array.dtype())
                                 : file.converted.substr(0, file.converted.find(' '));
  require(array.dtype() == dtype, name, *path,
          text("holds ", stored, "; ", name, " must be ", name_of(dtype)));
  if (!file.converted.empty()) note(text(name, " = ", *path, ": ", file.converted));
  const std::size_t rank = array.shape().size();
  const bool fits = std::any_of(axes.begin(), axes.end(),
                                [&](const std::string& form) { return axes_in(form) == rank; });
  require(fits, name, *path,
          text("has ", rank, rank == 1 ? " axis (" : " axes (", to_string(array.shape()), "); ",
               name, " is ", joined(axes, " or ")));
  for (const std::int64_t extent : array.shape()) {
    require(extent <= kMaxInt, name, *path, text("the extent ", extent, " must be less than 2^31"));
  }
  return std::move(array);
}

std::string Parameters::source(const std::string& name, const Shape& shape) const {
  return text(name, " = ", word(name).value_or(""), ", ", to_string(shape));
}

void Extents::tell_option(const Parameters& parameters, const std::string& name) {
  if (const auto value = parameters.number(name)) tell(name, *value, "--" + name);
}

void Extents::tell(const std::string& name, std::int64_t value, const std::string& source) {
  const auto [entry, added] = values_.emplace(name, Told{value, source});
  const Told& before = entry->second;
  if (added || before.value == value) return;
  throw BadInput(text(name, " = ", value, " (", source, "): contradicts ", name, " = ",
                      before.value, " (", before.source, ")"));
}

int Extents::value(const std::string& name, int fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : to_int(name, found->second.value);
}

}  // namespace convladder::command
