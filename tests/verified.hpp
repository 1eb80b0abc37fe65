/// @file verified.hpp
/// @brief What was verified on a GPU, and whether it has changed since.
///
/// Machines with a GPU are rare, so the outcome of a run on one is kept in
/// tests/verified_on_gpu.json. A rung that cuda_on_cpu can run is tested everywhere; one that it
/// cannot run must not change without another run on a GPU.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/report.hpp"

namespace convladder::testing {

/// A rung that passed all its tests on a GPU.
struct VerifiedRung {
  std::string rung, source_hash;
  int problems = 0, comparisons = 0, identities = 0;
};

/// A run on a GPU.
struct Verification {
  std::string gpu = {}, driver = {}, toolkit = {}, date = {}, commit = {};
  std::vector<VerifiedRung> rungs = {};
};

/// The rungs of a run that passed both their tests on the GPU.
std::vector<VerifiedRung> verified_rungs(const std::vector<ReportEntry>& entries,
                                         const std::map<std::string, std::string>& hashes);

/// Writes the rungs that this process verified, and where; a file that cannot be written, or
/// nothing verified, is said on standard error. @returns false then.
bool write_record(const std::filesystem::path& file, const std::vector<ReportEntry>& entries);

/// Nothing if there is no such file. @throws std::exception if it cannot be understood.
std::optional<Verification> read_record(const std::filesystem::path& file);

/// A rung as staleness() sees it.
struct RungState {
  std::string rung, source_hash;
  bool only_on_gpu = false;  ///< cuda_on_cpu does not run it.
};

/// What has not been verified on a GPU as it is now.
struct Staleness {
  std::vector<std::string>
      failures;  ///< Rungs that only a GPU can verify: changed, or never verified.
  std::vector<std::string> changed;  ///< Others that changed since.
  std::vector<std::string> never;    ///< Others that are not in the record.
};

Staleness staleness(const std::optional<Verification>& record, const std::vector<RungState>& rungs);

/// All CUDA rungs as this program was built.
std::vector<RungState> rung_states();

/// One line for a build without GPU tests: what was verified on a GPU, and what has changed since.
/// Nothing where the build has GPU tests of its own.
std::string gpu_record_line();

}  // namespace convladder::testing
