#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {

BenchmarkProblems sparse_to_dense_problems() {
  BenchmarkProblems all;
  const auto add = [&](const std::string& sites, int C, const std::string& teaches) {
    const RulebookProblem grid = book_over(sites, kSubm3, RulebookForm::pairs);
    all.push_back({"sparse_to_dense", text(sites, "-", C), teaches,
                   validated(SparseToDenseProblem{.grid = grid, .C = C}), sites});
  };
  add("eighth", 64, "a backbone's fourth stage, for a dense head");
  add("eighth", 128, "as many channels as a backbone hands on");
  add("quarter", 32, "an emptier grid: nearly all stores are zeros");
  return all;
}

}  // namespace convladder::benchmarks
