#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {
namespace {

void add_sparse_poolings(BenchmarkProblems& all, const std::string& ladder) {
  const auto add = [&](const std::string& sites, int C, const Window& window,
                       const std::string& teaches) {
    const SparsePoolProblem pool = {.book = book_over(sites, window, RulebookForm::pairs), .C = C};
    all.push_back({ladder, text(sites, "-", C, "-", window.id), teaches, pool, sites});
  };
  add("sweep", 16, kK2s2, "windows that do not overlap, few channels: the indices weigh most");
  add("sweep", 64, kK2s2, "windows that do not overlap: traffic alone");
  add("half", 32, kK3s2, "windows that overlap: features are read again");
  add("half", 64, kK3s2, "windows that overlap, more channels");
}

}  // namespace

BenchmarkProblems sparse_max_pool_problems() {
  BenchmarkProblems all;
  for (const char* ladder : {"sparse_max_pool", "sparse_max_pool_dgrad", "sparse_avg_pool"})
    add_sparse_poolings(all, ladder);
  return all;
}

}  // namespace convladder::benchmarks
