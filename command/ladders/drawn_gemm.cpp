#include <algorithm>
#include <variant>

#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

DrawnProblem draw_gemm(Drawer& drawer, double work) {
  for (;;) {
    const int much = drawer.between(0, 4);
    const int m = drawer.edge(1, much == 1 ? 2000 : 300),
              n = drawer.edge(1, much == 2 ? 2000 : 300),
              k = drawer.one_in(60) ? 0 : drawer.edge(1, much == 3 ? 4000 : 300);
    const int batch = drawer.one_in(5) ? drawer.between(1, 4) : 0;
    if (1.0 * std::max(batch, 1) * m * n * k > 4 * work) continue;
    DrawnProblem problem;
    set(problem, "m", {m}), set(problem, "n", {n}), set(problem, "k", {k});
    if (batch > 0) set(problem, "batch", {batch});
    return problem;
  }
}

double gemm_work(const Problem& problem) {
  const auto* batch = std::get_if<GemmBatchProblem>(&problem);
  const GemmProblem& p = batch != nullptr ? batch->product : std::get<GemmProblem>(problem);
  return (batch != nullptr ? batch->count() : 1) *
         (1.0 * p.M * p.N * p.K + 1.0 * p.M * p.N + 1.0 * p.M * p.K + 1.0 * p.K * p.N);
}

}  // namespace

DrawnLadder drawn_gemm() {
  return {.draw = draw_gemm,
          .work = gemm_work,
          .words = {kProductDtypeWords, kActivationWords, kBiasWords, kMapWords, kTransposeWords}};
}

}  // namespace convladder::command
