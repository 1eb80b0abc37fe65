/// @file im2col.cpp
/// @brief Windows as columns.
#include <algorithm>
#include <vector>

#include "ladders/ladders.hpp"
#include "tests/ladders/arrays.hpp"
#include "tests/ladders/columns.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

std::vector<Identity<Im2colProblem>> im2col_identities(const Subject& f, const CheckOptions& opt) {
  const auto col_of = [&f](const Im2colProblem& p, const Arrays& in) { return f(p, in).at("col"); };
  return {
      {"linear",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p), more = f.inputs(p, 1);
         expect_same(col_of(p, {{"x", sum(in.at("x"), more.at("x"))}}),
                     sum(col_of(p, in), col_of(p, more)));
       }},
      {"an image alone", [](const Im2colProblem& p) { return p.N > 1; },
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         const Array col = col_of(p, in);
         for (int n = 0; n < p.N; ++n) {
           expect_same(col_of(of_one_image(p), {{"x", image(in.at("x"), n)}}), image(col, n));
         }
       }},
      {"padding by hand",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         const Im2colProblem large = unpadded(p);
         const Array x = inside_padding(p).scatter(in.at("x"), x_shape(large));
         expect_same(col_of(p, in), col_of(large, {{"x", x}}));
       }},
      {"dilation = rows of a larger kernel",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(col_of(p, in), dilated_rows(p).gather(col_of(undilated(p), in), col_shape(p)));
       }},
      {"stride = every few windows",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(col_of(p, in),
                     strided_columns(p).gather(col_of(with_stride_1(p), in), col_shape(p)));
       }},
      {"add = old + write, and twice is 2x",
       {},
       [=, &f](const Im2colProblem& p) {
         const Im2colProblem adding = with_request(p, Request::add);
         Arrays in = f.inputs(adding);
         const Array col = col_of(p, {{"x", in.at("x")}});
         const Array once = col_of(adding, in);
         expect_same(once, sum(in.at("into"), col));
         in["into"] = col;
         expect_same(col_of(adding, in), sum(col, col), "twice:");
       }},
      {"none touches nothing",
       {},
       [=, &f](const Im2colProblem& p) {
         const Im2colProblem nothing = with_request(p, Request::none);
         const Arrays in = f.inputs(nothing);
         expect_same(col_of(nothing, in), in.at("into"));
       }},
      {"adjoint of col2im",
       {},
       [=, &f](const Im2colProblem& p) {
         const Subject back = first_cpu_rung("col2im", opt);
         const Arrays in = f.inputs(p), col = back.inputs(p, 1);
         expect_equal_inner(inner(col_of(p, in), col.at("col")),
                            inner(in.at("x"), back(p, col).at("x")));
       }},
  };
}

}  // namespace

LadderTests im2col_tests() {
  return {column_problems,
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_columns(dice); });
          },
          {},
          checked<Im2colProblem>(im2col_identities, column_bases),
          column_limits,
          small_columns};
}

}  // namespace convladder::testing
