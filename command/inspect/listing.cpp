#include "command/inspect/listing.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/text.hpp"

namespace convladder::command {
namespace {

namespace microscope = cuda_on_cpu::microscope;
using microscope::Operation;
using microscope::Space;

/// Lines of context before a function's first access and after its last.
constexpr unsigned kAround = 3;
/// Idle lanes of a warp that are not reported.
constexpr unsigned kMostIdle = 8;

std::vector<std::string> lines_of(const std::string& path) {
  // An absolute path replaces the folder before it.
  std::ifstream in(std::filesystem::path(CONVLADDER_SOURCE_DIR) / path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string decimal(double value, int places = 1) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.*f", places, value);
  return digits;
}

double each(std::uint64_t sum, const microscope::Counts& counts) {
  return static_cast<double>(sum) / static_cast<double>(counts.requests);
}

std::string place_of(const microscope::Place& place) {
  return text(place.file, ":", place.line, " (block ", place.block, ", thread ", place.thread, ")");
}

std::string array_of(const std::string& name, std::uint64_t element, Space space) {
  return name.empty() ? text(microscope::name_of(space), " memory") : text(name, "[", element, "]");
}

/// The access of this kind with the largest `cost` over all kernels; null if the largest is 0.
template <class Cost>
const microscope::Line* worst(const Inspection& inspection, Cost cost) {
  const microscope::Line* found = nullptr;
  std::uint64_t most = 0;
  for (const microscope::Kernel& kernel : inspection.seen.kernels) {
    for (const microscope::Line& line : kernel.lines) {
      const std::uint64_t own = cost(line);
      if (own <= most) continue;
      most = own;
      found = &line;
    }
  }
  return found;
}

const char* verb_of(const microscope::Line& line) {
  switch (line.operation) {
    case Operation::load: return "load";
    case Operation::store: return "store";
    case Operation::atomic: return "atomic";
    case Operation::async: return "asynchronous copy";
  }
  return "";
}

std::string subject_of(const microscope::Line& line) {
  return text("each ", verb_of(line), " of ",
              line.array.empty() ? text(microscope::name_of(line.space), " memory") : line.array,
              " on line ", line.line);
}

std::string about_sectors(const Inspection& inspection) {
  const auto wasted = [](const microscope::Line& line) -> std::uint64_t {
    return line.space == Space::global ? line.counts.sectors - line.counts.sectors_ideal : 0;
  };
  if (const microscope::Line* line = worst(inspection, wasted)) {
    return text(subject_of(*line), " moves ", decimal(each(line->counts.sectors, line->counts)),
                " 32-byte sectors; ", decimal(each(line->counts.sectors_ideal, line->counts)),
                " would suffice for its bytes: its lanes do not access adjacent addresses, or "
                "start within a sector.");
  }
  return "global memory: no request moves more sectors than its bytes need.";
}

std::string about_banks(const Inspection& inspection) {
  const auto excess = [](const microscope::Line& line) { return line.counts.excess; };
  if (const microscope::Line* line = worst(inspection, excess)) {
    return text(subject_of(*line), " takes ", decimal(each(line->counts.wavefronts, line->counts)),
                " wavefronts; without bank conflicts it would take ",
                decimal(each(line->counts.wavefronts - line->counts.excess, line->counts)),
                ": lanes access different words of one bank.");
  }
  const auto any = [](const microscope::Line& line) { return line.counts.wavefronts; };
  return worst(inspection, any) == nullptr ? "shared memory is not used."
                                           : "shared memory: no bank conflicts.";
}

/// Empty if no adjacent accesses are merged.
std::string about_joined(const Inspection& inspection) {
  microscope::Counts sum;
  for (const microscope::Kernel& kernel : inspection.seen.kernels) {
    for (const microscope::Line& line : kernel.lines) {
      if (line.space == Space::shared) sum += line.counts;
    }
  }
  if (sum.joined_requests == sum.requests) return "";
  return text("shared memory: a compiler that merges adjacent accesses turns ", sum.requests,
              " requests into ", sum.joined_requests, ", which take ", sum.joined_wavefronts,
              " wavefronts instead of ", sum.wavefronts, ".");
}

/// Empty if all lanes are active in most requests.
std::string about_lanes(const Inspection& inspection) {
  const auto idle = [](const microscope::Line& line) {
    return 32 * line.counts.requests - line.counts.lanes;
  };
  const microscope::Line* line = worst(inspection, idle);
  if (line == nullptr || idle(*line) < kMostIdle * line->counts.requests) return "";
  return text(subject_of(*line), " has ", decimal(each(line->counts.lanes, line->counts)),
              " of a warp's 32 lanes active on average.");
}

std::string about_loads(const Inspection& inspection) {
  std::string words;
  for (const auto& [array, number] : inspection.loads_per_output())
    words += text(words.empty() ? "" : ", ", array, " ", decimal(number, 2));
  return words.empty() ? "global memory: no loads." : "loads per output element: " + words + ".";
}

}  // namespace

bool Inspection::is_in_order() const {
  return agrees && seen.unwritten.empty() &&
         std::ranges::none_of(seen.races,
                              [](const microscope::Race& race) { return race.is_error; });
}

std::map<std::string, double> Inspection::loads_per_output() const {
  std::map<std::string, double> loads;
  for (const auto& [array, lanes] : seen.loads) {
    loads[array] = lanes / static_cast<double>(std::max<std::uint64_t>(outputs, 1));
  }
  return loads;
}

std::vector<ListedFile> listing(const Inspection& inspection, const microscope::Kernel& kernel) {
  // Ranges of lines by file and function: from the first access to the last.
  struct Stretch {
    unsigned first, last;
  };
  std::map<std::string, std::map<std::string, Stretch>> stretches;
  for (const microscope::Line& line : kernel.lines) {
    if (line.file.empty()) continue;
    const auto [found, is_new] =
        stretches[line.file].try_emplace(line.function, Stretch{line.line, line.line});
    found->second.first = std::min(found->second.first, line.line);
    found->second.last = std::max(found->second.last, line.line);
  }
  std::vector<ListedFile> files;
  for (const auto& [file, functions] : stretches) {
    const std::vector<std::string> source = lines_of(file);
    std::vector<bool> shown(source.size(), false);
    for (const auto& [function, stretch] : functions) {
      const std::size_t first = stretch.first > kAround ? stretch.first - kAround : 1;
      const std::size_t last = std::min<std::size_t>(stretch.last + kAround, source.size());
      for (std::size_t line = first; line <= last; ++line) shown[line - 1] = true;
    }
    ListedFile listed{file, {}};
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (!shown[i]) continue;
      ListedLine line{static_cast<unsigned>(i + 1), source[i], {}};
      for (const microscope::Line& access : kernel.lines) {
        if (access.file == file && access.line == line.number) line.accesses.push_back(&access);
      }
      listed.lines.push_back(std::move(line));
    }
    files.push_back(std::move(listed));
  }
  std::ranges::stable_sort(files, [&](const ListedFile& a, const ListedFile& b) {
    return (a.file == inspection.source) > (b.file == inspection.source);
  });
  return files;
}

std::string name_of(const microscope::Line& line) {
  return text(line.array.empty() ? microscope::name_of(line.space) : line.array.c_str(), ": ",
              microscope::name_of(line.operation), ", ", line.width,
              line.width == 1 ? " byte per lane" : " bytes per lane");
}

std::string cost_of(const microscope::Line& line) {
  const microscope::Counts& counts = line.counts;
  std::string cost;
  if (line.space == Space::global) {
    cost = text(decimal(each(counts.sectors, counts)), " sectors, ideally ",
                decimal(each(counts.sectors_ideal, counts)), " would do");
  } else if (line.space == Space::shared) {
    cost = text(decimal(each(counts.wavefronts, counts)), " wavefronts");
    if (counts.excess != 0) {
      cost += text(", ", decimal(each(counts.wavefronts - counts.excess, counts)), " would do");
    }
  }
  if (counts.lanes != 32 * counts.requests)
    cost += text(cost.empty() ? "" : ", ", decimal(each(counts.lanes, counts)), " of 32 lanes");
  if (counts.contention != 0) {
    cost += text(", ", decimal(each(counts.contention, counts)), " lanes with one address");
  }
  return cost;
}

std::string short_cost_of(const microscope::Line& line) {
  const microscope::Counts& counts = line.counts;
  switch (line.space) {
    case Space::global:
      return text(decimal(each(counts.sectors, counts)), "/",
                  decimal(each(counts.sectors_ideal, counts)), " sect.");
    case Space::shared:
      return text(decimal(each(counts.wavefronts, counts)), "/",
                  decimal(each(counts.wavefronts - counts.excess, counts)), " wavefr.");
    case Space::constant: break;
  }
  return "";
}

std::string sentence_of(const microscope::Race& race) {
  constexpr const char* kWords[] = {"reads what the other thread wrote",
                                    "writes what the other thread read",
                                    "writes what the other thread wrote"};
  return text(race.is_error ? "race, " : "note, ", microscope::name_of(race.kind), " in ",
              array_of(race.array, race.element, race.space), ": ", place_of(race.second), " ",
              kWords[static_cast<std::size_t>(race.kind)], ", ", place_of(race.first), ", and ",
              race.why.empty() ? "no barrier or fence orders the two accesses" : race.why);
}

std::string short_name_of(const microscope::Kernel& kernel) {
  const std::string name = kernel.name.substr(0, kernel.name.find('<'));
  const std::size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

std::string title_of(const microscope::Kernel& kernel) {
  const auto shape = [](const unsigned(&size)[3]) {
    return text(size[0], " x ", size[1], " x ", size[2]);
  };
  return text(short_name_of(kernel), ": ", kernel.launches,
              kernel.launches == 1 ? " launch of " : " launches of ", shape(kernel.grid),
              " blocks of ", shape(kernel.block), " threads, ", kernel.shared_bytes,
              " bytes of dynamic shared memory, ", kernel.barriers, " warp barriers");
}

std::string sentence_of(const microscope::Unwritten& read, bool is_used) {
  return text("unwritten: ", place_of(read.place), " reads ",
              array_of(read.array, read.element, read.space), ", which no thread has written",
              is_used ? "" : "; the result does not depend on it");
}

std::vector<std::string> findings(const Inspection& inspection) {
  std::vector<std::string> sentences{about_loads(inspection), about_sectors(inspection),
                                     about_banks(inspection)};
  for (const std::string& sentence : {about_joined(inspection), about_lanes(inspection)})
    if (!sentence.empty()) sentences.push_back(sentence);
  return sentences;
}

}  // namespace convladder::command
