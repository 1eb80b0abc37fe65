#include "tests/problems.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/tile_map_problem.hpp"
#include "tests/found_problems.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {

bool is_for(const TestProblem& problem, const std::string& rung) {
  return problem.rungs.empty() || std::ranges::find(problem.rungs, rung) != problem.rungs.end();
}

std::string title_of(const TestProblem& problem) {
  std::string line = problem.number == 0 ? "" : std::to_string(problem.number) + " ";
  line += problem.name + ": " + describe(problem.problem);
  if (problem.misalignment != 0) line += text(", misaligned by ", problem.misalignment, " bytes");
  return line;
}

std::vector<TestProblem> problems_of(const std::string& ladder) {
  std::vector<TestProblem> list = tests_of(ladder).problems();
  for (TestProblem& found : found_problems(ladder)) list.push_back(std::move(found));
  return list;
}

std::vector<TestProblem> random_problems(const std::string& ladder, int count, std::uint64_t seed) {
  return tests_of(ladder).random(count, seed);
}

std::vector<TestProblem> rounding_problems(const std::string& ladder) {
  const LadderTests& tests = tests_of(ladder);
  return tests.rounding ? tests.rounding() : std::vector<TestProblem>();
}

std::vector<std::vector<Problem>> forms_of(const Problem& problem) {
  constexpr std::array precisions = {Precision::fp32, Precision::tf32};
  std::vector<std::vector<Problem>> forms;
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      forms.emplace_back();
      for (const Precision precision : precisions) {
        Conv2dProblem form = *conv;
        form.layout = layout;
        form.precision = precision;
        forms.back().emplace_back(form);
      }
      // Both types of 16 bits take the same code: every other problem meets each.
      Conv2dProblem form = *conv;
      form.layout = layout;
      form.dtype = (conv->H + conv->W + conv->K) % 2 == 0 ? DType::f16 : DType::bf16;
      forms.push_back({form});
    }
  } else if (const auto* columns = std::get_if<Im2colProblem>(&problem)) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      Im2colProblem form = *columns;
      form.layout = layout;
      forms.push_back({form});
    }
  } else if (const auto* product = std::get_if<GemmProblem>(&problem)) {
    if (product->dtype == DType::f8) return {{problem}};  // with scales, which no other form has
    forms.emplace_back();
    for (const Precision precision : precisions) {
      GemmProblem form = *product;
      form.precision = precision;
      forms.back().emplace_back(form);
    }
    for (const DType dtype : {DType::f16, DType::bf16, DType::f8}) {
      GemmProblem form = *product;
      form.dtype = dtype;
      forms.push_back({form});
    }
  } else if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) {
    forms.emplace_back();
    for (const Precision precision : precisions) {
      SparseConvProblem form = *sparse;
      form.precision = precision;
      forms.back().emplace_back(form);
    }
    for (const DType dtype : {DType::f16, DType::bf16}) {
      SparseConvProblem form = *sparse;
      form.dtype = dtype;
      forms.push_back({form});
    }
  } else if (const auto* book = std::get_if<RulebookProblem>(&problem)) {
    for (const RulebookForm asked :
         {RulebookForm::pairs, RulebookForm::table, RulebookForm::sorted, RulebookForm::split}) {
      RulebookProblem form = *book;
      form.form = asked;
      forms.push_back({form});
    }
  } else {
    forms.push_back({problem});
  }
  return forms;
}

std::string name_of_form(const Problem& form) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&form))
    return text(name_of(conv->layout), " ",
                conv->dtype == DType::f32 ? name_of(conv->precision) : "16 bits");
  if (const auto* columns = std::get_if<Im2colProblem>(&form)) return name_of(columns->layout);
  if (const auto* product = std::get_if<GemmProblem>(&form))
    return product->dtype == DType::f32 ? name_of(product->precision) : name_of(product->dtype);
  if (const auto* sparse = std::get_if<SparseConvProblem>(&form))
    return sparse->dtype == DType::f32 ? name_of(sparse->precision) : name_of(sparse->dtype);
  if (const auto* book = std::get_if<RulebookProblem>(&form))
    return std::string(name_of(book->form));
  return "any";
}

namespace {

/// What tells problems of one name apart best: the mode of a rulebook, or the map of tiles.
std::string kind_of(const Problem& problem) {
  if (const auto* book = std::get_if<RulebookProblem>(&problem))
    return text(", ", name_of(book->mode));
  if (const auto* tiles = std::get_if<TileMapProblem>(&problem))
    return text(", ", name_of(tiles->map));
  TileMap map = TileMap::row_major;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) map = product->map;
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) map = conv->map;
  return map == TileMap::row_major ? "" : text(", ", name_of(map));
}

std::vector<TestProblem> make_fixed_problems(const std::string& ladder) {
  std::vector<TestProblem> list = problems_of(ladder);
  for (TestProblem& problem : rounding_problems(ladder)) list.push_back(std::move(problem));
  std::map<std::string, int> count;
  for (TestProblem& problem : list) {
    problem.id = problem.name + kind_of(problem.problem);
    ++count[problem.id];
  }
  std::map<std::string, int> seen;
  for (TestProblem& problem : list) {
    if (count[problem.id] > 1) problem.id += text(" #", ++seen[problem.id]);
  }
  return list;
}

}  // namespace

const std::vector<TestProblem>& fixed_problems(const std::string& ladder) {
  static std::map<std::string, std::vector<TestProblem>> known;
  const auto found = known.find(ladder);
  return found != known.end() ? found->second : known[ladder] = make_fixed_problems(ladder);
}

std::vector<RejectedProblem> rejected_problems() {
  return {{18, "no output column", {.C = 2, .H = 4, .W = 5, .K = 2, .R = 3, .S = 6}, "q = 0"},
          {19,
           "C's division makes an output of none",
           {.H = 5, .W = 5, .R = 6, .S = 6, .stride = {2, 2}},
           "p = 0"}};
}

}  // namespace convladder::testing
