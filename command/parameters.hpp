/// @file parameters.hpp
/// @brief The parameters of a problem as given on the command line, and functions that read them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/array.hpp"
#include "core/conv2d_problem.hpp"
#include "core/sparse_conv_problem.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::command {

/// An integer. @throws BadInput that names the parameter if the text is not an integer or exceeds
/// int64
std::int64_t parse_whole(const std::string& parameter, std::string_view text);

/// One of these words. @throws BadInput that names the parameter and the nearest word.
std::string parse_word(const std::string& parameter, const std::string& word,
                       const std::vector<std::string>& words);

/// "--pad 1,2" is the parameter "pad" with the value "1,2".
class Parameters {
 public:
  void set(const std::string& name, const std::string& value) { values_[name] = value; }
  bool given(const std::string& name) const { return values_.contains(name); }
  /// Whether a file was given for this array; a bare --bias requests made-up values.
  bool array_given(const std::string& name) const {
    return given(name) && !(name == "bias" && values_.at(name).empty());
  }
  /// The name of any parameter; empty if there are none.
  std::optional<std::string> first() const;

  /// Throws BadInput for the first parameter that is not one of `names`. @param who the command
  /// that accepts those names
  void require_only(const std::string& who, const std::vector<std::string>& names) const;

  /// The text; empty if not given.
  std::optional<std::string> word(const std::string& name) const;
  /// The text, which must be one of `words`; empty if not given.
  std::optional<std::string> word(const std::string& name,
                                  const std::vector<std::string>& words) const;
  /// The layout of the arrays from --layout; nchw if not given.
  Layout layout() const;
  /// Sets the element type and the precision of the products from --dtype.
  /// @param more further values that this ladder accepts
  template <class P>
  void set_dtype(P& problem, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"fp32", "tf32", "fp16", "bf16"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string name = word("dtype", words).value_or("fp32");
    if (name == "tf32") problem.precision = Precision::tf32;
    if (name == "fp16") problem.dtype = DType::f16;
    if (name == "bf16") problem.dtype = DType::bf16;
    if (name == "fp8") problem.dtype = DType::f8;
  }
  /// The tile map that --map names; empty if not given.
  std::optional<TileMap> map() const;
  /// An integer that fits int; empty if not given.
  std::optional<int> number(const std::string& name) const;
  /// Whether --pad is the word `same`. @throws BadInput if it is another word instead of numbers
  bool pads_same() const;
  /// Integers separated by commas; empty if not given.
  std::vector<int> numbers(const std::string& name) const;
  /// Integers for each of `rank` axes: a single number applies to all axes.
  /// @param fallback the value for every axis if the option is not given
  std::vector<int> for_each_axis(const std::string& name, std::size_t rank, int fallback) const;
  /// Finite numbers within the range of float32, separated by commas; empty if not given.
  std::vector<double> reals(const std::string& name) const;
  /// The array in the .npy file that the option names; empty if not given.
  /// @param axes the axes in one or several forms: "[n][c][h][w]"
  /// @param dtype type of the elements
  /// @throws BadInput if the file cannot be used, has another number of axes or another element
  /// type, or holds an infinity or a NaN, for which results cannot be compared
  std::optional<Array> array(const std::string& name, const std::vector<std::string>& axes,
                             DType dtype = DType::f32);

  /// The description of an array's source for messages: "x = x.npy, 2 x 3 x 5 x 5".
  std::string source(const std::string& name, const Shape& shape) const;

  /// Adds a note for the user.
  void note(const std::string& line) { notes_.push_back(line); }
  /// Conversions of the arrays and other notes, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> notes_;
};

/// Extents that options and arrays give together and that must be consistent.
class Extents {
 public:
  /// Sets an extent from an option such as --n, if it is given.
  void tell_option(const Parameters& parameters, const std::string& name);
  /// Sets an extent from an array. @throws BadInput that names both sources if they contradict
  void tell(const std::string& name, std::int64_t value, const std::string& source);
  bool told(const std::string& name) const { return values_.contains(name); }
  /// The extent, or the fallback if none was given.
  int value(const std::string& name, int fallback) const;

 private:
  struct Told {
    std::int64_t value;
    std::string source;
  };
  std::map<std::string, Told> values_;
};

}  // namespace convladder::command
