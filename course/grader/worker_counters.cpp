#include "course/grader/worker_counters.hpp"

#include "check/counters.hpp"
#include "command/inspect/listing.hpp"

namespace convladder::grader {
namespace {

constexpr std::size_t kMostSentences = 4;

}  // namespace

Counted count(const check::Judged& judged, const check::Trial& trial, const std::string& wanted,
              const std::function<Outcome(const RunOptions&)>& run) {
  const command::Inspection seen = check::watch(judged, trial, run);
  Counted counted;
  for (const std::string& name : check::split(wanted))
    counted.counters[name] = check::counter(seen, name);
  for (const auto& [name, bytes] : seen.seen.footprint)
    counted.footprint[name] = static_cast<double>(bytes);
  for (const auto& race : seen.seen.races)
    if (race.is_error && counted.races.size() < kMostSentences)
      counted.races.push_back(command::sentence_of(race));
  for (const auto* reads : {&seen.seen.unwritten, &seen.unused})
    for (const auto& read : *reads)
      if (counted.unwritten.size() < kMostSentences)
        counted.unwritten.push_back(command::sentence_of(read, /*is_used=*/true));
  return counted;
}

}  // namespace convladder::grader
