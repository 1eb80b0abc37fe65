/// @file golden.hpp
/// @brief Expected results in files, for assignments in which the definition would be the solution.
///
/// expected/answers.txt has those of the public cases, on integers. For each case: a line with its
/// name and its ladder; a line with the problem in words; a line with the longest sum, the sum
/// of the inputs' bytes, the output's name and its size; then its elements.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "oracle/reference.hpp"

namespace convladder::check {

/// The answer of one case. (Each of these ladders has one output.)
struct Golden {
  std::string name, ladder;
  std::string problem;           ///< As describe() words it.
  std::int64_t longest_sum = 1;  ///< As longest_sum() tells it.
  std::uint64_t inputs = 0;      ///< sum_of_bytes()
  std::string output;
  std::vector<double> values;
};

/// A number that tells inputs apart (FNV-1a, 64 bits).
std::uint64_t sum_of_bytes(const Arrays& inputs);

void write_golden(const Golden& golden, std::ostream& out);
std::vector<Golden> read_golden(std::istream& in);  ///< @throws BadInput if it breaks off

}  // namespace convladder::check
