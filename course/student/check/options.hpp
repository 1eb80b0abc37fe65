/// @file options.hpp
/// @brief The words of a problem: options and their values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace convladder::check {

/// A whole number. @throws BadInput that names the option if the word is none
std::int64_t whole(const std::string& option, const std::string& word);

/// Options and their values; each is taken once.
class Options {
 public:
  explicit Options(const std::vector<std::string>& words);

  /// The text behind it; empty: the option is not there.
  std::optional<std::string> take(const std::string& option);
  /// One of these words; the first if the option is not there.
  template <class Words>
  std::size_t take_word(const std::string& option, const Words& words) {
    const std::vector<std::string> known(words.begin(), words.end());
    return take_one_of(option, known);
  }
  /// Numbers with commas between them; empty: the option is not there.
  std::vector<int> take_numbers(const std::string& option);
  int take_number(const std::string& option, int otherwise);
  /// One number an axis; one alone is for all axes.
  std::vector<int> take_for_each(const std::string& option, std::size_t axes, int otherwise);
  /// @throws BadInput if an option is left, which then means nothing
  void require_none_left() const;

 private:
  std::size_t take_one_of(const std::string& option, const std::vector<std::string>& words);

  std::map<std::string, std::string> values_;
};

}  // namespace convladder::check
