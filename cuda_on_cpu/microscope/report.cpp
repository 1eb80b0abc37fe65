// Converts the observations to a report: locations become lines, lines are summed, blocks are
// traced.
#include <algorithm>
#include <optional>
#include <tuple>

#include "state.hpp"

namespace cuda_on_cpu::microscope {

std::vector<State::Resolved> State::resolve(const std::set<Node>& places) const {
  // All return addresses of the call chains, looked up together.
  std::vector<std::uintptr_t> pcs;
  std::map<std::uintptr_t, std::size_t> number;
  for (const Node place : places) {
    for (Node node = place; node != 0; node = calls_[node].parent) {
      const std::uintptr_t pc = calls_[node].pc;
      if ((pc & kWhereBit) != 0 || pc < library_begin_ || pc >= library_end_) continue;
      if (number.try_emplace(pc, pcs.size()).second) pcs.push_back(pc - library_begin_);
    }
  }
  std::vector<std::vector<SourceLine>> lines;
  if (!pcs.empty()) lines = source_lines(file(), pcs);
  const auto is_own = [&](const std::string& file) {
    return file.find("/cuda_on_cpu/include/") == std::string::npos && !file.starts_with("/usr/") &&
           file != "??" && file != "<built-in>" &&
           std::ranges::none_of(options_.helpers, [&](const std::string& helper) {
             return file.find(helper) != std::string::npos;
           });
  };
  std::vector<Resolved> result;
  for (const Node place : places) {
    // Starting at the innermost line: the first line of the inspected source, otherwise the first
    // outside of helpers.
    std::optional<Resolved> innermost, of_source;
    const auto consider = [&](const Resolved& line) {
      if (!innermost && is_own(line.file)) innermost = line;
      if (!of_source && line.file == options_.source) of_source = line;
    };
    for (Node node = place; node != 0 && !of_source; node = calls_[node].parent) {
      const std::uintptr_t pc = calls_[node].pc;
      if ((pc & kWhereBit) != 0) {
        const std::source_location& where = wheres_[pc & ~kWhereBit];
        consider({where.file_name(), where.line(), short_name(where.function_name())});
      } else if (const auto found = number.find(pc); found != number.end()) {
        for (const SourceLine& line : lines[found->second]) {
          consider({line.file, line.line, line.function});
        }
      }
    }
    result.push_back(of_source ? *of_source : innermost.value_or(Resolved{}));
  }
  return result;
}

Report State::report() {
  const std::lock_guard lock(mutex_);
  std::set<Node> places;
  for (const auto& [key, seen] : counts_) places.insert(key.place);
  for (const FoundRace& race : races_) {
    places.insert(race.first);
    places.insert(race.second);
  }
  for (const FoundUnwritten& read : unwritten_) places.insert(read.place);
  const std::vector<Resolved> resolved = resolve(places);
  std::map<Node, const Resolved*> line_of;
  std::size_t next = 0;
  for (const Node place : places) line_of[place] = &resolved[next++];

  Report report;
  report.kernels = kernels_;
  using Key = std::tuple<std::size_t, std::string, unsigned, Space, Operation, unsigned,
                         std::string, std::string>;
  const auto line_key = [&](const LineKey& key) -> Key {
    const Resolved& line = *line_of.at(key.place);
    return {key.kernel,
            line.file,
            line.line,
            key.space,
            key.operation,
            key.width,
            key.array == kNoArray ? "" : arrays_[key.array].name,
            line.function};
  };
  std::map<Key, Seen> merged;
  for (const auto& [key, seen] : counts_) {
    Seen& of_line = merged[line_key(key)];
    of_line.counts += seen.counts;
    if (of_line.samples.empty()) of_line.samples = seen.samples;
    if (key.space == Space::global && key.operation != Operation::store && key.array != kNoArray &&
        !arrays_[key.array].has_names) {
      report.loads[arrays_[key.array].name] +=
          static_cast<double>(seen.counts.lanes) * report.kernels[key.kernel].blocks_per_counted();
    }
  }
  std::map<Key, std::size_t> place_in_kernel;
  for (const auto& [key, seen] : merged) {
    const auto& [kernel, file, line, space, operation, width, array, function] = key;
    place_in_kernel[key] = report.kernels[kernel].lines.size();
    report.kernels[kernel].lines.push_back(
        {file, line, function, space, operation, width, array, seen.counts, seen.samples});
  }

  for (const Trace& trace : traces_) {
    TracedBlock& block = report.traces.emplace_back(trace.block);
    for (std::size_t i = 0; i < block.requests.size(); ++i)
      block.requests[i].line = place_in_kernel.at(line_key(trace.lines[i]));
  }

  // One race per pair of lines: template instances and callers are not distinguished.
  std::set<std::tuple<Race::Kind, bool, std::string, unsigned, std::string, unsigned, std::string>>
      seen;
  for (const FoundRace& found : races_) {
    Race race = found.race;
    const Resolved &first = *line_of.at(found.first), &second = *line_of.at(found.second);
    race.first.file = first.file;
    race.first.line = first.line;
    race.second.file = second.file;
    race.second.line = second.line;
    if (seen.insert({race.kind, race.is_error, first.file, first.line, second.file, second.line,
                     race.array})
            .second) {
      report.races.push_back(std::move(race));
    }
  }
  std::ranges::stable_sort(report.races,
                           [](const Race& a, const Race& b) { return a.is_error > b.is_error; });
  std::set<std::tuple<std::string, unsigned, std::string>> seen_reads;
  for (const FoundUnwritten& found : unwritten_) {
    Unwritten read = found.read;
    read.place.file = line_of.at(found.place)->file;
    read.place.line = line_of.at(found.place)->line;
    if (seen_reads.insert({read.place.file, read.place.line, read.array}).second) {
      report.unwritten.push_back(std::move(read));
    }
  }
  for (Array& array : arrays_) {
    if (array.space != Space::global || array.has_names) continue;
    const auto alive = [&](const std::map<std::uintptr_t, std::size_t>& ranges) {
      const auto found = ranges.find(array.begin);
      return found != ranges.end() && &arrays_[found->second] == &array;
    };
    if (alive(named_) || alive(live_)) array.footprint = touched_bytes(array);
    if (array.footprint != 0) report.footprint[array.name] += array.footprint;
  }
  for (const Kernel& kernel : report.kernels) {
    report.blocks_run += kernel.blocks_run;
    report.blocks_counted += kernel.blocks_counted;
  }
  report.events = events_;
  report.overflowed = overflowed_;
  return report;
}

// --- Traces: the requests of a block (which are added when they are counted)

void State::trace_begins(Block& block) {
  block.trace = traces_.size();
  traces_.push_back({{.kernel = block.kernel,
                      .launch = phase_ >> 32,
                      .block = block.index,
                      .intervals = 1,
                      .requests = {},
                      .landings = {}},
                     {}});
}

void State::trace_landing(Block& block, std::uintptr_t begin, std::size_t bytes) {
  const std::size_t array = array_of(block, Space::shared, begin);
  if (array == kNoArray) return;
  TracedBlock& trace = traces_[block.trace].block;
  trace.landings.push_back(
      {trace.intervals - 1, arrays_[array].name, begin - arrays_[array].begin, bytes});
}

// --- The public interface

Counts& Counts::operator+=(const Counts& other) {
  requests += other.requests;
  lanes += other.lanes;
  bytes += other.bytes;
  sectors += other.sectors;
  sectors_ideal += other.sectors_ideal;
  wavefronts += other.wavefronts;
  excess += other.excess;
  contention += other.contention;
  joined_requests += other.joined_requests;
  joined_wavefronts += other.joined_wavefronts;
  joined_excess += other.joined_excess;
  return *this;
}

const char* name_of(Space space) {
  constexpr const char* kNames[] = {"global", "shared", "constant"};
  return kNames[static_cast<std::size_t>(space)];
}

const char* name_of(Operation operation) {
  constexpr const char* kNames[] = {"load", "store", "atomic", "async"};
  return kNames[static_cast<std::size_t>(operation)];
}

const char* name_of(Race::Kind kind) {
  constexpr const char* kNames[] = {"RAW", "WAR", "WAW"};
  return kNames[static_cast<std::size_t>(kind)];
}

Microscope::Microscope(const Options& options) : state_(std::make_unique<State>(options)) {}
Microscope::~Microscope() = default;
void Microscope::name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                            const std::string& name) {
  state_->name_array(memory, bytes, element_bytes, name);
}
Report Microscope::report() { return state_->report(); }

}  // namespace cuda_on_cpu::microscope
