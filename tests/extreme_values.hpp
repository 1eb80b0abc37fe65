/// @file extreme_values.hpp
/// @brief Numbers of unusual sizes, as users' arrays have them: close to 0 or to the largest one,
/// all alike, one far larger than the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder::testing {

/// A kind of arrays.
enum class Extreme {
  exponents,  ///< Exponents from those of the smallest numbers up to 2^30.
  alike,      ///< All of them 0.1, or a part of it.
  spike,      ///< One is 1e12 times as large as the others.
  no_data,    ///< Some are -3.4028235e38, the others below 1; the other inputs are small.
  products,   ///< One input is about 1e-21, the others 1e-20: products lose bits, and they do not.
  subnormal,  ///< One input is about 1e-41.
  near_normal,  ///< One input is about 1e-38.
  large         ///< One input is 1e38, the others 1e-3.
};

/// All of them.
inline constexpr Extreme kExtremes[] = {Extreme::exponents,   Extreme::alike,    Extreme::spike,
                                        Extreme::no_data,     Extreme::products, Extreme::subnormal,
                                        Extreme::near_normal, Extreme::large};

/// For messages.
const char* name_of(Extreme extreme);

/// Arrays for the inputs of floats, rounded to their types; the others as `given`.
/// @param which input is the unusual one @returns empty if a type has no such numbers
Arrays extreme_arrays(const Signature& signature, Extreme extreme, std::size_t which,
                      std::uint64_t seed, const Arrays& given);

/// What a rung did with them.
struct ExtremeReport {
  std::vector<std::string> failures;  ///< Each a wrong result.
  int runs = 0;                       ///< Of the rung.
  int declined = 0;                   ///< As the numbers overflow its transform.
};

/// Runs the rung there on a few small problems, whose arrays are of one kind after another. The
/// results must be right as a user's would have to be.
ExtremeReport check_extreme_values(const Ladder& ladder, const Rung& rung, Where where);

}  // namespace convladder::testing
