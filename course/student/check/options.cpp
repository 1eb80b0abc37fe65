#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "check/trial.hpp"
#include "core/error.hpp"

namespace convladder::check {

std::int64_t whole(const std::string& option, const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  require(error == std::errc() && end == word.data() + word.size(), option, word,
          "must be an integer");
  return value;
}

Options::Options(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    require(words[i].starts_with("--"), "option", words[i], "must begin with --");
    const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
    values_[words[i].substr(2)] = has_value ? words[i + 1] : "";
    if (has_value) ++i;
  }
}

std::optional<std::string> Options::take(const std::string& option) {
  const auto found = values_.find(option);
  if (found == values_.end()) return {};
  std::string value = found->second;
  values_.erase(found);
  return value;
}

std::size_t Options::take_one_of(const std::string& option, const std::vector<std::string>& words) {
  const std::string word = take(option).value_or(words.front());
  const auto found = std::find(words.begin(), words.end(), word);
  require(found != words.end(), option, word, text("must be one of ", joined(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
}

std::vector<int> Options::take_numbers(const std::string& option) {
  std::vector<int> numbers;
  const auto given = take(option);
  if (!given) return numbers;
  std::istringstream parts(*given);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::int64_t number = whole(option, part);
    require(number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max(),
            option, part, "must fit in 32 bits");
    numbers.push_back(static_cast<int>(number));
  }
  require(!numbers.empty(), option, *given, "must be a number");
  return numbers;
}

int Options::take_number(const std::string& option, int otherwise) {
  const std::vector<int> numbers = take_numbers(option);
  require(numbers.size() <= 1, option, joined(numbers, ","), "must be one number");
  return numbers.empty() ? otherwise : numbers.front();
}

std::vector<int> Options::take_for_each(const std::string& option, std::size_t axes,
                                        int otherwise) {
  std::vector<int> numbers = take_numbers(option);
  if (numbers.empty()) numbers = {otherwise};
  if (numbers.size() == 1) numbers.assign(axes, numbers.front());
  require(numbers.size() == axes, option, joined(numbers, ","),
          text("must be one number, or ", axes));
  return numbers;
}

void Options::require_none_left() const {
  require(values_.empty(), "option", values_.empty() ? "" : "--" + values_.begin()->first,
          "is not an option of this problem");
}

}  // namespace convladder::check
