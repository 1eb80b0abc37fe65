/// @file conv2d_dgrad.cpp
/// @brief The gradient of a convolution by its input.
#include <algorithm>
#include <tuple>
#include <vector>

#include "ladders/ladders.hpp"
#include "tests/ladders/conv2d_identities.hpp"
#include "tests/ladders/conv2d_problems.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

std::vector<Identity<Conv2dProblem>> dgrad_identities(const Subject& f, const CheckOptions& opt) {
  const auto dx_of = [&f](const Conv2dProblem& p, const Arrays& in) { return f(p, in).at("dx"); };
  return {
      {"linear in dy",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array first = dx_of(p, in);
         more["weights"] = in["weights"];
         const Array second = dx_of(p, more);
         in["dy"] = sum(in["dy"], more["dy"]);
         expect_same(dx_of(p, in), sum(first, second));
       }},
      {"linear in the weights",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array first = dx_of(p, in);
         more["dy"] = in["dy"];
         const Array second = dx_of(p, more);
         in["weights"] = sum(in["weights"], more["weights"]);
         expect_same(dx_of(p, in), sum(first, second));
       }},
      {"an image alone", [](const Conv2dProblem& p) { return p.N > 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         const Array dx = dx_of(p, in);
         for (int n = 0; n < p.N; ++n) {
           Arrays one = in;
           one["dy"] = image(in.at("dy"), n);
           expect_same(dx_of(of_one_image(p), one), image(dx, n), text("image ", n));
         }
       }},
      {"permuted output channels", [](const Conv2dProblem& p) { return p.K > p.groups; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const Array dx = dx_of(p, in);
         const ChannelOrder order{permutation(p.K / p.groups, opt.seed)};
         in["dy"] = permute_axis(in["dy"], 1, order);
         in["weights"] = permute_axis(in["weights"], 0, order);
         expect_same(dx_of(p, in), dx);
       }},
      {"permuted input channels", [](const Conv2dProblem& p) { return p.C > p.groups; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const Array dx = dx_of(p, in);
         const ChannelOrder order{permutation(p.C / p.groups, opt.seed)};
         in["weights"] = permute_axis(in["weights"], 1, order);
         expect_same(dx_of(p, in), permute_axis(dx, 1, order));
       }},
      {"stride = zeros between the outputs",
       [](const Conv2dProblem& p) { return p.stride.h != 1 || p.stride.w != 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays stuffed = in;
         stuffed["dy"] = stuff_output(p, in.at("dy"));
         expect_same(dx_of(p, in), dx_of(with_stride_1(p), stuffed));
       }},
      {"dilation = zeros in the filter",
       [](const Conv2dProblem& p) { return p.dilation.h != 1 || p.dilation.w != 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays stuffed = in;
         stuffed["weights"] = stuff_filter(p, in.at("weights"));
         expect_same(dx_of(p, in), dx_of(undilated(p), stuffed));
       }},
      {"groups = a block-diagonal filter", [](const Conv2dProblem& p) { return p.groups > 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays dense = in;
         dense["weights"] = block_diagonal(p, in.at("weights"));
         expect_same(dx_of(p, in), dx_of(without_groups(p), dense));
       }},
      {"padding by hand",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(dx_of(p, in), crop_by_hand(p, dx_of(unpadded(p), in)));
       }},
      {"a filter of one tap shifts back", [](const Conv2dProblem& p) { return p.groups == 1; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const int k0 = p.K - 1, c0 = p.C / 2, r0 = p.R - 1, s0 = p.S / 2;
         in["weights"] = make4(w_shape(p), [&](int k, int c, int r, int s) {
           return k == k0 && c == c0 && r == r0 && s == s0 ? 1.0f : 0.0f;
         });
         const View4 dy(in.at("dy"));
         expect_same(dx_of(p, in), make4(x_shape(p), [&](int n, int c, int h, int w) {
                       const int row = output_of(h, p.pad.top, r0, p.stride.h, p.dilation.h, p.P);
                       const int column =
                           output_of(w, p.pad.left, s0, p.stride.w, p.dilation.w, p.Q);
                       return c != c0 || row < 0 || column < 0 ? 0.0f : dy(n, k0, row, column);
                     }));
       }},
      {"adjoint of the forward pass",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Subject forward = first_cpu_rung("conv2d", opt);
         const Arrays back = f.inputs(p);
         Arrays in = forward.inputs(p, 1);
         in["weights"] = back.at("weights");
         expect_equal_inner(inner(forward(p, in).at("y"), back.at("dy")),
                            inner(in.at("x"), dx_of(p, back)));
       }},
      {"= col2im(w^T dy)", [](const Conv2dProblem& p) { return p.groups == 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         const Im2colProblem columns = columns_of(p);
         Array col = zeros({p.N, columns.rows(), columns.columns()});
         const auto w = floats(in.at("weights")), dy = floats(in.at("dy"));
         const std::int64_t rows = columns.rows(), outputs = columns.columns();
         for (std::int64_t n = 0; n < p.N; ++n) {
           for (std::int64_t row = 0; row < rows; ++row) {
             for (std::int64_t k = 0; k < p.K; ++k) {
               for (std::int64_t o = 0; o < outputs; ++o) {
                 col.as<float>()[at((n * rows + row) * outputs + o)] +=
                     w[at(k * rows + row)] * dy[at((n * p.K + k) * outputs + o)];
               }
             }
           }
         }
         const Subject col2im = first_cpu_rung("col2im", opt);
         expect_same(dx_of(p, in), col2im(columns, {{"col", col}}).at("x"));
       }},
  };
}

}  // namespace

LadderTests conv2d_dgrad_tests() {
  return {[] { return conv_problems_for("conv2d_dgrad", conv_problems()); },
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_conv(dice); });
          },
          conv_rounding_problems,
          checked<Conv2dProblem>(dgrad_identities, conv_bases),
          conv_limits,
          small_gradients};
}

}  // namespace convladder::testing
