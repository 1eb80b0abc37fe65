#include "command/list.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "command/files.hpp"
#include "command/program.hpp"
#include "command/table.hpp"
#include "command/terminal.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

/// Steps, and indented what branches off.
void print(const Ladder& ladder) {
  std::printf("%s  %s\n", styled(Style::bold, ladder.name).c_str(), ladder.summary.c_str());
  std::size_t width = 0;
  for (const Rung& rung : ladder.rungs) width = std::max(width, rung.name.size());
  for (const Rung& rung : ladder.rungs) {
    const bool branch = rung.kind() == RungKind::branch;
    const std::string start = (branch ? "  - " : "  ") + left(rung.name, width + (branch ? 2 : 4));
    std::printf("%s%s\n", start.c_str(), wrapped(rung.idea, start.size(), start.size()).c_str());
  }
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
    for (const Rung& rung : ladder.rungs) {
      json.push_back({{"ladder", ladder.name},
                      {"rung", rung.name},
                      {"backend", rung.is_cuda() ? "cuda" : "cpu"},
                      {"idea", rung.idea},
                      {"previous", rung.previous},
                      {"source", rung.source},
                      {"deterministic", rung.deterministic},
                      {"computes", ladder.summary},
                      {"kind", name_of(rung.kind())},
                      {"beside", rung.beside}});
    }
  }
  if (file) file->write(json.dump(2) + "\n");
  return kAllAgree;
}

}  // namespace convladder::command
