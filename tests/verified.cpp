#include "tests/verified.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/device.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "provenance/provenance.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VerifiedRung, rung, source_hash, problems, comparisons,
                                   identities)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verification, gpu, driver, toolkit, date, commit, rungs)

std::vector<VerifiedRung> verified_rungs(const std::vector<ReportEntry>& entries,
                                         const std::map<std::string, std::string>& hashes) {
  std::vector<VerifiedRung> rungs;
  for (const ReportEntry& problems : entries) {
    if (problems.where != name_of(Where::gpu) || problems.kind != "problems") continue;
    for (const ReportEntry& identities : entries) {
      if (identities.where != problems.where || identities.rung != problems.rung ||
          identities.kind != "identities") {
        continue;
      }
      if (problems.status == "passed" && identities.status == "passed") {
        rungs.push_back({problems.rung, hashes.at(problems.rung), problems.checked,
                         problems.comparisons, identities.checked});
      }
    }
  }
  return rungs;
}

bool write_record(const std::filesystem::path& file, const std::vector<ReportEntry>& entries) {
  const std::vector<VerifiedRung> rungs = verified_rungs(entries, built_source_hashes());
  if (rungs.empty() || settings().small) {
    std::fprintf(stderr, "nothing recorded: %s\n",
                 rungs.empty() ? "no rung passed its tests on a GPU"
                               : "CONVLADDER_SMALL leaves problems out");
    return false;
  }
  nlohmann::ordered_json json = {{"gpu", device_at(Where::gpu)->name()},
                                 {"driver", driver_version()},
                                 {"toolkit", toolkit_version()},
                                 {"date", today()},
                                 {"commit", commit()},
                                 {"seed", settings().seed},
                                 {"rungs", nlohmann::ordered_json::array()}};
  for (const VerifiedRung& rung : rungs) {
    json["rungs"].push_back(nlohmann::ordered_json{{"rung", rung.rung},
                                                   {"source_hash", rung.source_hash},
                                                   {"problems", rung.problems},
                                                   {"comparisons", rung.comparisons},
                                                   {"identities", rung.identities}});
  }
  std::ofstream out(file);
  out << json.dump(2) << "\n";
  if (!out.flush()) {
    std::fprintf(stderr, "cannot write %s\n", file.c_str());
    return false;
  }
  std::printf("recorded %zu rungs in %s\n", rungs.size(), file.c_str());
  return true;
}

std::optional<Verification> read_record(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  std::ifstream stream(file);
  return nlohmann::json::parse(stream).get<Verification>();
}

Staleness staleness(const std::optional<Verification>& record,
                    const std::vector<RungState>& rungs) {
  Staleness result;
  for (const RungState& state : rungs) {
    const VerifiedRung* verified = nullptr;
    if (record) {
      const auto found = std::find_if(record->rungs.begin(), record->rungs.end(),
                                      [&](const auto& rung) { return rung.rung == state.rung; });
      if (found != record->rungs.end()) verified = &*found;
    }
    if (verified != nullptr && verified->source_hash == state.source_hash) continue;
    if (state.only_on_gpu) {
      result.failures.push_back(state.rung + (verified == nullptr
                                                  ? ": never verified on a GPU"
                                                  : ": changed since a GPU verified it"));
    } else {
      (verified == nullptr ? result.never : result.changed).push_back(state.rung);
    }
  }
  return result;
}

std::vector<RungState> rung_states() {
  std::vector<RungState> states;
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      if (!rung.is_cuda()) continue;
      states.push_back({rung.name, built_source_hashes().at(rung.name),
                        !rung.code_at(Where::emulated).has_value()});
    }
  }
  return states;
}

std::string gpu_record_line() {
  if (toolkit_version() != "none") return {};
  const std::vector<RungState> states = rung_states();
  const std::optional<Verification> record = read_record(CONVLADDER_VERIFIED_FILE);
  const Staleness stale = staleness(record, states);
  const std::size_t unverified = stale.never.size() + stale.changed.size() + stale.failures.size();
  if (!record) return text("GPU: none ran, and no rung is recorded as verified on one");
  return text("GPU: none ran; ", states.size() - unverified, " of ", states.size(),
              " CUDA rungs are as they were verified on an ", record->gpu, " (", record->date, ")",
              stale.changed.empty() ? "" : text(", ", stale.changed.size(), " changed since"),
              stale.never.empty() ? "" : text(", ", stale.never.size(), " never ran on one"));
}

}  // namespace convladder::testing
