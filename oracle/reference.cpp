#include "oracle/reference.hpp"

#include <algorithm>
#include <stdexcept>

#include "oracle/ladders/definition.hpp"

namespace convladder {

std::int64_t longest_sum(const std::string& ladder, const Problem& problem) {
  return oracle::definition_of(ladder).longest_sum(problem);
}

std::int64_t headroom(const std::string& ladder, const Problem& problem) {
  const auto& of_ladder = oracle::definition_of(ladder).headroom;
  return of_ladder ? of_ladder(problem) : 1;
}

std::int64_t exact_sum(const std::string& ladder, const Problem& problem) {
  constexpr std::int64_t kOnesAlone = (std::int64_t{1} << 24) - 3;  // float counts to 2^24
  const std::int64_t longest = longest_sum(ladder, problem), room = headroom(ladder, problem);
  if (room == 1 || longest <= kOnesAlone / room) return longest * room;
  return std::max(longest, kOnesAlone);
}

Expected expected_of_winograd(const std::string& ladder, const Expected& expected,
                              const Problem& problem, const Arrays& inputs, int m) {
  const auto& of_ladder = oracle::definition_of(ladder).winograd;
  if (!of_ladder) throw std::logic_error(ladder + " has no bound for Winograd's rungs");
  return of_ladder(expected, problem, inputs, m);
}

std::vector<Expected> reference(const std::string& ladder, const Problem& problem,
                                const Arrays& inputs) {
  std::vector<Expected> expected = oracle::definition_of(ladder).outputs(problem, inputs);
  for (Expected& output : expected) {
    output.precision = precision_of(problem);
    output.factors = dtype_of(problem);
  }
  return expected;
}

}  // namespace convladder
