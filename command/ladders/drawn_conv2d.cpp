/// @file drawn_conv2d.cpp
/// @brief Random problems of conv2d, conv2d_dgrad and conv2d_wgrad.
#include <algorithm>

#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

/// The same axis with windows at every position.
Drawer::Axis dense(Drawer::Axis axis) {
  axis.stride = axis.dilation = 1;
  const std::int64_t padding = std::int64_t{axis.before} + axis.after - (axis.kernel - 1);
  axis.size = static_cast<int>(std::max<std::int64_t>(1, axis.out - padding));
  axis.out = axis.size + padding;
  return axis;
}

DrawnProblem draw_conv2d(Drawer& drawer, double work) {
  for (;;) {
    // The extent that is large; 0: none.
    const int much = drawer.between(0, 7);
    const bool wide = much == 1 || much == 2, tall = much == 3, deep = much == 4;
    const bool many_filters = much == 5, many_images = much == 6;
    const int n = drawer.one_in(60) ? 0 : drawer.edge(1, many_images ? 40 : 3);
    int groups = 1, c = drawer.edge(1, deep ? 300 : 20),
        k = drawer.edge(1, many_filters ? 300 : 24);
    if (drawer.one_in(3)) {  // depthwise
      groups = c;
      k = c * (drawer.one_in(3) ? drawer.between(2, 3) : 1);
    } else if (drawer.one_in(4)) {
      groups = drawer.between(2, 5);
      c = groups * drawer.edge(1, deep ? 70 : 6);
      k = groups * drawer.edge(1, many_filters ? 70 : 6);
    }
    int r = drawer.one_of({1, 1, 2, 3, 3, 3, 4, 5, 6, 7}), s = r;
    if (drawer.one_in(3)) s = drawer.one_of({1, 2, 3, 4, 5, 7});
    if (drawer.one_in(15)) r = drawer.edge(1, 40);
    if (drawer.one_in(15)) s = drawer.edge(1, 40);
    const bool winograd = drawer.one_in(5);  // a common case that random draws rarely produce: 3 x
                                             // 3, stride and dilation 1
    if (winograd) r = s = 3;
    Drawer::Axis rows = drawer.axis(tall ? 700 : 40, r);
    Drawer::Axis columns = drawer.axis(wide ? 700 : 40, s);
    if (drawer.one_in(2)) columns.stride = rows.stride, columns.dilation = rows.dilation;
    if (winograd) rows = dense(rows), columns = dense(columns);
    DrawnProblem problem;
    set(problem, "n", {n}), set(problem, "c", {c}), set(problem, "k", {k});
    set(problem, "h", {rows.size}), set(problem, "w", {columns.size});
    set(problem, "r", {r}), set(problem, "s", {s});
    set_unless(problem, "pad", {rows.before, rows.after, columns.before, columns.after});
    if (drawer.one_in(12)) problem.options["pad"] = "same";
    set_unless(problem, "stride", {rows.stride, columns.stride});
    set_unless(problem, "dilation", {rows.dilation, columns.dilation});
    set_unless(problem, "groups", {groups});
    const double outputs = 1.0 * n * k * static_cast<double>(rows.out * columns.out);
    if (outputs * (1.0 * c / groups) * r * s > work ||
        1.0 * n * c * rows.size * columns.size > work)
      continue;
    return problem;
  }
}

double conv2d_work(const Conv2dProblem& p) {
  const double outputs = 1.0 * p.N * p.K * p.P * p.Q, inputs = 1.0 * p.N * p.C * p.H * p.W;
  const int channels = p.C / p.groups;  // of a filter
  return outputs * channels * p.R * p.S + outputs + inputs + 1.0 * p.K * channels * p.R * p.S;
}

DrawnLadder drawn_with(std::vector<WordOption> words) {
  return {
      .draw = draw_conv2d, .work = work_in<Conv2dProblem>(conv2d_work), .words = std::move(words)};
}

}  // namespace

DrawnLadder drawn_conv2d() {
  return drawn_with({kLayoutWords, kDtypeWords, kActivationWords, kBiasWords, kMapWords});
}
DrawnLadder drawn_conv2d_dgrad() { return drawn_with({kLayoutWords, kDtypeWords}); }
DrawnLadder drawn_conv2d_wgrad() { return drawn_with({kLayoutWords, kDtypeWords}); }

}  // namespace convladder::command
