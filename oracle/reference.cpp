#include "oracle/reference.hpp"

#include "oracle/ladders/definition.hpp"

namespace convladder {

std::int64_t longest_sum(const std::string& ladder, const Problem& problem) {
  return oracle::definition_of(ladder).longest_sum(problem);
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
