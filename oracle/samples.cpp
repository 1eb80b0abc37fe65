#include "oracle/samples.hpp"

#include <stdexcept>

#include "core/parallel.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder {

std::vector<ExpectedElement> reference_at(const std::string& ladder, const Problem& problem,
                                          const Arrays& inputs, const std::string& name,
                                          std::span<const std::int64_t> places) {
  const oracle::Definition& definition = oracle::definition_of(ladder);
  if (!definition.element) throw std::logic_error("no sampled reference for " + ladder);
  const bool halves = dtype_of(problem) != DType::f32;
  const Arrays floats = halves ? oracle::in_float(inputs) : Arrays();
  const Arrays& given = halves ? floats : inputs;
  std::vector<ExpectedElement> elements(places.size());
  parallel_for(static_cast<std::int64_t>(places.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    elements[at] = definition.element(problem, given, name, places[at]);
  });
  return elements;
}

}  // namespace convladder
