/// @file taken.hpp
/// @brief Which problems of the fixed lists each rung takes, as which form, and what it chooses,
/// compared with the record in tests/taken_problems.json.
///
/// A rung may decline what it cannot do, so declining is no failure: but to decline what it did
/// before is one, until somebody says that it is meant, by recording it. So it is with choices: all
/// of them give the right numbers, and a plan that has got worse unmeant would show nowhere else.
///
///     build/cpu/tests/suite --record-taken tests/taken_problems.json
///
/// The record is about the CPU and cuda_on_cpu, whose model of a device is always the same. On a
/// GPU a rung may decline more, for its device has less shared memory or no tensor cores: there,
/// tests/verified_on_gpu.json counts the problems.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "tests/check.hpp"

namespace convladder::testing {

/// By form ("nchw fp32"), the problems' names that the rung takes in that form. Forms in which it
/// takes none are not there.
using TakenByForm = std::map<std::string, std::vector<std::string>>;

/// What taken_of() says, form by form.
TakenByForm taken_by_form(const std::vector<FixedProblem>& fixed);

/// The record of all rungs, by name. It names the problems that a rung takes, or those that it does
/// not: whichever are fewer.
/// @throws std::exception if the file is not there or cannot be understood.
class TakenRecord {
 public:
  /// Reads it.
  explicit TakenRecord(const std::filesystem::path& file);
  /// From what such a file holds, for tests.
  static TakenRecord parsed(const std::string& json);

  /// Each a sentence about a problem that the rung does not take as it is recorded, with what to
  /// do: it declines one that it took, or takes one that it declined.
  std::vector<std::string> differences(const std::string& rung,
                                       const std::vector<FixedProblem>& fixed) const;
  /// Likewise about the counts of the rung's choices.
  std::vector<std::string> choice_differences(const std::string& rung,
                                              const ChoiceCounts& choices) const;
  /// The rungs that are recorded.
  std::vector<std::string> rungs() const;

 private:
  TakenRecord() = default;

  /// Of a form: these names, or all others.
  struct Names {
    bool all_but = false;
    std::vector<std::string> names = {};
  };
  std::map<std::string, std::map<std::string, Names>> rungs_;
  std::map<std::string, ChoiceCounts> choices_;  ///< By rung.
};

/// The record as a file: forms and rungs that take the same share an entry, in which each name has
/// a line.
std::string record_text(const std::map<std::string, std::vector<FixedProblem>>& fixed_by_rung,
                        const std::map<std::string, ChoiceCounts>& choices_by_rung = {});

/// Writes the record of all rungs that run on the CPU or on cuda_on_cpu. @returns whether that
/// worked; if not, it is said on standard error.
bool record_taken(const std::filesystem::path& file);

/// Where the record lies.
std::filesystem::path taken_record_file();

/// The place that the record is about: cuda_on_cpu for CUDA rungs, else the CPU. @pre the rung has
/// code there
Where recorded_place(const Rung& rung);

}  // namespace convladder::testing
