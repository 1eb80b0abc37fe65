/// @file drawn_ladder.hpp
/// @brief What `fuzz` needs from a ladder: each drawn_*.cpp file in this folder adds rows. The rows
/// are separate from LadderCommand because a comparison does not use them.
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
  /// The numeric options and the options that depend on them. @param work approximate upper bound
  std::function<DrawnProblem(Drawer&, double work)> draw;
  /// Multiply-adds and elements: the approximate work of the definition.
  std::function<double(const Problem&)> work;
  std::vector<WordOption> words = {};  ///< The other options of its problems.
  bool takes_reals = true;             ///< The inputs may be other than integers.
  bool refuses_bad_sites = false;      ///< The rungs detect invalid sites.
};

/// The ladder's row. @throws std::logic_error if there is none
const DrawnLadder& drawn_ladder(const std::string& ladder);

/// DrawnLadder::work from a function for the ladder's own problem type.
template <class P>
std::function<double(const Problem&)> work_in(double (*work)(const P&)) {
  return [work](const Problem& problem) { return work(std::get<P>(problem)); };
}

/// `--layout`.
inline const WordOption kLayoutWords = {"layout", {"nchw", "nhwc"}};

/// `--dtype`.
inline const WordOption kDtypeWords = {"dtype", {"fp32", "tf32", "fp16", "bf16"}};

/// `--dtype` of `gemm`.
inline const WordOption kProductDtypeWords = {"dtype", {"fp32", "tf32", "fp16", "bf16", "fp8"}};

/// `--activation`.
inline const WordOption kActivationWords = {"activation", {"none", "relu"}};

/// `--bias`, which takes an optional value.
inline const WordOption kBiasWords = {"bias", {"no", ""}};

/// `--transpose`; the default "no" is not passed on.
inline const WordOption kTransposeWords = {"transpose", {"no", "a", "b", "ab"}};

/// `--map`.
inline const WordOption kMapWords = {
    "map", {"row_major", "identity2", "identity8", "horizontal", "grouped", "hilbert"}};

}  // namespace convladder::command
