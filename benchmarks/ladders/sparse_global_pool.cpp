#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {

BenchmarkProblems sparse_global_pool_problems() {
  BenchmarkProblems all;
  const auto add = [&](const std::string& sites, int C, PoolReduction reduce,
                       const std::string& teaches) {
    const RulebookProblem grid = book_over(sites, kSubm3, RulebookForm::pairs);
    all.push_back({"sparse_global_pool", text(sites, "-", C, "-", name_of(reduce)), teaches,
                   validated(SparseGlobalPoolProblem{.grid = grid, .C = C, .reduce = reduce}),
                   sites});
  };
  add("half", 64, PoolReduction::max, "many rows to one image: traffic alone");
  add("half", 64, PoolReduction::mean, "the same traffic, sums and a division");
  add("eighth", 128, PoolReduction::mean, "what a classifier takes of a backbone's last stage");
  return all;
}

}  // namespace convladder::benchmarks
