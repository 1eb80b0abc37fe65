#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

/// The multiply-adds of the definition, and the points.
double fft_work(const FftProblem& p) {
  const double of_one = 1.0 * p.rows() * p.L;  // points
  return p.N * of_one * of_one + 2.0 * p.N * of_one;
}

/// Mostly powers of two, which most rungs support.
DrawnProblem draw_fft(Drawer& drawer, double work) {
  for (;;) {
    const bool mersenne = drawer.one_in(2), planes = drawer.one_in(3);
    const bool any_length = !mersenne && drawer.one_in(4);
    const int most = planes ? 40 : 300, bits = planes ? 7 : 13;
    const auto length = [&] {
      return any_length ? drawer.edge(1, most) : 1 << drawer.between(0, bits);
    };
    FftProblem drawn{.N = drawer.one_in(16) ? 0 : drawer.edge(1, 600), .L = length()};
    if (planes) drawn.H = length();
    if (fft_work(drawn) > work) continue;
    DrawnProblem problem;
    set(problem, "n", {drawn.N});
    set(problem, "length", planes ? std::vector{drawn.H, drawn.L} : std::vector{drawn.L});
    if (mersenne) problem.options["ring"] = "mersenne";
    return problem;
  }
}

}  // namespace

DrawnLadder drawn_fft() {
  return {.draw = draw_fft,
          .work = work_in<FftProblem>(fft_work),
          .words = {{"direction", {"forward", "inverse"}}, {"input", {"complex", "real"}}},
          .takes_reals = false};  // determined by the ring
}

}  // namespace convladder::command
