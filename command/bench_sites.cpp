#include "command/bench_sites.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "command/files.hpp"
#include "command/npy.hpp"
#include "command/program.hpp"
#include "command/terminal.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

using benchmarks::BenchmarkProblem;
using benchmarks::Plan;

/// A sparse problem in a form that other programs can read.
nlohmann::ordered_json as_json(const BenchmarkProblem& problem, const RulebookProblem& book) {
  const auto axes = [&](const PerAxis& values) {
    return std::vector<int>(values.value, values.value + book.ndim);
  };
  nlohmann::ordered_json json = {{"ladder", problem.ladder},    {"id", problem.id},
                                 {"sites", problem.sites},      {"batch", book.batch},
                                 {"shape", axes(book.shape)},   {"mode", name_of(book.mode)},
                                 {"kernel", axes(book.kernel)}, {"stride", axes(book.stride)},
                                 {"pad", axes(book.pad)},       {"dilation", axes(book.dilation)}};
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem.problem)) {
    json["cin"] = conv->Cin;
    json["cout"] = conv->Cout;
    json["bias"] = conv->bias;
    json["activation"] = name_of(conv->activation);
  } else if (const auto* pool = std::get_if<SparsePoolProblem>(&problem.problem)) {
    json["cin"] = pool->C;
  } else if (const auto* dense = std::get_if<SparseToDenseProblem>(&problem.problem)) {
    json["cin"] = dense->C;
  } else if (const auto* images = std::get_if<SparseGlobalPoolProblem>(&problem.problem)) {
    json["cin"] = images->C;
    json["reduce"] = name_of(images->reduce);
  } else {
    json["form"] = name_of(book.form);
  }
  // Larger sets take too long to generate.
  constexpr int kMostCounted = 1'000'000;
  if (book.sites <= kMostCounted) {
    const Rulebook& rulebook = benchmarks::rulebook_of(problem);
    json["outputs"] = rulebook.M;
    json["pairs"] = rulebook.pairs.shape()[0];
  }
  return json;
}

}  // namespace

int write_sites(const std::string& path, const std::vector<Plan>& plans) {
  OutputFolder folder("export-sites", path);
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  std::set<std::string> written;
  for (const Plan& plan : plans) {
    const BenchmarkProblem& problem = *plan.problem;
    if (problem.sites.empty()) continue;
    problems.push_back(as_json(problem, *benchmarks::book_of(problem.problem)));
    if (written.insert(problem.sites).second) {
      write_bytes(folder.parameter(), folder.stage(problem.sites + ".npy"),
                  npy_bytes(benchmarks::sites_of(problem)));
    }
  }
  if (written.empty()) throw BadInput("export-sites: none of the selected problems is sparse");
  const std::string text = problems.dump(1) + "\n";
  write_bytes(folder.parameter(), folder.stage("problems.json"),
              {reinterpret_cast<const std::byte*>(text.data()), text.size()});
  folder.commit();
  std::printf("%zu problems over %zu sets of sites: %s\n", problems.size(), written.size(),
              printable(path).c_str());
  return kAllAgree;
}

}  // namespace convladder::command
