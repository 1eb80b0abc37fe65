#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

DrawnProblem draw_gemm(Drawer& drawer, double work) {
  for (;;) {
    const int much = drawer.between(0, 4);
    const int m = drawer.edge(1, much == 1 ? 2000 : 300),
              n = drawer.edge(1, much == 2 ? 2000 : 300),
              k = drawer.one_in(60) ? 0 : drawer.edge(1, much == 3 ? 4000 : 300);
    if (1.0 * m * n * k > 4 * work) continue;
    DrawnProblem problem;
    set(problem, "m", {m}), set(problem, "n", {n}), set(problem, "k", {k});
    return problem;
  }
}

double gemm_work(const GemmProblem& p) {
  return 1.0 * p.M * p.N * p.K + 1.0 * p.M * p.N + 1.0 * p.M * p.K + 1.0 * p.K * p.N;
}

}  // namespace

DrawnLadder drawn_gemm() {
  return {.draw = draw_gemm,
          .work = work_in<GemmProblem>(gemm_work),
          .words = {kProductDtypeWords, kActivationWords, kBiasWords, kMapWords}};
}

}  // namespace convladder::command
