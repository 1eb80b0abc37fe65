#include "command/selection.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "core/device.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "ladders/earlier_rungs.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

bool matches(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;  // * matches / too
}

/// The end of a message, "\nnearest: RUNG": the rung that `glob` probably means. It is the
/// replacement of a removed rung, or the nearest by whole name or by last word.
std::string hint(const std::string& glob, const std::vector<const Ladder*>& ladders) {
  constexpr const char* kNearest = "\nnearest: ";
  std::vector<std::string> names, words;
  for (const Ladder* ladder : ladders) {
    for (const Rung& rung : ladder->rungs) {
      names.push_back(rung.name);
      words.push_back(rung.name.substr(rung.name.rfind('/') + 1));
    }
  }
  for (const RemovedRung& removed : removed_rungs()) {
    const bool is_meant = matches(glob, removed.name) || removed.name.ends_with("/" + glob);
    const bool is_there = std::find(names.begin(), names.end(), removed.instead) != names.end();
    if (is_meant && is_there) return "; it was removed" + (kNearest + removed.instead);
  }
  if (glob.find('/') != std::string::npos) return kNearest + nearest(glob, names);
  const auto word = std::find(words.begin(), words.end(), nearest(glob, words));
  return kNearest +
         (word == words.end() ? "" : names[static_cast<std::size_t>(word - words.begin())]);
}

void say_renamed(const RenamedRung& renamed) {
  std::fprintf(stderr, "rung = %s: the present name is %s\n", renamed.name.c_str(),
               renamed.now.c_str());
}

/// The present name of a renamed rung; its last word suffices if it is unique.
std::string present_name(const std::string& name) {
  const RenamedRung* found = nullptr;
  for (const RenamedRung& renamed : renamed_rungs()) {
    if (renamed.name != name && !renamed.name.ends_with("/" + name)) continue;
    require(found == nullptr, "rung", name,
            text("several rungs had this name: ", found == nullptr ? "" : found->now, ", ",
                 renamed.now));
    found = &renamed;
  }
  if (found == nullptr) return name;
  say_renamed(*found);
  return found->now;
}

}  // namespace

std::pair<const Ladder*, const Rung*> rung_named(const std::string& name) {
  std::pair<const Ladder*, const Rung*> found{};
  std::vector<const Ladder*> all;
  for (const Ladder& ladder : ladders()) {
    all.push_back(&ladder);
    for (const Rung& rung : ladder.rungs) {
      if (rung.name != name && !rung.name.ends_with("/" + name)) continue;
      require(found.second == nullptr, "rung", name,
              text("several rungs have this name, also ", rung.name));
      found = {&ladder, &rung};
    }
  }
  if (found.second != nullptr) return found;
  if (const std::string now = present_name(name); now != name) return rung_named(now);
  throw BadInput(text("rung = ", name, ": unknown (./ladder list)", hint(name, all)));
}

bool can_run(const Seat& seat) {
  return seat.rung->code_at(seat.where).has_value() && device_at(seat.where) != nullptr;
}

Selection::Selection(const Options& options, const std::vector<const Ladder*>& ladders)
    : globs_(options.rungs), places_(options.places) {
  const auto is_found = [&](const std::string& glob) {
    return std::any_of(ladders.begin(), ladders.end(), [&](const Ladder* ladder) {
      return std::any_of(ladder->rungs.begin(), ladder->rungs.end(),
                         [&](const Rung& rung) { return matches(glob, rung.name); });
    });
  };
  for (const std::string& glob : options.rungs) {
    if (is_found(glob)) continue;
    bool was_found = false;
    for (const RenamedRung& renamed : renamed_rungs()) {
      if (!matches(glob, renamed.name) || !is_found(renamed.now)) continue;
      say_renamed(renamed);
      globs_.push_back(renamed.now);
      was_found = true;
    }
    if (was_found) continue;
    throw BadInput(text("rung = ", glob, ": matches no rung of ",
                        ladders.size() == 1 ? "the ladder " + ladders.front()->name : "any ladder",
                        hint(glob, ladders)));
  }
  if (std::find(places_.begin(), places_.end(), Where::gpu) != places_.end()) {
    require(device_at(Where::gpu) != nullptr, "backend", "gpu", "not available: " + why_no_gpu());
  }
  if (places_.empty()) places_.assign(kEverywhere.begin(), kEverywhere.end());

  const bool some = std::any_of(ladders.begin(), ladders.end(),
                                [&](const Ladder* ladder) { return !seats(*ladder).empty(); });
  if (some) return;
  std::vector<std::string> names;
  for (const Where where : places_) names.emplace_back(name_of(where));
  throw BadInput(
      text("backend = ", joined(names, ", "), ": none of the selected rungs can run there"));
}

std::vector<Seat> Selection::seats(const Ladder& ladder) const {
  std::vector<Seat> seats;
  for (const Rung& rung : ladder.rungs) {
    const bool chosen =
        globs_.empty() || std::any_of(globs_.begin(), globs_.end(),
                                      [&](const auto& glob) { return matches(glob, rung.name); });
    if (!chosen) continue;
    for (const Where where : kEverywhere) {
      const bool asked = std::find(places_.begin(), places_.end(), where) != places_.end();
      if (asked && (where != Where::cpu) == rung.is_cuda()) seats.push_back({&rung, where});
    }
  }
  return seats;
}

}  // namespace convladder::command
