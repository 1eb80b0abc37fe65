/// @file ladders_test.cpp
/// @brief The table of rungs, what rungs choose, and the problems that the suite has for them.
#include "ladders/ladders.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cuda_on_cpu/device_models.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/device.hpp"
#include "core/problem.hpp"
#include "core/rung.hpp"
#include "ladders/earlier_rungs.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {
namespace {

/// All problems that the suite gives to a ladder's rungs, in all their forms.
std::vector<Problem> all_problems(const std::string& ladder) {
  std::vector<TestProblem> problems = problems_of(ladder);
  for (auto& more : {rounding_problems(ladder), random_problems(ladder, 20, 1)}) {
    problems.insert(problems.end(), more.begin(), more.end());
  }
  std::vector<Problem> all;
  for (const TestProblem& problem : problems) {
    for (const auto& forms : forms_of(problem.problem)) {
      all.insert(all.end(), forms.begin(), forms.end());
    }
  }
  return all;
}

using cuda_on_cpu::control::DeviceModel;

struct DefaultDeviceAfterwards {
  ~DefaultDeviceAfterwards() { cuda_on_cpu::control::set_default_device_model(); }
};

}  // namespace

TEST_SUITE_BEGIN("ladders");

TEST_CASE("all thirty edge shapes are there") {
  std::set<int> numbers;
  for (const std::string ladder : {"conv2d", "im2col"}) {
    for (const TestProblem& problem : problems_of(ladder)) numbers.insert(problem.number);
  }
  for (const RejectedProblem& rejected : rejected_problems()) numbers.insert(rejected.number);
  for (int number = 1; number <= 30; ++number) {
    CAPTURE(number);
    CHECK(numbers.contains(number));
  }
  // The sweep: 6 widths by 6 numbers of filters.
  int sweep = 0;
  for (const TestProblem& problem : problems_of("conv2d")) sweep += problem.number == 23 ? 1 : 0;
  CHECK(sweep == 36);
}

TEST_CASE("every ladder has problems of its own, each title once, and random ones by their seed") {
  for (const Ladder& ladder : ladders()) {
    CAPTURE(ladder.name);
    std::set<std::string> titles;
    for (const TestProblem& problem : problems_of(ladder.name)) titles.insert(title_of(problem));
    CHECK(titles.size() == problems_of(ladder.name).size());
    const auto one = random_problems(ladder.name, 5, 1), again = random_problems(ladder.name, 5, 1);
    const auto other = random_problems(ladder.name, 5, 2);
    REQUIRE(one.size() == 5);
    bool differs = false;
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(title_of(one[i]) == title_of(again[i]));
      differs = differs || describe(one[i].problem) != describe(other[i].problem);
    }
    CHECK(differs);
  }
}

TEST_CASE("nearest finds the word that was meant") {
  const std::vector<std::string> words = {"conv2d", "im2col", "col2im", "gemm"};
  CHECK(nearest("gem", words) == "gemm");
  CHECK(nearest("im2cl", words) == "im2col");
  CHECK(nearest("conv2", words) == "conv2d");
  CHECK(nearest("", words) == "gemm");  // the shortest
  CHECK(nearest("gemm", {}).empty());
}

TEST_CASE("an unknown ladder is bad input that names the nearest") {
  CHECK(ladder("gemm").name == "gemm");
  try {
    ladder("im2coll");
    FAIL("accepted");
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()).find("nearest: im2col") != std::string::npos);
  }
}

TEST_CASE("the rung table: sources, order, ideas and code") {
  std::set<std::string> names;
  for (const Ladder& ladder : ladders()) {
    CAPTURE(ladder.name);
    CHECK(!ladder.summary.empty());
    REQUIRE(!ladder.rungs.empty());
    CHECK(ladder.rungs.front().previous.empty());
    std::set<std::string> below;
    for (const Rung& rung : ladder.rungs) {
      CAPTURE(rung.name);
      CHECK(names.insert(rung.name).second);
      CHECK(rung.name == rung.source.substr(0, rung.source.rfind('.')));
      CHECK(std::filesystem::exists(std::filesystem::path(CONVLADDER_SOURCE_DIR) / rung.source));
      CHECK(rung.name.find("/" + ladder.name + "/") != std::string::npos);
      CHECK(!rung.idea.empty());
      CHECK(rung.idea.find('\n') == std::string::npos);
      if (rung.previous.empty()) CHECK(&rung == &ladder.rungs.front());
      if (rung.spine > 1) CHECK(below.contains(rung.previous));
      CHECK(rung.is_cuda() == rung.name.starts_with("cuda_"));
      CHECK(rung.code_at(Where::cpu).has_value() == !rung.is_cuda());
      below.insert(rung.name);
    }
  }
}

TEST_CASE("a removed rung is none, the one to use instead is, and the docs list both") {
  std::set<std::string> names, removed_names;
  for (const Ladder& ladder : ladders())
    for (const Rung& rung : ladder.rungs) names.insert(rung.name);
  std::ifstream file(std::filesystem::path(CONVLADDER_SOURCE_DIR) / "docs/other_names.md");
  std::stringstream docs;
  docs << file.rdbuf();
  const std::string text = docs.str().substr(docs.str().find("{#removed_rungs}"));
  for (const RemovedRung& removed : removed_rungs()) {
    CAPTURE(removed.name);
    CHECK(!names.contains(removed.name));
    CHECK(removed_names.insert(removed.name).second);
    CHECK(names.contains(removed.instead));
    const std::size_t row = text.find("| `" + removed.name + "` | ");
    REQUIRE(row != std::string::npos);
    const std::string columns = text.substr(row, text.find('\n', row) - row);
    CHECK(columns.find('[' + removed.instead + ']') != std::string::npos);
  }
  std::size_t rows = 0;
  for (std::size_t at = text.find("| `c"); at != std::string::npos; at = text.find("| `c", at + 1))
    ++rows;
  CHECK(rows == removed_rungs().size());
}

TEST_CASE("a renamed rung has one present name, and the docs list both") {
  std::set<std::string> names, earlier;
  for (const Ladder& ladder : ladders())
    for (const Rung& rung : ladder.rungs) names.insert(rung.name);
  std::ifstream file(std::filesystem::path(CONVLADDER_SOURCE_DIR) / "docs/other_names.md");
  std::stringstream docs;
  docs << file.rdbuf();
  const std::string text = docs.str().substr(docs.str().find("{#renamed_rungs}"));
  for (const RenamedRung& renamed : renamed_rungs()) {
    CAPTURE(renamed.name);
    CHECK(!names.contains(renamed.name));
    CHECK(earlier.insert(renamed.name).second);
    CHECK(names.contains(renamed.now));
    const std::size_t row = text.find("| `" + renamed.name + "` | ");
    REQUIRE(row != std::string::npos);
    const std::string columns = text.substr(row, text.find('\n', row) - row);
    CHECK(columns.find('[' + renamed.now + ']') != std::string::npos);
  }
}

TEST_CASE("spines come first in their order before alternatives and advanced rungs") {
  for (const Ladder& ladder : ladders()) {
    CAPTURE(ladder.name);
    std::set<std::string> all, parts, part;
    for (const Rung& rung : ladder.rungs) all.insert(rung.name);
    const Rung* before = nullptr;
    for (const Rung& rung : ladder.rungs) {
      CAPTURE(rung.name);
      CHECK((rung.spine > 0) == (rung.level == Level::spine));
      if (rung.spine == 1) {
        CHECK(parts.insert(rung.part).second);
        part.clear();
      } else if (rung.spine > 1) {
        CHECK(before->spine == rung.spine - 1);
        CHECK(before->part == rung.part);
        CHECK(part.contains(rung.previous));  // the step is one of this spine
      } else {
        CHECK(rung.part.empty());
        CHECK(all.contains(rung.previous));
      }
      if (before != nullptr) CHECK(before->level <= rung.level);
      part.insert(rung.name);
      before = &rung;
    }
    CHECK(ladder.rungs.front().spine == 1);
    // From each rung the way by `previous` ends at the bottom.
    for (const Rung& rung : ladder.rungs) {
      CAPTURE(rung.name);
      const Rung* below = &rung;
      std::size_t steps = 0;
      while (!below->previous.empty() && steps <= ladder.rungs.size()) {
        below = &*std::find_if(ladder.rungs.begin(), ladder.rungs.end(),
                               [&](const Rung& other) { return other.name == below->previous; });
        ++steps;
      }
      CHECK(below == &ladder.rungs.front());
    }
  }
}

TEST_CASE("choices: one for each problem, always the same, and the suite meets several" *
          doctest::test_suite("all rungs")) {
  constexpr std::size_t kMost = 80;  // few, so that they tell variants apart, not sizes
  for (const Ladder& ladder : ladders()) {
    const std::vector<Problem> problems = all_problems(ladder.name);
    for (const Rung& rung : ladder.rungs) {
      for (const Where where : kEverywhere) {
        // A rung asks its device, e.g. for its multiprocessors.
        if (!rung.code_at(where) || device_at(where) == nullptr) continue;
        CAPTURE(rung.name);
        CAPTURE(name_of(where));
        const AnyImplementation& code = *rung.code_at(where);
        std::vector<const Problem*> taken;
        std::vector<std::string> choices;
        for (const Problem& problem : problems) {
          if (code.supports(problem)) continue;
          taken.push_back(&problem);
          choices.push_back(code.choice(problem));
        }
        const std::set<std::string> different(choices.begin(), choices.end());
        if (different == std::set<std::string>{""}) continue;  // does the same for all
        CHECK(!different.contains(""));
        CHECK(different.size() >= 2);
        CHECK(different.size() <= kMost);
        for (std::size_t i = taken.size(); i-- > 0;) {  // in reverse order: no state is kept
          CAPTURE(describe(*taken[i]));
          CHECK(code.choice(*taken[i]) == choices[i]);
        }
      }
    }
  }
}

TEST_CASE("a CUDA rung takes problems on the architecture that it needs and none on less" *
          doctest::test_suite("all rungs")) {
  const DefaultDeviceAfterwards restored;
  const std::set<std::string> known = {"sm_75", "sm_80", "sm_90", "sm_90a"};
  for (const Ladder& ladder : ladders()) {
    const std::vector<Problem> problems = all_problems(ladder.name);
    for (const Rung& rung : ladder.rungs) {
      CAPTURE(rung.name);
      if (!rung.is_cuda()) {
        CHECK(rung.needs == "cpu");
        continue;
      }
      CHECK(known.contains(rung.needs));
      for (const DeviceModel& model : cuda_on_cpu::control::device_models()) {
        CAPTURE(std::string(model.architecture));
        cuda_on_cpu::control::set_device_model(model);
        const bool takes_some =
            std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
              return !rung.code_at(Where::emulated)->supports(problem);
            });
        CHECK(takes_some == !rung.why_not_on(model.compute_capability));
      }
    }
  }
}

TEST_CASE("every source of a rung is in the table") {
  std::set<std::string> named;
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) named.insert(rung.source);
  }
  int sources = 0;
  for (const std::string folder : {"cpu_reference", "cuda_naive", "cuda_optimized"}) {
    const auto root = std::filesystem::path(CONVLADDER_SOURCE_DIR);
    for (const auto& file : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string suffix = file.path().extension().string();
      if (suffix != ".cpp" && suffix != ".cu") continue;
      const std::string source = file.path().lexically_relative(root).generic_string();
      CAPTURE(source);
      // Functions that rungs call stand beside them; a rung is what provides an Implementation.
      const std::ifstream stream(file.path());
      std::ostringstream content;
      content << stream.rdbuf();
      if (content.str().find("Implementation<") == std::string::npos) continue;
      CHECK(named.contains(source));
      ++sources;
    }
  }
  CHECK(sources > 0);
}

TEST_SUITE_END();

}  // namespace convladder::testing
