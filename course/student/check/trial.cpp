#include "check/trial.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>

#include "core/error.hpp"

namespace convladder::check {
namespace {

std::int64_t whole(const std::string& option, const std::string& word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  require(error == std::errc() && end == word.data() + word.size(), option, word,
          "must be a whole number");
  return value;
}

/// Options and their values; each is taken once.
class Options {
 public:
  explicit Options(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      require(words[i].starts_with("--"), "option", words[i], "must begin with --");
      const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
      values_[words[i].substr(2)] = has_value ? words[i + 1] : "";
      if (has_value) ++i;
    }
  }

  std::optional<std::string> take(const std::string& option) {
    const auto found = values_.find(option);
    if (found == values_.end()) return {};
    std::string value = found->second;
    values_.erase(found);
    return value;
  }

  /// Numbers with commas between them; empty: the option is not there.
  std::vector<int> take_numbers(const std::string& option) {
    std::vector<int> numbers;
    const auto given = take(option);
    if (!given) return numbers;
    std::istringstream parts(*given);
    for (std::string part; std::getline(parts, part, ',');) {
      const std::int64_t number = whole(option, part);
      require(
          number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max(),
          option, part, "must fit in 32 bits");
      numbers.push_back(static_cast<int>(number));
    }
    require(!numbers.empty(), option, *given, "must be a number");
    return numbers;
  }

  int take_number(const std::string& option, int otherwise) {
    const std::vector<int> numbers = take_numbers(option);
    require(numbers.size() <= 1, option, joined(numbers, ","), "must be one number");
    return numbers.empty() ? otherwise : numbers.front();
  }

  /// One number an axis; one alone is for all axes.
  std::vector<int> take_for_each(const std::string& option, std::size_t axes, int otherwise) {
    std::vector<int> numbers = take_numbers(option);
    if (numbers.empty()) numbers = {otherwise};
    if (numbers.size() == 1) numbers.assign(axes, numbers.front());
    require(numbers.size() == axes, option, joined(numbers, ","),
            text("must be one number, or ", axes));
    return numbers;
  }

  void require_none_left() const {
    require(values_.empty(), "option", values_.empty() ? "" : "--" + values_.begin()->first,
            "means nothing here");
  }

 private:
  std::map<std::string, std::string> values_;
};

Problem read_conv2d(Options& options) {
  Conv2dProblem conv;
  conv.N = options.take_number("n", 1);
  conv.C = options.take_number("c", 3);
  conv.H = options.take_number("h", 16);
  conv.W = options.take_number("w", 40);
  conv.K = options.take_number("k", 4);
  conv.R = options.take_number("r", 3);
  conv.S = options.take_number("s", 3);
  const std::vector<int> pad = options.take_numbers("pad");
  require(pad.size() <= 2 || pad.size() == 4, "pad", joined(pad, ","),
          "must be P, or PH,PW, or top,bottom,left,right");
  if (pad.size() == 4) conv.pad = {pad[0], pad[1], pad[2], pad[3]};
  if (pad.size() == 1 || pad.size() == 2)
    conv.pad = {pad.front(), pad.front(), pad.back(), pad.back()};
  const std::vector<int> stride = options.take_for_each("stride", 2, 1);
  const std::vector<int> dilation = options.take_for_each("dilation", 2, 1);
  conv.stride = {stride[0], stride[1]};
  conv.dilation = {dilation[0], dilation[1]};
  conv.groups = options.take_number("groups", 1);
  conv.bias = options.take("bias").has_value();
  const std::string activation = options.take("activation").value_or("none");
  require(activation == "none" || activation == "relu", "activation", activation,
          "must be none or relu");
  if (activation == "relu") conv.activation = Activation::relu;
  return validated(conv);
}

Problem read_columns(Options& options) {
  Im2colProblem problem;
  problem.N = options.take_number("n", 1);
  problem.C = options.take_number("c", 3);
  std::vector<int> sizes = options.take_numbers("size");
  if (sizes.empty()) sizes = {12, 20};
  require(sizes.size() <= 3, "size", joined(sizes, ","), "must be W, H,W or D,H,W");
  const std::size_t rank = sizes.size();
  problem.rank = static_cast<int>(rank);
  const std::vector<int> kernel = options.take_for_each("kernel", rank, 3);
  const std::vector<int> stride = options.take_for_each("stride", rank, 1);
  const std::vector<int> dilation = options.take_for_each("dilation", rank, 1);
  std::vector<int> pad = options.take_numbers("pad");  // one an axis, or before and after each
  if (pad.empty()) pad = {0};
  if (pad.size() == 1) pad.assign(rank, pad.front());
  require(pad.size() == rank || pad.size() == 2 * rank, "pad", joined(pad, ","),
          text("must be 1, ", rank, " or ", 2 * rank, " numbers"));
  const std::array<WindowAxis*, 3> axes = {&problem.depth, &problem.height, &problem.width};
  for (std::size_t i = 0; i < rank; ++i) {
    const bool both_ends = pad.size() == 2 * rank;
    *axes[3 - rank + i] = {.size = sizes[i],
                           .kernel = kernel[i],
                           .pad_before = both_ends ? pad[2 * i] : pad[i],
                           .pad_after = both_ends ? pad[2 * i + 1] : pad[i],
                           .stride = stride[i],
                           .dilation = dilation[i]};
  }
  const std::string request = options.take("request").value_or("write");
  require(request == "write" || request == "add" || request == "none", "request", request,
          "must be write, add or none");
  problem.request = request == "add"    ? Request::add
                    : request == "none" ? Request::none
                                        : Request::write;
  return validated(problem);
}

}  // namespace

std::vector<std::string> split(const std::string& words) {
  std::istringstream in(words);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

Trial read_trial(const std::string& ladder, const std::vector<std::string>& words) {
  Options options(words);
  const int offset = options.take_number("offset", 0);
  require(offset >= 0 && offset < 256 && offset % 4 == 0, "offset", offset,
          "must be a multiple of 4 bytes below 256");
  std::optional<std::int64_t> most_blocks;
  if (const auto given = options.take("most-blocks")) {
    most_blocks = whole("most-blocks", *given);
    require(*most_blocks >= 1, "most-blocks", *given, "must be at least 1");
  }
  Problem problem = ladder == "conv2d" ? read_conv2d(options) : read_columns(options);
  options.require_none_left();
  return {problem, static_cast<std::size_t>(offset), most_blocks};
}

}  // namespace convladder::check
