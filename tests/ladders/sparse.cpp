/// @file sparse.cpp
/// @brief The sparse ladders: one list of sites serves all of them.
#include <string>

#include "tests/ladders/ladder_tests.hpp"
#include "tests/sparse_identities.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {

LadderTests sparse_tests(const std::string& ladder) {
  return {
      [=] { return sparse_problems(ladder); },
      [=](int count, std::uint64_t seed) { return random_sparse_problems(ladder, count, seed); },
      [=] { return sparse_rounding_problems(ladder); }, check_sparse_identities};
}

}  // namespace convladder::testing
