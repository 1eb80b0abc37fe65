/// @file drawn_im2col.cpp
/// @brief Random problems of im2col and col2im.
#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

DrawnProblem draw_columns(Drawer& drawer, double work) {
  for (;;) {
    const auto rank = static_cast<std::size_t>(drawer.one_of({1, 2, 2, 2, 3}));
    const bool wide = drawer.one_in(3);
    std::vector<int> sizes, kernel, pad, stride, dilation;
    const int n = drawer.one_in(60) ? 0 : drawer.edge(1, 4),
              c = drawer.edge(1, drawer.one_in(3) ? 100 : 9);
    double columns = 1, taps = 1, pixels = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      const int most = i + 1 == rank && wide ? 900 : rank == 3 ? 12 : 40;
      const int size =
          drawer.one_in(10) ? drawer.edge(1, 20) : drawer.one_of({1, 2, 3, 3, 4, 5, 7});
      const Drawer::Axis axis = drawer.axis(most, size);
      sizes.push_back(axis.size), kernel.push_back(axis.kernel), stride.push_back(axis.stride);
      dilation.push_back(axis.dilation), pad.push_back(axis.before), pad.push_back(axis.after);
      columns *= static_cast<double>(axis.out), taps *= axis.kernel, pixels *= axis.size;
    }
    if (n * c * (columns * taps + pixels) > work / 4) continue;
    DrawnProblem problem;
    set(problem, "n", {n}), set(problem, "c", {c});
    set(problem, "size", sizes), set(problem, "kernel", kernel);
    set_unless(problem, "pad", pad);
    set_unless(problem, "stride", stride), set_unless(problem, "dilation", dilation);
    if (drawer.one_in(3)) problem.options["request"] = drawer.one_of({"add", "none"});
    return problem;
  }
}

double columns_work(const Im2colProblem& p) {
  return static_cast<double>(p.N) *
         (static_cast<double>(p.rows()) * static_cast<double>(p.columns()) +
          static_cast<double>(p.C) * static_cast<double>(p.channel_size()));
}

}  // namespace

DrawnLadder drawn_im2col() {
  return {
      .draw = draw_columns, .work = work_in<Im2colProblem>(columns_work), .words = {kLayoutWords}};
}

DrawnLadder drawn_col2im() { return drawn_im2col(); }

}  // namespace convladder::command
