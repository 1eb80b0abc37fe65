/// @file provenance.hpp
/// @brief Where a recorded result comes from: the sources, the machine, the day.
#pragma once

#include <map>
#include <string>

namespace convladder {

/// By rung: the hash of the sources that this program was built from.
const std::map<std::string, std::string>& built_source_hashes();

/// "580.65.06", from the driver's own account of itself; "unknown" without one.
std::string driver_version();

/// The CUDA toolkit that this program was built with: "13.0.88"; "none" without one.
std::string toolkit_version();

/// The date in UTC: "2026-11-21".
std::string today();

/// CONVLADDER_COMMIT, or what git says; for people, as the hashes are what binds.
std::string commit();

}  // namespace convladder
