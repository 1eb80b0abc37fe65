/// @file report.hpp
/// @brief On how many problems each rung was checked: collected while tests run, printed at the
/// end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/check.hpp"

namespace convladder::testing {

/// What one test of one rung did.
struct ReportEntry {
  std::string ladder, rung, where;
  std::string kind;    ///< "problems" or "identities"
  std::string status;  ///< "passed", "failed" or "skipped"
  int checked = 0;     ///< Problems or identities.
  int comparisons = 0;
  std::vector<std::string> declined = {};  ///< "3 x the reason"
  std::vector<std::string> skipped = {};
};

/// Remembers it, and writes it to a file of its own in the folder CONVLADDER_REPORT_DIR, if that is
/// set.
void add_to_report(const ReportEntry& entry);

/// All that this process remembers.
const std::vector<ReportEntry>& report_entries();

/// What all tests left in the folder, in no particular order.
std::vector<ReportEntry> read_report(const std::filesystem::path& folder);

/// A table a ladder, with the rungs in the order of climbing, and the reasons for declining below.
std::string report_table(const std::vector<ReportEntry>& entries);

/// Adds up reasons that differ in numbers only: {"8 x filter 11x11 too large", ...}.
std::vector<std::string> reasons_text(const std::map<std::string, int>& reasons);

}  // namespace convladder::testing
