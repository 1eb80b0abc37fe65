#include "command/list.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/files.hpp"
#include "command/program.hpp"
#include "command/table.hpp"
#include "command/terminal.hpp"
#include "ladders/earlier_rungs.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

constexpr std::size_t kNarrowest = 24;  // the least width in columns of an idea beside the names

/// The heading above the rungs of a spine, or of a level and family.
std::string heading_of(const Rung& rung) {
  const std::string family = family_of(rung);
  if (rung.level == Level::spine) return rung.part.empty() ? "spine" : "spine, " + rung.part;
  const std::string level = rung.level == Level::advanced ? "advanced" : "alternatives";
  return family.empty() ? level : level + ", " + family;
}

void print(const Ladder& ladder) {
  constexpr std::size_t kIndent = 6;  // the number of a rung in its spine
  std::printf("%s  %s\n", styled(Style::bold, ladder.name).c_str(),
              wrapped(ladder.summary, ladder.name.size() + 2, 4).c_str());
  std::size_t width = 0;
  for (const Rung& rung : ladder.rungs) width = std::max(width, kIndent + rung.name.size());
  std::string heading;
  for (const Rung& rung : ladder.rungs) {
    if (heading != heading_of(rung)) {
      heading = heading_of(rung);
      std::printf("  %s\n", heading.c_str());
    }
    const std::string number = rung.spine > 0 ? std::to_string(rung.spine) : "";
    const std::string name =
        std::string(kIndent - 2 - number.size(), ' ') + number + "  " + rung.name;
    if (width + 2 + kNarrowest > output_width()) {  // the idea is on the next line
      std::printf("%s\n%*s%s\n", name.c_str(), static_cast<int>(kIndent + 2), "",
                  wrapped(rung.idea, kIndent + 2, kIndent + 2).c_str());
    } else {
      std::printf("%s%s\n", left(name, width + 2).c_str(),
                  wrapped(rung.idea, width + 2, width + 2).c_str());
    }
  }
}

/// The earlier names of the rung.
std::vector<std::string> earlier_names(const Rung& rung) {
  std::vector<std::string> names;
  for (const RenamedRung& renamed : renamed_rungs())
    if (renamed.now == rung.name) names.push_back(renamed.name);
  return names;
}

/// One object of the array that --json writes.
nlohmann::ordered_json row_of(const Ladder& ladder, const Rung& rung) {
  using nlohmann::ordered_json;
  const bool on_spine = rung.spine > 0;
  const std::string family = family_of(rung);
  return {{"ladder", ladder.name},
          {"rung", rung.name},
          {"backend", rung.is_cuda() ? "cuda" : "cpu"},
          {"idea", rung.idea},
          {"previous", rung.previous},
          {"source", rung.source},
          {"deterministic", rung.deterministic},
          {"computes", ladder.summary},
          {"kind", name_of(rung.kind())},
          {"spine", on_spine ? ordered_json(rung.spine) : ordered_json()},
          {"part", rung.part.empty() ? ordered_json() : ordered_json(rung.part)},
          {"level", name_of(rung.level)},
          {"needs", rung.needs},
          {"family", family.empty() ? ordered_json() : ordered_json(family)},
          {"was", earlier_names(rung)}};
}

}  // namespace

int list(const Options& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::optional<OutputFile> file;
  if (options.json) file.emplace("json", *options.json);
  const char* between = "";
  for (const Ladder& ladder : ladders()) {
    if (options.ladder && ladder.name != *options.ladder) continue;
    std::fputs(between, stdout);
    print(ladder);
    between = "\n";
    for (const Rung& rung : ladder.rungs) json.push_back(row_of(ladder, rung));
  }
  if (file) file->write(json.dump(2) + "\n");
  return kAllAgree;
}

}  // namespace convladder::command
