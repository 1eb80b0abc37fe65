/// @file conv2d.cpp
/// @brief The forward pass of a convolution.
#include <algorithm>
#include <tuple>
#include <vector>

#include "ladders/ladders.hpp"
#include "tests/ladders/conv2d_identities.hpp"
#include "tests/ladders/conv2d_problems.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

std::vector<Identity<Conv2dProblem>> conv2d_identities(const Subject& f, const CheckOptions& opt) {
  const auto y_of = [&f](const Conv2dProblem& p, const Arrays& in) { return f(p, in).at("y"); };
  const auto strided = [](const Conv2dProblem& p) { return p.stride.h != 1 || p.stride.w != 1; };
  const auto dilated = [](const Conv2dProblem& p) {
    return p.dilation.h != 1 || p.dilation.w != 1;
  };
  const auto padded = [](const Conv2dProblem& p) {
    return p.pad.top + p.pad.bottom + p.pad.left + p.pad.right != 0;
  };
  return {
      {"linear in x",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array first = y_of(p, in);
         more["weights"] = in["weights"];
         const Array second = y_of(p, more);
         in["x"] = sum(in["x"], more["x"]);
         expect_same(y_of(p, in), sum(first, second));
       }},
      {"linear in the weights",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array first = y_of(p, in);
         more["x"] = in["x"];
         const Array second = y_of(p, more);
         in["weights"] = sum(in["weights"], more["weights"]);
         expect_same(y_of(p, in), sum(first, second));
       }},
      {"an image alone", [](const Conv2dProblem& p) { return p.N > 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         const Array y = y_of(p, in);
         for (int n = 0; n < p.N; ++n) {
           Arrays one = in;
           one["x"] = image(in.at("x"), n);
           expect_same(y_of(of_one_image(p), one), image(y, n), text("image ", n));
         }
       }},
      {"bias",
       {},
       [=, &f](const Conv2dProblem& p) {
         Conv2dProblem biased = p;
         biased.bias = true;
         const Arrays in = f.inputs(biased);
         Arrays without = in;
         without.erase("bias");
         const Array y = y_of(p, without);
         const View4 plain(y);
         const auto bias = floats(in.at("bias"));
         expect_same(y_of(biased, in), make4(y_shape(p), [&](int n, int k, int row, int column) {
                       return plain(n, k, row, column) + bias[at(k)];
                     }));
       }},
      {"ReLU = what is not below zero",
       {},
       [=, &f](const Conv2dProblem& p) {
         Conv2dProblem plain = p;
         plain.bias = true;
         Conv2dProblem with_relu = plain;
         with_relu.activation = Activation::relu;
         const Arrays in = f.inputs(plain);
         Array y = y_of(plain, in);
         for (float& value : y.as<float>()) value = std::max(value, 0.0f);
         expect_same(y_of(with_relu, in), y);
       }},
      {"permuted input channels", [](const Conv2dProblem& p) { return p.C > p.groups; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const Array y = y_of(p, in);
         const ChannelOrder order{permutation(p.C / p.groups, opt.seed)};
         in["x"] = permute_axis(in["x"], 1, order);
         in["weights"] = permute_axis(in["weights"], 1, order);
         expect_same(y_of(p, in), y);
       }},
      {"permuted output channels", [](const Conv2dProblem& p) { return p.K > p.groups; },
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const Array y = y_of(p, in);
         const ChannelOrder order{permutation(p.K / p.groups, opt.seed)};
         in["weights"] = permute_axis(in["weights"], 0, order);
         expect_same(y_of(p, in), permute_axis(y, 1, order));
       }},
      {"stride = subsampling", strided,
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(y_of(p, in), subsample(p, y_of(with_stride_1(p), in)));
       }},
      {"dilation = zeros in the filter", dilated,
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays stuffed = in;
         stuffed["weights"] = stuff_filter(p, in.at("weights"));
         expect_same(y_of(p, in), y_of(undilated(p), stuffed));
       }},
      {"groups = a block-diagonal filter", [](const Conv2dProblem& p) { return p.groups > 1; },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays dense = in;
         dense["weights"] = block_diagonal(p, in.at("weights"));
         expect_same(y_of(p, in), y_of(without_groups(p), dense));
       }},
      {"padding by hand", padded,
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         Arrays by_hand = in;
         by_hand["x"] = pad_by_hand(p, in.at("x"));
         expect_same(y_of(p, in), y_of(unpadded(p), by_hand));
       }},
      {"a filter of one tap shifts",
       {},
       [=, &f](const Conv2dProblem& p) {
         Arrays in = f.inputs(p);
         const int group_c = p.C / p.groups, group_k = p.K / p.groups;
         // Another channel and another tap for each filter.
         const auto tap = [&](int k) {
           return std::tuple(k % group_c, (k + 1) % p.R, (2 * k + 1) % p.S);
         };
         in["weights"] = make4(w_shape(p), [&](int k, int c, int r, int s) {
           return std::tuple(c, r, s) == tap(k) ? 1.0f : 0.0f;
         });
         const View4 x(in.at("x"));
         expect_same(y_of(p, in), make4(y_shape(p), [&](int n, int k, int row, int column) {
                       const auto [c, r, s] = tap(k);
                       const int h = row * p.stride.h - p.pad.top + r * p.dilation.h;
                       const int w = column * p.stride.w - p.pad.left + s * p.dilation.w;
                       if (h < 0 || h >= p.H || w < 0 || w >= p.W) return 0.0f;
                       return x(n, k / group_k * group_c + c, h, w);
                     }));
       }},
      {"flipping everything flips the output",
       {},
       [=, &f](const Conv2dProblem& base) {
         const Conv2dProblem p = with_stride_1(base);
         const auto flip = [](const Array& array) {
           const View4 from(array);
           const int rows = static_cast<int>(array.shape()[2]);
           const int columns = static_cast<int>(array.shape()[3]);
           return make4(array.shape(), [&](int a, int b, int c, int d) {
             return from(a, b, rows - 1 - c, columns - 1 - d);
           });
         };
         const Arrays in = f.inputs(p);
         Arrays flipped = in;
         flipped["x"] = flip(in.at("x"));
         flipped["weights"] = flip(in.at("weights"));
         Conv2dProblem mirrored = p;
         std::swap(mirrored.pad.top, mirrored.pad.bottom);
         std::swap(mirrored.pad.left, mirrored.pad.right);
         expect_same(y_of(validated(mirrored), flipped), flip(y_of(p, in)));
       }},
      {"1x1 = a GEMM",
       [=](const Conv2dProblem& p) {
         return p.R == 1 && p.S == 1 && p.groups == 1 && !strided(p) && !padded(p);
       },
       [=, &f](const Conv2dProblem& p) {
         const Arrays in = f.inputs(p);
         const View4 x(in.at("x")), w(in.at("weights"));
         expect_same(y_of(p, in), make4(y_shape(p), [&](int n, int k, int row, int column) {
                       float total = 0;
                       for (int c = 0; c < p.C; ++c) total += w(k, c, 0, 0) * x(n, c, row, column);
                       return total;
                     }));
       }},
      {"adjoint of the input gradient",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Subject dgrad = first_cpu_rung("conv2d_dgrad", opt);
         const Arrays in = f.inputs(p);
         Arrays back = dgrad.inputs(p, 1);
         back["weights"] = in.at("weights");
         expect_equal_inner(inner(y_of(p, in), back.at("dy")),
                            inner(in.at("x"), dgrad(p, back).at("dx")));
       }},
      {"adjoint of the weight gradient",
       {},
       [=, &f](const Conv2dProblem& p) {
         const Subject wgrad = first_cpu_rung("conv2d_wgrad", opt);
         const Arrays in = f.inputs(p);
         Arrays back = wgrad.inputs(p, 1);
         back["x"] = in.at("x");
         expect_equal_inner(inner(y_of(p, in), back.at("dy")),
                            inner(in.at("weights"), wgrad(p, back).at("dw")));
       }},
  };
}

/// ReLU first: the tests with planted bugs end with the first problem that fails.
std::vector<TestProblem> conv2d_problems() {
  std::vector<ConvTestProblem> list = relu_problems();
  for (const auto& more : {conv_problems(), mapped_conv_problems()})
    list.insert(list.end(), more.begin(), more.end());
  return conv_problems_for("conv2d", list);
}

/// Every fourth with ReLU.
Conv2dProblem random_conv2d(Dice& dice, int i) {
  Conv2dProblem conv = random_conv(dice);
  if (i % 4 == 0) conv.activation = Activation::relu;
  return conv;
}

}  // namespace

namespace {

/// Some of them with ReLU, too: -inf is below zero, NaN is not. And rows of a filter in two pieces.
std::vector<TestProblem> small_forward_problems() {
  std::vector<Conv2dProblem> convs = small_convolutions();
  for (Conv2dProblem relu : {convs[0], convs[2]}) {
    relu.activation = Activation::relu;
    convs.push_back(relu);
  }
  convs.push_back(validated(
      Conv2dProblem{.N = 2, .C = 2, .H = 6, .W = 12, .K = 3, .R = 4, .S = 5, .pad = {1, 0, 2, 1}}));
  std::vector<TestProblem> list;
  for (const Conv2dProblem& conv : convs) list.push_back({.name = "", .problem = conv});
  return list;
}

}  // namespace

LadderTests conv2d_tests() {
  return {conv2d_problems,
          [](int count, std::uint64_t seed) { return drawn(count, seed, random_conv2d); },
          conv_rounding_problems,
          checked<Conv2dProblem>(conv2d_identities, conv_bases),
          conv_limits,
          small_forward_problems};
}

}  // namespace convladder::testing
