/// @file conv2d_wgrad.cpp
/// @brief The gradient of a convolution by its weights and its bias.
#include <algorithm>
#include <tuple>
#include <vector>

#include "ladders/ladders.hpp"
#include "tests/ladders/conv2d_identities.hpp"
#include "tests/ladders/conv2d_problems.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

std::vector<Identity<Conv2dProblem>> wgrad_identities(const Subject& f, const CheckOptions& opt) {
  const auto dw_of = [&f](const Conv2dProblem& p, const Arrays& in) { return f(p, in).at("dw"); };
  return {
      {"linear in x",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array first = dw_of(p, in);
         more["dy"] = in["dy"];
         const Array second = dw_of(p, more);
         in["x"] = sum(in["x"], more["x"]);
         expect_same(dw_of(p, in), sum(first, second));
       }},
      {"linear in dy",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Arrays first = f(p, in);
         more["x"] = in["x"];
         const Arrays second = f(p, more);
         in["dy"] = sum(in["dy"], more["dy"]);
         const Arrays both = f(p, in);
         expect_same(both.at("dw"), sum(first.at("dw"), second.at("dw")), "dw");
         expect_same(both.at("db"), sum(first.at("db"), second.at("db")), "db");
       }},
      {"a batch is the sum of its images", [](const Conv2dProblem& p) { return p.N > 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Array total = zeros(w_shape(p)), total_db = zeros({p.K});
         for (int n = 0; n < p.N; ++n) {
           const Arrays one =
               f(of_one_image(p), {{"x", image(in.at("x"), n)}, {"dy", image(in.at("dy"), n)}});
           total = sum(total, one.at("dw"));
           total_db = sum(total_db, one.at("db"));
         }
         const Arrays batch = f(p, in);
         expect_same(batch.at("dw"), total, "dw");
         expect_same(batch.at("db"), total_db, "db");
       }},
      {"bias gradient = sums of dy",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Array db = zeros({p.K});
         const View4 dy(in.at("dy"));
         for (int n = 0; n < p.N; ++n) {
           for (int k = 0; k < p.K; ++k) {
             for (int row = 0; row < p.P; ++row) {
               for (int column = 0; column < p.Q; ++column) {
                 db.as<float>()[at(k)] += dy(n, k, row, column);
               }
             }
           }
         }
         expect_same(f(p, in).at("db"), db);
       }},
      {"permuted input channels", [](const Conv2dProblem& p) { return p.C > p.groups; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const Array dw = dw_of(p, in);
         const ChannelOrder order{permutation(p.C / p.groups, opt.seed)};
         in["x"] = permute_axis(in["x"], 1, order);
         expect_same(dw_of(p, in), permute_axis(dw, 1, order));
       }},
      {"permuted output channels", [](const Conv2dProblem& p) { return p.K > p.groups; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const Array dw = dw_of(p, in);
         const ChannelOrder order{permutation(p.K / p.groups, opt.seed)};
         in["dy"] = permute_axis(in["dy"], 1, order);
         expect_same(dw_of(p, in), permute_axis(dw, 0, order));
       }},
      {"stride = zeros between the outputs",
       [](const Conv2dProblem& p) { return p.stride.h != 1 || p.stride.w != 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays stuffed = in;
         stuffed["dy"] = stuff_output(p, in.at("dy"));
         expect_same(dw_of(p, in), dw_of(with_stride_1(p), stuffed));
       }},
      {"dilation = taps of a larger filter",
       [](const Conv2dProblem& p) { return p.dilation.h != 1 || p.dilation.w != 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(dw_of(p, in), taps_of_filter(p, dw_of(undilated(p), in)));
       }},
      {"groups = blocks of the dense gradient", [](const Conv2dProblem& p) { return p.groups > 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(dw_of(p, in), diagonal_blocks(p, dw_of(without_groups(p), in)));
       }},
      {"padding by hand",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays by_hand = in;
         by_hand["x"] = pad_by_hand(p, in.at("x"));
         expect_same(dw_of(p, in), dw_of(unpadded(p), by_hand));
       }},
      {"adjoint of the forward pass",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Subject forward = first_cpu_rung("conv2d", opt);
         const Arrays back = f.inputs(p);
         Arrays in = forward.inputs(p, 1);
         in["x"] = back.at("x");
         expect_equal_inner(inner(forward(p, in).at("y"), back.at("dy")),
                            inner(in.at("weights"), dw_of(p, back)));
       }},
      {"= dy im2col(x)^T", [](const Conv2dProblem& p) { return p.groups == 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         const Im2colProblem columns = columns_of(p);
         const Subject im2col = first_cpu_rung("im2col", opt);
         const Array col_array = im2col(columns, {{"x", in.at("x")}}).at("col");
         const auto col = floats(col_array), dy = floats(in.at("dy"));
         const std::int64_t rows = columns.rows(), outputs = columns.columns();
         Array dw = zeros(w_shape(p));
         for (std::int64_t n = 0; n < p.N; ++n) {
           for (std::int64_t k = 0; k < p.K; ++k) {
             for (std::int64_t row = 0; row < rows; ++row) {
               for (std::int64_t o = 0; o < outputs; ++o) {
                 dw.as<float>()[at(k * rows + row)] +=
                     dy[at((n * p.K + k) * outputs + o)] * col[at((n * rows + row) * outputs + o)];
               }
             }
           }
         }
         expect_same(dw_of(p, in), dw);
       }},
  };
}

}  // namespace

LadderTests conv2d_wgrad_tests() {
  return {[] { return conv_problems_for("conv2d_wgrad", conv_problems()); },
          [](int count, std::uint64_t seed) {
            return drawn(count, seed, [](Dice& dice, int) { return random_conv(dice); });
          },
          conv_rounding_problems,
          checked<Conv2dProblem>(wgrad_identities, conv_bases),
          conv_limits,
          small_gradients};
}

}  // namespace convladder::testing
