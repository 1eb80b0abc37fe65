/// @file drawn_sparse.cpp
/// @brief Random rulebooks and random sparse problems.
#include <algorithm>
#include <cmath>

#include "command/ladders/drawn_ladder.hpp"

namespace convladder::command {
namespace {

/// Sites and, for ladders with a kernel, the kernel.
DrawnProblem draw_sites(Drawer& drawer, double work, bool moves_a_kernel, bool huge_grids) {
  DrawnProblem problem;
  const auto ndim = static_cast<std::size_t>(drawer.one_of({1, 2, 2, 3, 3, 3, 4}));
  const char* const mode =
      drawer.one_of({"subm", "subm", "strided", "strided", "transposed", "inverse"});
  const bool subm = mode == std::string("subm");
  const bool huge = huge_grids && drawer.one_in(25);  // up to 2^31 cells
  std::vector<int> shape, kernel, stride, pad, dilation, out_padding;
  double taps = 1;
  const int most = ndim == 1 ? 4000 : ndim == 2 ? 90 : ndim == 3 ? 40 : 9;
  for (std::size_t i = 0; i < ndim; ++i) {
    shape.push_back(
        huge ? drawer.edge(16, static_cast<int>(std::pow(2.0, 30.0 / static_cast<double>(ndim))))
             : drawer.edge(1, most));
    const int k = drawer.one_of({1, 2, 3, 3, 3, 4, 5});
    kernel.push_back(subm ? k | 1 : k);
    dilation.push_back(drawer.one_in(4) ? drawer.between(2, drawer.one_in(4) ? 33 : 3) : 1);
    stride.push_back(subm || drawer.one_in(2) ? 1 : drawer.between(2, drawer.one_in(4) ? 7 : 3));
    pad.push_back(subm ? 0 : drawer.between(0, drawer.one_in(4) ? 9 : 2));
    out_padding.push_back(
        drawer.one_in(2) ? 0 : drawer.between(0, std::max(stride.back(), dilation.back()) - 1));
    taps *= kernel.back();
  }
  if (drawer.one_in(10)) {  // many taps
    kernel.back() = drawer.edge(1, 70) | 1;
  }
  if (moves_a_kernel) {
    problem.options["mode"] = mode;
    set(problem, "kernel", kernel);
    set_unless(problem, "dilation", dilation);
    if (!subm) set_unless(problem, "stride", stride);
    if (!subm && drawer.one_in(5)) {
      std::vector<int> both;
      for (const int before : pad) both.insert(both.end(), {before, drawer.between(0, 4)});
      set(problem, "pad", both);
    } else if (!subm) {
      set_unless(problem, "pad", pad);
    }
    if (mode == std::string("transposed")) set_unless(problem, "out-padding", out_padding);
  }
  set(problem, "shape", shape);
  if (drawer.one_in(4)) set(problem, "batch", {drawer.edge(1, 4)});
  const int sites = drawer.one_in(30) ? 0 : drawer.edge(1, drawer.one_in(6) ? 3000 : 300);
  const double most_sites = std::max(1.0, work / 64 / taps);
  set(problem, "sites", {static_cast<int>(std::min<double>(sites, most_sites))});
  if (!drawer.one_in(3))
    problem.options["places"] =
        drawer.one_of({"cluster", "cluster", "block", "plane", "line", "corners"});
  if (drawer.one_in(2))
    problem.options["order"] = drawer.one_of({"sorted", "reversed", "innermost"});
  return problem;
}

DrawnProblem draw_rulebook(Drawer& drawer, double work) {
  DrawnProblem problem = draw_sites(drawer, work, true, true);
  if (!drawer.one_in(4)) problem.options["form"] = drawer.one_of({"table", "sorted", "split"});
  return problem;
}

/// Channels of the input, and other options.
void draw_channels(Drawer& drawer, DrawnProblem& problem, bool others) {
  const int most_channels = drawer.one_in(4) ? 150 : 40;
  set(problem, "cin", {drawer.edge(1, most_channels)});
  if (others) set(problem, "cout", {drawer.edge(1, most_channels)});
}

DrawnProblem draw_convolution(Drawer& drawer, double work) {
  DrawnProblem problem = draw_sites(drawer, work, true, false);
  draw_channels(drawer, problem, true);
  return problem;
}

DrawnProblem draw_pool(Drawer& drawer, double work) {
  DrawnProblem problem = draw_sites(drawer, work, true, false);
  draw_channels(drawer, problem, false);
  return problem;
}

DrawnProblem draw_to_dense(Drawer& drawer, double work) {
  DrawnProblem problem = draw_sites(drawer, work, false, false);
  draw_channels(drawer, problem, false);
  return problem;
}

DrawnProblem draw_global_pool(Drawer& drawer, double work) {
  DrawnProblem problem = draw_to_dense(drawer, work);
  problem.options["reduce"] = drawer.one_of({"max", "mean"});
  return problem;
}

double rulebook_work(const RulebookProblem& p) {
  return 32.0 * p.sites * p.KV +
         static_cast<double>(key_count(p, p.out_shape) + key_count(p, p.shape)) / 256;
}

double convolution_work(const SparseConvProblem& p) {
  return static_cast<double>(p.pairs) * p.Cin * p.Cout + 32.0 * p.book.KV * (p.N + p.M) +
         1.0 * p.book.KV * p.Cin * p.Cout;
}

double pool_work(const SparsePoolProblem& p) {
  return static_cast<double>(p.pairs) * p.C + 32.0 * p.book.KV * (p.N + p.M);
}

double to_dense_work(const SparseToDenseProblem& p) {
  return static_cast<double>(cells_of(p)) * p.grid.batch * p.C;
}

/// One thread visits all rows for each element of y.
double global_pool_work(const SparseGlobalPoolProblem& p) {
  return static_cast<double>(p.grid.sites) * p.grid.batch * p.C;
}

}  // namespace

DrawnLadder drawn_rulebook() {
  return {.draw = draw_rulebook,
          .work = work_in<RulebookProblem>(rulebook_work),
          .takes_reals = false,
          .refuses_bad_sites = true};
}

DrawnLadder drawn_sparse_dgrad() {
  return {.draw = draw_convolution,
          .work = work_in<SparseConvProblem>(convolution_work),
          .words = {kDtypeWords}};
}

DrawnLadder drawn_sparse_wgrad() { return drawn_sparse_dgrad(); }

DrawnLadder drawn_sparse_conv() {
  DrawnLadder drawn = drawn_sparse_dgrad();
  drawn.words.push_back(kActivationWords);
  drawn.words.push_back(kBiasWords);
  return drawn;
}

DrawnLadder drawn_sparse_max_pool() {
  return {.draw = draw_pool, .work = work_in<SparsePoolProblem>(pool_work)};
}

DrawnLadder drawn_sparse_max_pool_dgrad() { return drawn_sparse_max_pool(); }

DrawnLadder drawn_sparse_avg_pool() { return drawn_sparse_max_pool(); }

DrawnLadder drawn_sparse_global_pool() {
  return {.draw = draw_global_pool, .work = work_in<SparseGlobalPoolProblem>(global_pool_work)};
}

DrawnLadder drawn_sparse_to_dense() {
  return {.draw = draw_to_dense, .work = work_in<SparseToDenseProblem>(to_dense_work)};
}

}  // namespace convladder::command
