#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

/// The definition's multiply-adds, and the points.
double fft_work(const FftProblem& p) { return 1.0 * p.N * p.L * p.L + 2.0 * p.N * p.L; }

/// Mostly powers of two, which all rungs take.
DrawnProblem draw_fft(Drawer& drawer, double work) {
  for (;;) {
    const bool mersenne = drawer.one_in(2);
    const bool any_length = !mersenne && drawer.one_in(4);
    const int length = any_length ? drawer.edge(1, 300) : 1 << drawer.between(0, 13);
    const int lines = drawer.one_in(16) ? 0 : drawer.edge(1, 600);
    if (fft_work({.N = lines, .L = length}) > work) continue;
    DrawnProblem problem;
    set(problem, "n", {lines}), set(problem, "length", {length});
    if (mersenne) problem.options["ring"] = "mersenne";
    return problem;
  }
}

}  // namespace

DrawnLadder drawn_fft() {
  return {.draw = draw_fft,
          .work = work_in<FftProblem>(fft_work),
          .words = {{"direction", {"forward", "inverse"}}},
          .takes_reals = false};  // the ring decides
}

}  // namespace convladder::command
