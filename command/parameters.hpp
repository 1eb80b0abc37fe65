/// @file parameters.hpp
/// @brief A problem's parameters as they were given on the command line, and reading them one by
/// one.
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

/// A whole number. @throws BadInput that names the parameter if the text is none or beyond int64.
std::int64_t parse_whole(const std::string& parameter, std::string_view text);

/// One of these words. @throws BadInput that names the parameter and the nearest word.
std::string parse_word(const std::string& parameter, const std::string& word,
                       const std::vector<std::string>& words);

/// "--pad 1,2" is the parameter "pad" with the value "1,2".
class Parameters {
 public:
  void set(const std::string& name, const std::string& value) { values_[name] = value; }
  bool given(const std::string& name) const { return values_.contains(name); }
  /// Whether a file was given for this array: a bare --bias asks for one that is made up.
  bool array_given(const std::string& name) const {
    return given(name) && !(name == "bias" && values_.at(name).empty());
  }
  /// The name of some parameter; empty if there are none.
  std::optional<std::string> first() const;

  /// Throws BadInput for the first parameter that is not one of `names`. @param who has those names
  void require_only(const std::string& who, const std::vector<std::string>& names) const;

  /// The text; empty if not given.
  std::optional<std::string> word(const std::string& name) const;
  /// The text, one of `words`; empty if not given.
  std::optional<std::string> word(const std::string& name,
                                  const std::vector<std::string>& words) const;
  /// How arrays lie in memory, by --layout; nchw if not given.
  Layout layout() const;
  /// Sets the type of the elements and the precision of the products, by --dtype.
  /// @param more words that its ladder knows, beside those of all
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
  /// A whole number that fits int; empty if not given.
  std::optional<int> number(const std::string& name) const;
  /// Whether --pad is the word same. @throws BadInput if it is another word in place of numbers
  bool pads_same() const;
  /// Whole numbers with commas between them; empty if not given.
  std::vector<int> numbers(const std::string& name) const;
  /// The same, one for each of `rank` axes: a single number counts for all.
  /// @param fallback for every axis, if not given
  std::vector<int> for_each_axis(const std::string& name, std::size_t rank, int fallback) const;
  /// Finite numbers with commas between them, within float32's range; empty if not given.
  std::vector<double> reals(const std::string& name) const;
  /// The array in the .npy file of that name; empty if not given.
  /// @param axes what its axes are, in one or several forms: "[n][c][h][w]"
  /// @param dtype of its elements
  /// @throws BadInput if the file is unusable, has another number of axes or other types of
  /// elements, or holds an infinity or a NaN, with which nothing can be compared
  std::optional<Array> array(const std::string& name, const std::vector<std::string>& axes,
                             DType dtype = DType::f32);

  /// Who says what an array's shape says, for messages: "x = x.npy, 2 x 3 x 5 x 5".
  std::string source(const std::string& name, const Shape& shape) const;

  /// Something to tell the user.
  void note(const std::string& line) { notes_.push_back(line); }
  /// What reading the arrays had to convert, and what else was noted, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> notes_;
};

/// Extents that options and arrays tell together, and that must not contradict each other.
class Extents {
 public:
  /// An option's word: --n. Does nothing if it is not given.
  void tell_option(const Parameters& parameters, const std::string& name);
  /// An array's word. @throws BadInput that names both if something else was told before.
  void tell(const std::string& name, std::int64_t value, const std::string& source);
  bool told(const std::string& name) const { return values_.contains(name); }
  /// What was told, or else the fallback.
  int value(const std::string& name, int fallback) const;

 private:
  struct Told {
    std::int64_t value;
    std::string source;
  };
  std::map<std::string, Told> values_;
};

}  // namespace convladder::command
