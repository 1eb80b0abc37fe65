/// @file col2im.cpp
/// @brief Columns added back to their pixels.
#include <algorithm>
#include <vector>

#include "ladders/ladders.hpp"
#include "tests/ladders/arrays.hpp"
#include "tests/ladders/columns.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

std::vector<Identity<Im2colProblem>> col2im_identities(const Subject& f, const CheckOptions& opt) {
  const auto x_of = [&f](const Im2colProblem& p, const Arrays& in) { return f(p, in).at("x"); };
  return {
      {"linear",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p), more = f.inputs(p, 1);
         expect_same(x_of(p, {{"col", sum(in.at("col"), more.at("col"))}}),
                     sum(x_of(p, in), x_of(p, more)));
       }},
      {"an image alone", [](const Im2colProblem& p) { return p.N > 1; },
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         const Array x = x_of(p, in);
         for (int n = 0; n < p.N; ++n) {
           expect_same(x_of(of_one_image(p), {{"col", image(in.at("col"), n)}}), image(x, n));
         }
       }},
      {"padding by hand",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(x_of(p, in), inside_padding(p).gather(x_of(unpadded(p), in), x_shape(p)));
       }},
      {"dilation = zero rows of a larger kernel",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         const Im2colProblem large = undilated(p);
         const Array col = dilated_rows(p).scatter(in.at("col"), col_shape(large));
         expect_same(x_of(p, in), x_of(large, {{"col", col}}));
       }},
      {"stride = zero windows between",
       {},
       [=, &f](const Im2colProblem& p) {
         const Arrays in = f.inputs(p);
         const Im2colProblem large = with_stride_1(p);
         const Array col = strided_columns(p).scatter(in.at("col"), col_shape(large));
         expect_same(x_of(p, in), x_of(large, {{"col", col}}));
       }},
      {"add = old + write, and twice is 2x",
       {},
       [=, &f](const Im2colProblem& p) {
         const Im2colProblem adding = with_request(p, Request::add);
         Arrays in = f.inputs(adding);
         const Array x = x_of(p, {{"col", in.at("col")}});
         expect_same(x_of(adding, in), sum(in.at("into"), x));
         in["into"] = x;
         expect_same(x_of(adding, in), sum(x, x), "twice:");
       }},
      {"none touches nothing",
       {},
       [=, &f](const Im2colProblem& p) {
         const Im2colProblem nothing = with_request(p, Request::none);
         const Arrays in = f.inputs(nothing);
         expect_same(x_of(nothing, in), in.at("into"));
       }},
      {"adjoint of im2col",
       {},
       [=, &f](const Im2colProblem& p) {
         const Subject forward = first_cpu_rung("im2col", opt);
         const Arrays col = f.inputs(p), in = forward.inputs(p, 1);
         expect_equal_inner(inner(forward(p, in).at("col"), col.at("col")),
                            inner(in.at("x"), x_of(p, col)));
       }},
      {"col2im(im2col(x)) = x times the number of windows",
       {},
       [=](const Im2colProblem& p) {
         const Subject forward = first_cpu_rung("im2col", opt);
         const Array x = forward.inputs(p).at("x");
         Array ones = zeros(col_shape(p));
         for (float& value : ones.as<float>()) value = 1;
         Array expected = x_of(p, {{"col", ones}});  // each pixel's number of windows
         for (std::size_t i = 0; i < floats(x).size(); ++i) expected.as<float>()[i] *= floats(x)[i];
         expect_same(x_of(p, {{"col", forward(p, {{"x", x}}).at("col")}}), expected);
       }},
  };
}

}  // namespace

LadderTests col2im_tests() {
  return {column_problems,
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_columns(dice); });
          },
          {},
          checked<Im2colProblem>(col2im_identities, column_bases),
          column_limits,
          small_columns};
}

}  // namespace convladder::testing
