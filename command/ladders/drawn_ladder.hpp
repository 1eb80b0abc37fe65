/// @file drawn_ladder.hpp
/// @brief What `fuzz` asks of a ladder: each drawn_*.cpp beside this file fills rows. They are
/// apart from LadderCommand, for a comparison needs none of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command/drawer.hpp"
#include "core/problem.hpp"

namespace convladder::command {

/// An option whose values are words; the first is the default.
struct WordOption {
  const char* name;
  std::vector<const char*> words;
};

/// A ladder's random problems.
struct DrawnLadder {
  /// The options that are numbers, and what depends on them. @param work at most, roughly
  std::function<DrawnProblem(Drawer&, double work)> draw;
  /// Multiply-adds, and elements: how long the definition takes, roughly.
  std::function<double(const Problem&)> work;
  std::vector<WordOption> words = {};  ///< What else its problems have.
  bool takes_reals = true;             ///< Its inputs can be other than whole numbers.
  bool refuses_bad_sites = false;      ///< Its rungs say so of sites that are unusable.
};

/// The ladder's row. @throws std::logic_error if there is none
const DrawnLadder& drawn_ladder(const std::string& ladder);

/// DrawnLadder::work of a function for the ladder's own problem type.
template <class P>
std::function<double(const Problem&)> work_in(double (*work)(const P&)) {
  return [work](const Problem& problem) { return work(std::get<P>(problem)); };
}

/// `--layout`.
inline const WordOption kLayoutWords = {"layout", {"nchw", "nhwc"}};

/// `--dtype`.
inline const WordOption kDtypeWords = {"dtype", {"fp32", "tf32", "fp16", "bf16"}};

/// The same of `gemm`.
inline const WordOption kProductDtypeWords = {"dtype", {"fp32", "tf32", "fp16", "bf16", "fp8"}};

/// `--activation`.
inline const WordOption kActivationWords = {"activation", {"none", "relu"}};

/// `--bias`, which needs no value.
inline const WordOption kBiasWords = {"bias", {"no", ""}};

/// `--transpose`; "no", the default, is not passed on.
inline const WordOption kTransposeWords = {"transpose", {"no", "a", "b", "ab"}};

/// `--map`.
inline const WordOption kMapWords = {
    "map", {"row_major", "identity2", "identity8", "horizontal", "grouped", "hilbert"}};

}  // namespace convladder::command
