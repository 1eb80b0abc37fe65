/// @file trial.hpp
/// @brief A problem in words, as on the command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "oracle/runner.hpp"

namespace convladder::check {

/// An integer. @throws BadInput that names the option if the word is not an integer
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

/// A problem, where its arrays lie, and how kernels are started.
struct Trial {
  Problem problem;
  std::size_t offset = 0;  ///< --offset: bytes between a boundary of 256 and each array
  std::optional<std::int64_t> most_blocks = {};  ///< --most-blocks: of an axis that is strided
  Arrays given = {};                             ///< Inputs that the words tell: sites.
  /// --bad-sites: some rows of `coords` that must be refused.
  std::optional<RunOptions::Spoilt> spoilt = {};
};

/// The words between blanks.
std::vector<std::string> split(const std::string& words);

/// - conv2d and conv2d_wgrad: --n --c --h --w --k --r --s --pad --stride --dilation --groups --bias
///   --activation;
/// - im2col and col2im: --n --c --size --kernel --pad --stride --dilation --request;
/// - gemm: --m --n --k --map; tile_map: --map --tiles --batch --splits --blocks --group-rows;
/// - rulebook: --mode --form --shape --sites --places --order --batch --kernel --stride --pad
///   --dilation --out-padding, and --bad-sites repeated or outside;
/// - all: --offset and --most-blocks.
///
/// The values are those of the project's `./ladder compare`.
/// @throws BadInput for a word that means nothing, and for an invalid problem
Trial read_trial(const std::string& ladder, const std::vector<std::string>& words);

/// A number that follows from a problem alone, by name, for predictions; one of
/// - problem.p, problem.q: rows and columns of y (conv2d)
/// - problem.bytes_of_col: im2col's and col2im's matrices, of all images
/// - problem.taps_in_the_padding: elements of col that read no element of x
/// - problem.idle_blocks: of a map's grid of whole tiles, those without a tile
///
/// Empty for a name that does not begin with "problem.". @throws BadInput for another one that does
std::optional<double> number_of(const std::string& name, const Problem& problem);

}  // namespace convladder::check
