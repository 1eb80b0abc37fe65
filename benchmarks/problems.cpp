#include "benchmarks/problems.hpp"

#include <algorithm>
#include <iterator>
#include <list>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {

const std::vector<BenchmarkProblem>& benchmark_problems() {
  static const BenchmarkProblems all = [] {
    BenchmarkProblems problems;
    for (const auto& of_ladders :
         {conv2d_problems, column_problems, gemm_problems, rulebook_problems, sparse_conv_problems,
          sparse_max_pool_problems, sparse_global_pool_problems, sparse_to_dense_problems,
          voxelize_problems, fft_problems}) {
      BenchmarkProblems some = of_ladders();
      std::ranges::move(some, std::back_inserter(problems));
    }
    return problems;
  }();
  return all;
}

std::string describe(const BenchmarkProblem& benchmark) {
  const auto* pool = std::get_if<SparsePoolProblem>(&benchmark.problem);
  if (pool != nullptr && pool->pairs == 0)
    return text(convladder::describe(pool->book), ", ", pool->C, " channels");
  const auto* conv = std::get_if<SparseConvProblem>(&benchmark.problem);
  if (conv == nullptr || conv->pairs != 0) return convladder::describe(benchmark.problem);
  std::string line =
      text(convladder::describe(conv->book), ", ", conv->Cin, " to ", conv->Cout, " channels");
  if (conv->bias) line += ", bias";
  if (conv->activation != Activation::none) line += text(", ", name_of(conv->activation));
  return line;
}

const Array& sites_of(const BenchmarkProblem& benchmark) { return sites_named(benchmark.sites); }

const RulebookProblem* book_of(const Problem& problem) {
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem)) return &conv->book;
  if (const auto* pool = std::get_if<SparsePoolProblem>(&problem)) return &pool->book;
  if (const auto* dense = std::get_if<SparseToDenseProblem>(&problem)) return &dense->grid;
  if (const auto* images = std::get_if<SparseGlobalPoolProblem>(&problem)) return &images->grid;
  return std::get_if<RulebookProblem>(&problem);
}

const Rulebook& rulebook_of(const BenchmarkProblem& benchmark) {
  constexpr std::size_t kKept = 4;
  // By what the ids of problems tell apart: the sites and the window.
  struct Made {
    std::string sites, window;
    Rulebook book;
  };
  static std::list<Made> made;
  RulebookProblem book = *book_of(benchmark.problem);
  book.form = RulebookForm::pairs;  // the oracle's has all forms
  const std::string window = convladder::describe(book);
  for (auto known = made.begin(); known != made.end(); ++known) {
    if (known->sites != benchmark.sites || known->window != window) continue;
    made.splice(made.begin(), made, known);
    return known->book;
  }
  if (made.size() == kKept) made.pop_back();
  made.push_front({benchmark.sites, window, make_rulebook(book, sites_of(benchmark))});
  return made.front().book;
}

Problem whole_problem(const BenchmarkProblem& benchmark, const Problem& variant) {
  if (const auto* conv = std::get_if<SparseConvProblem>(&variant))
    return convolution_over(rulebook_of(benchmark), *conv);
  if (const auto* pool = std::get_if<SparsePoolProblem>(&variant))
    return pooling_over(rulebook_of(benchmark), pool->C);
  return variant;
}

double operations(const Problem& problem) {
  if (const auto* p = std::get_if<Conv2dProblem>(&problem)) {
    const int channels = p->C / p->groups;
    return 2.0 * p->N * p->K * p->P * p->Q * channels * p->R * p->S;
  }
  if (const auto* p = std::get_if<GemmProblem>(&problem)) return 2.0 * p->M * p->N * p->K;
  if (const auto* p = std::get_if<SparseConvProblem>(&problem))
    return 2.0 * static_cast<double>(p->pairs) * p->Cin * p->Cout;
  // As everybody counts a fast transform: L/2 log2(L) butterflies of 10 each, and half of them for
  // real points.
  if (const auto* p = std::get_if<FftProblem>(&problem))
    return (p->is_real() ? 2.5 : 5.0) * static_cast<double>(p->points()) * p->passes();
  return 0;
}

}  // namespace convladder::benchmarks
