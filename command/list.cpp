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
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

constexpr std::size_t kNarrowest = 24;  // columns that an idea beside the names must have

struct Line {
  const Rung* rung;
  std::string indent;  ///< ends in "- " for what branches off
};

/// A rung and all that comes from it, below. The last step goes on at the same depth, and so does
/// what comes from a rung alone; whatever else comes from it branches off in between.
void add_tree(const Ladder& ladder, const Line& line, std::vector<Line>& lines) {
  lines.push_back(line);
  std::vector<const Rung*> children;
  for (const Rung& other : ladder.rungs) {
    if (other.previous == line.rung->name) children.push_back(&other);
  }
  const Rung* goes_on = children.size() == 1 ? children.front() : nullptr;
  for (const Rung* child : children) {
    if (child->kind() == RungKind::step) goes_on = child;
  }
  const std::string depth(line.indent.size(), ' ');
  for (const Rung* child : children) {
    if (child != goes_on) add_tree(ladder, {child, depth + "- "}, lines);
  }
  if (goes_on != nullptr) add_tree(ladder, {goes_on, depth}, lines);
}

void print(const Ladder& ladder) {
  std::printf("%s  %s\n", styled(Style::bold, ladder.name).c_str(),
              wrapped(ladder.summary, ladder.name.size() + 2, 4).c_str());
  std::vector<Line> lines;
  for (const Rung& rung : ladder.rungs) {
    if (rung.previous.empty()) add_tree(ladder, {&rung, "  "}, lines);
  }
  std::size_t width = 0;
  for (const Line& line : lines)
    width = std::max(width, line.indent.size() + line.rung->name.size());
  for (const Line& line : lines) {
    const std::string name = line.indent + line.rung->name;
    if (width + 2 + kNarrowest > output_width()) {  // the idea stands below
      const std::string depth(line.indent.size() + 2, ' ');
      std::printf("%s\n%s%s\n", name.c_str(), depth.c_str(),
                  wrapped(line.rung->idea, depth.size(), depth.size()).c_str());
    } else {
      std::printf("%s%s\n", left(name, width + 2).c_str(),
                  wrapped(line.rung->idea, width + 2, width + 2).c_str());
    }
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
