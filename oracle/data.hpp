/// @file data.hpp
/// @brief Test data: seeded, asymmetric, and in exact mode small enough that every sum is exact.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/rung.hpp"

namespace convladder {

/// Arrays by name.
using Arrays = std::map<std::string, Array, std::less<>>;

/// How rungs are compared.
enum class Data {
  integer,  ///< exact mode: small integers, so that every rung must produce the reference's bits
  real,     ///< real mode: random floats, compared within a bound on rounding
  positive  ///< real mode without negative numbers, so that biased errors accumulate and become
            ///< visible
};

/// The name on the command line: "integer".
constexpr const char* name_of(Data data) {
  return data == Data::integer ? "integer" : data == Data::real ? "real" : "positive";
}

/// Values for all inputs of a problem except those `given`, which are taken over. Integers are
/// drawn from [-a, a] with a at most 8 and chosen so that `longest_sum` products of two of them
/// stay below 2^24, where float is exact (below 65504 if an output is float16); real numbers from
/// [-1, 1), positive ones from [0, 1), rounded to the array's type. The same seed gives the same
/// data on every machine.
/// @throws BadInput if no a >= 1 keeps the sums exact.
Arrays make_inputs(const Signature& signature, Data data, std::uint64_t seed,
                   std::int64_t longest_sum, Arrays given = {});

}  // namespace convladder
