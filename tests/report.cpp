#include "tests/report.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ladders/ladders.hpp"

namespace convladder::testing {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportEntry, ladder, rung, where, kind, status, checked,
                                   comparisons, declined, skipped)

namespace {

std::vector<ReportEntry>& entries_of_this_process() {
  static std::vector<ReportEntry> entries;
  return entries;
}

const ReportEntry* find(const std::vector<ReportEntry>& entries, const std::string& rung,
                        Where where, const std::string& kind) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ReportEntry& entry) {
    return entry.rung == rung && entry.where == name_of(where) && entry.kind == kind;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::string cell(const ReportEntry* entry) {
  if (entry == nullptr) return "-";
  if (entry->status == "skipped") return "skipped";
  return std::to_string(entry->checked) + (entry->status == "failed" ? " FAILED" : "");
}

}  // namespace

void add_to_report(const ReportEntry& entry) {
  entries_of_this_process().push_back(entry);
  const char* folder = std::getenv("CONVLADDER_REPORT_DIR");
  if (folder == nullptr || *folder == '\0') return;
  std::filesystem::create_directories(folder);
  std::string name = entry.rung + "." + entry.where + "." + entry.kind + ".json";
  std::replace(name.begin(), name.end(), '/', '.');
  std::ofstream(std::filesystem::path(folder) / name) << nlohmann::json(entry).dump(1) << "\n";
}

const std::vector<ReportEntry>& report_entries() { return entries_of_this_process(); }

std::vector<ReportEntry> read_report(const std::filesystem::path& folder) {
  std::vector<ReportEntry> entries;
  if (!std::filesystem::is_directory(folder)) return entries;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    std::ifstream stream(file.path());
    entries.push_back(nlohmann::json::parse(stream).get<ReportEntry>());
  }
  return entries;
}

std::string report_table(const std::vector<ReportEntry>& entries) {
  std::ostringstream out;
  for (const Ladder& ladder : ladders()) {
    const bool any = std::any_of(entries.begin(), entries.end(), [&](const ReportEntry& entry) {
      return entry.ladder == ladder.name;
    });
    if (!any) continue;
    std::size_t width = 0;
    for (const Rung& rung : ladder.rungs) width = std::max(width, rung.name.size());
    out << ladder.name << ": problems (and identities) that each rung was checked on\n";
    out << std::left << std::setw(static_cast<int>(width) + 2) << "" << std::right;
    for (const Where where : kEverywhere) out << std::setw(16) << name_of(where);
    out << "\n";
    for (const Rung& rung : ladder.rungs) {
      out << "  " << std::left << std::setw(static_cast<int>(width)) << rung.name << std::right;
      for (const Where where : kEverywhere) {
        const ReportEntry* problems = find(entries, rung.name, where, "problems");
        const ReportEntry* identities = find(entries, rung.name, where, "identities");
        std::string text = cell(problems);
        if (identities != nullptr && identities->status != "skipped") {
          text += " (" + cell(identities) + ")";
        }
        out << std::setw(16) << text;
      }
      out << "\n";
    }
    for (const ReportEntry& entry : entries) {
      if (entry.ladder != ladder.name || entry.where == "gpu" || entry.kind != "problems") continue;
      for (const std::string& reason : entry.declined) {
        out << "    " << entry.rung << " declined " << reason << "\n";
      }
    }
  }
  return out.str();
}

std::vector<std::string> reasons_text(const std::map<std::string, int>& reasons) {
  // Numbers differ from problem to problem; the first one of a kind stands for all.
  std::map<std::string, std::pair<std::string, int>> kinds;
  for (const auto& [reason, count] : reasons) {
    std::string kind = reason;
    std::erase_if(kind, [](char letter) { return letter >= '0' && letter <= '9'; });
    const auto place = kinds.emplace(kind, std::pair(reason, 0)).first;
    place->second.second += count;
  }
  std::vector<std::string> lines;
  for (const auto& [kind, example] : kinds) {
    lines.push_back(text(example.second, " x ", example.first));
  }
  return lines;
}

}  // namespace convladder::testing
