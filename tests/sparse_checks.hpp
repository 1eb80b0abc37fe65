/// @file sparse_checks.hpp
/// @brief What tests of rulebooks share.
#pragma once

#include <vector>

#include "oracle/rulebook.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {

/// The reference's rulebook of the sites.
inline Rulebook rulebook_of(const SparseCase& sites) {
  return make_rulebook(sites.book, sites.coords);
}

/// The elements of an array of int32.
inline std::vector<std::int32_t> numbers(const Array& array) {
  const auto span = array.as<std::int32_t>();
  return {span.begin(), span.end()};
}

/// A submanifold rulebook without sites yet.
inline RulebookProblem subm(int ndim, PerAxis shape, PerAxis kernel = every_axis(3),
                            int dilation = 1) {
  return {.mode = SparseMode::subm,
          .ndim = ndim,
          .shape = shape,
          .kernel = kernel,
          .dilation = every_axis(dilation)};
}

}  // namespace convladder::testing
