/// @file non_finite.hpp
/// @brief Where NaN and infinity in an input must arrive, and where else they may: docs/oracle.md
/// says what is promised.
///
/// The ideal: an output is not finite if a term of its definition is not, and is what the
/// definition says otherwise. Some rungs multiply zeros where the definition has no term, in the
/// padding or for a tap that a row has not, and zero times infinity is NaN. Which ones do so with
/// which input is recorded in tests/non_finite.json, so that no other begins to:
///
///     build/cpu/tests/suite --record-non-finite tests/non_finite.json
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "tests/check.hpp"

namespace convladder::testing {

/// By input, the kinds of what the definition does not have:
/// - "zeros": NaN in outputs that have a term with a zero in place of another input, in the padding
///   or where a tap meets nothing;
/// - "groups": NaN in outputs of other groups, whose window holds the number's place;
/// - "nan": NaN where infinity is right;
/// - "tiles": of rungs that do with fewer multiplications, NaN or infinity of either sign in all
///   outputs of a tile (of one that transforms whole images: of an image) whose window, or whose
///   filter, has the number.
using Excesses = std::map<std::string, std::set<std::string>>;

/// What a rung did with numbers that are not finite.
struct NonFiniteReport {
  Excesses excesses;                  ///< What is tolerated if it is recorded.
  std::vector<std::string> failures;  ///< What is never right: a number lost, or out of its reach.
  int runs = 0;
};

/// Runs the rung there on a few small problems, each time with a NaN, an infinity and a -0 in one
/// of its inputs.
NonFiniteReport check_non_finite(const Ladder& ladder, const Rung& rung, Where where);

/// The record: by rung.
using ExcessesByRung = std::map<std::string, Excesses>;

/// Of what such a file holds. @throws std::exception if it cannot be understood
ExcessesByRung parsed_excesses(const std::string& json);

/// Of the file tests/non_finite.json.
ExcessesByRung recorded_excesses();

/// The inverse: kind, input, rungs.
std::string excesses_text(const ExcessesByRung& excesses);

/// The same as rows of a table in C++, for the checker: see oracle/non_finite_record.inc.
std::string rows_text(const ExcessesByRung& excesses);

/// Each a sentence about what a rung does beyond its record, or, if the record is about this place,
/// does no more.
std::vector<std::string> excess_differences(const Excesses& recorded, const Excesses& found,
                                            bool is_recorded_place);

/// Checks all rungs in the places that the record is about, and writes it. @returns whether that
/// worked; if not, it is said on standard error.
bool record_non_finite(const std::filesystem::path& file);

}  // namespace convladder::testing
