#include "tests/taken.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text.hpp"
#include "ladders/ladders.hpp"

namespace convladder::testing {
namespace {

constexpr const char* kHowToRecordTaken =
    "if that is meant, record it: build/cpu/tests/suite --record-taken tests/taken_problems.json";

/// In quotation marks.
std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

/// "all", or an object with the names of those that are taken, or of those that are not.
std::string names_text(const std::vector<std::string>& taken,
                       const std::vector<FixedProblem>& fixed) {
  if (taken.size() == fixed.size()) return "\"all\"";
  const std::set<std::string> set(taken.begin(), taken.end());
  const bool all_but = 2 * taken.size() >= fixed.size();
  std::vector<std::string> lines;
  for (const FixedProblem& problem : fixed) {
    if (set.contains(problem.name) != all_but) lines.push_back("      " + json_text(problem.name));
  }
  return text("{\"", all_but ? "all but" : "only", "\": [\n", joined(lines, ",\n"), "]}");
}

constexpr const char* kChoices = "choices";  ///< Stands among a rung's forms.
constexpr std::string_view kAs = "as ", kBetween = ": ";
constexpr const char* kComma = ", ";

/// "pairs, table": its parts.
std::vector<std::string> parts_of(std::string list) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = list.find(kComma);
    parts.push_back(list.substr(0, end));
    if (end == std::string::npos) return parts;
    list.erase(0, end + std::string_view(kComma).size());
  }
}

}  // namespace

TakenByForm taken_by_form(const std::vector<FixedProblem>& fixed) {
  TakenByForm taken;
  for (const FixedProblem& problem : fixed)
    for (const std::string& form : problem.forms) taken[form].push_back(problem.name);
  return taken;
}

TakenRecord TakenRecord::parsed(const std::string& json) {
  TakenRecord record;
  const nlohmann::json all = nlohmann::json::parse(json);
  for (const auto& [rung, entries] : all.items()) {
    for (const auto& [forms, entry] : entries.items()) {
      if (forms == kChoices) {
        record.choices_[rung] = entry.get<ChoiceCounts>();
        continue;
      }
      // An entry may name one that has the same problems.
      const nlohmann::json* names = &entry;
      if (entry.is_string() && entry != "all") {
        const auto other = entry.get<std::string>();
        const std::size_t between = other.find(kBetween);
        if (!other.starts_with(kAs) || between == std::string::npos)
          throw std::runtime_error("not understood: " + other);
        names = &all.at(other.substr(kAs.size(), between - kAs.size()))
                     .at(other.substr(between + kBetween.size()));
      }
      Names of_form{.all_but = *names == "all" || names->contains("all but")};
      if (*names != "all")
        of_form.names =
            names->at(of_form.all_but ? "all but" : "only").get<std::vector<std::string>>();
      for (const std::string& form : parts_of(forms)) record.rungs_[rung][form] = of_form;
    }
  }
  return record;
}

TakenRecord::TakenRecord(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  *this = parsed({std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()});
}

std::vector<std::string> TakenRecord::differences(const std::string& rung,
                                                  const std::vector<FixedProblem>& fixed) const {
  const auto recorded = rungs_.find(rung);
  if (recorded == rungs_.end())
    return {
        text("what it takes is not recorded in tests/taken_problems.json; ", kHowToRecordTaken)};
  std::set<std::string> forms, listed;
  for (const auto& [form, names] : recorded->second) forms.insert(form);
  for (const FixedProblem& problem : fixed) {
    forms.insert(problem.forms.begin(), problem.forms.end());
    listed.insert(problem.name);
  }
  std::vector<std::string> found;
  for (const std::string& form : forms) {
    const auto of_form = recorded->second.find(form);
    const Names names = of_form == recorded->second.end() ? Names{} : of_form->second;
    const std::set<std::string> named(names.names.begin(), names.names.end());
    for (const FixedProblem& problem : fixed) {
      const bool before = named.contains(problem.name) != names.all_but;
      const bool now = std::ranges::find(problem.forms, form) != problem.forms.end();
      if (before && !now) {
        found.push_back(text(
            "declines as ", form, ", or takes in another form, what it took: ", problem.title, " (",
            problem.reasons.empty() ? "no reason" : problem.reasons, "); ", kHowToRecordTaken));
      } else if (now && !before) {
        found.push_back(text("takes as ", form, " what is recorded as declined: ", problem.title,
                             "; ", kHowToRecordTaken));
      }
    }
    for (const std::string& name : names.names) {
      if (!listed.contains(name))
        found.push_back(
            text("is recorded with a problem that is in no list: ", name, "; ", kHowToRecordTaken));
    }
  }
  return found;
}

std::vector<std::string> TakenRecord::choice_differences(const std::string& rung,
                                                         const ChoiceCounts& choices) const {
  const auto of_rung = choices_.find(rung);
  const ChoiceCounts recorded = of_rung == choices_.end() ? ChoiceCounts{} : of_rung->second;
  ChoiceCounts all = choices;
  all.insert(recorded.begin(), recorded.end());
  std::vector<std::string> found;
  for (const auto& [choice, any] : all) {
    const auto count_in = [&](const ChoiceCounts& counts) {
      const auto of_choice = counts.find(choice);
      return of_choice == counts.end() ? std::int64_t{0} : of_choice->second;
    };
    const std::int64_t now = count_in(choices), before = count_in(recorded);
    if (now != before)
      found.push_back(text("chooses otherwise than it did: \"", choice, "\" ", now, " and not ",
                           before, "; ", kHowToRecordTaken));
  }
  return found;
}

std::vector<std::string> TakenRecord::rungs() const {
  std::vector<std::string> names;
  for (const auto& [rung, forms] : rungs_) names.push_back(rung);
  return names;
}

std::string record_text(const std::map<std::string, std::vector<FixedProblem>>& fixed_by_rung,
                        const std::map<std::string, ChoiceCounts>& choices_by_rung) {
  std::vector<std::string> rungs;
  std::map<std::string, std::string> first_with;  // by names
  for (const auto& [rung, fixed] : fixed_by_rung) {
    std::map<std::vector<std::string>, std::vector<std::string>> forms_by_taken;
    for (const auto& [form, taken] : taken_by_form(fixed)) forms_by_taken[taken].push_back(form);
    std::vector<std::string> entries;
    for (const auto& [taken, forms] : forms_by_taken) {
      const std::string key = joined(forms, kComma);
      std::string names = names_text(taken, fixed);
      const auto [first, is_new] = first_with.emplace(names, text(kAs, rung, kBetween, key));
      if (!is_new && names.size() > first->second.size()) names = json_text(first->second);
      entries.push_back(text("    ", json_text(key), ": ", names));
    }
    const auto choices = choices_by_rung.find(rung);
    if (choices != choices_by_rung.end() && !choices->second.empty()) {
      std::vector<std::string> counts;
      for (const auto& [choice, count] : choices->second)
        counts.push_back(text("      ", json_text(choice), ": ", count));
      entries.push_back(text("    ", json_text(kChoices), ": {\n", joined(counts, ",\n"), "}"));
    }
    rungs.push_back(text("  ", json_text(rung), ": {\n", joined(entries, ",\n"), "}"));
  }
  return text("{\n", joined(rungs, ",\n"), "\n}\n");
}

bool record_taken(const std::filesystem::path& file) {
  std::map<std::string, std::vector<FixedProblem>> fixed_by_rung;
  std::map<std::string, ChoiceCounts> choices_by_rung;
  for (const Ladder& ladder : ladders()) {
    const std::vector<TestProblem>& list = fixed_problems(ladder.name);
    for (const Rung& rung : ladder.rungs) {
      if (const auto& code = rung.code_at(recorded_place(rung))) {
        fixed_by_rung[rung.name] = taken_of(list, *code);
        choices_by_rung[rung.name] = choices_of(list, ladder.name, *code);
      }
    }
  }
  std::ofstream out(file);
  out << record_text(fixed_by_rung, choices_by_rung);
  if (!out.flush()) {
    std::fprintf(stderr, "cannot write %s\n", file.c_str());
    return false;
  }
  std::printf("recorded what %zu rungs take and choose in %s\n", fixed_by_rung.size(),
              file.c_str());
  return true;
}

std::filesystem::path taken_record_file() { return CONVLADDER_TAKEN_FILE; }

Where recorded_place(const Rung& rung) { return rung.is_cuda() ? Where::emulated : Where::cpu; }

}  // namespace convladder::testing
