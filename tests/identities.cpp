#include "tests/identities.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <tuple>

#include "core/arithmetic.hpp"
#include "ladders/ladders.hpp"
#include "tests/identity_tools.hpp"
#include "tests/sparse_identities.hpp"

namespace convladder::testing {
namespace {

/// A new array of four axes whose element [a, b, c, d] is value(a, b, c, d).
Array make4(const Shape& shape, const std::function<float(int, int, int, int)>& value) {
  Array result(DType::f32, shape);
  const auto to = result.as<float>();
  std::size_t i = 0;
  for (int a = 0; a < shape[0]; ++a) {
    for (int b = 0; b < shape[1]; ++b) {
      for (int c = 0; c < shape[2]; ++c) {
        for (int d = 0; d < shape[3]; ++d) to[i++] = value(a, b, c, d);
      }
    }
  }
  return result;
}

/// Element [a, b, c, d] of an array of four axes.
class View4 {
 public:
  explicit View4(const Array& array)
      : data_(floats(array)),
        at_{static_cast<int>(array.shape()[1]), static_cast<int>(array.shape()[2]),
            static_cast<int>(array.shape()[3])} {}
  float operator()(int a, int b, int c, int d) const { return data_[at(at_(a, b, c, d))]; }

 private:
  std::span<const float> data_;
  Index4 at_;
};

/// Image n of a batch, as a batch of one.
Array image(const Array& batch, std::int64_t n) {
  Shape shape = batch.shape();
  const std::int64_t one = element_count(shape) / shape[0];
  shape[0] = 1;
  Array result(batch.dtype(), shape);
  std::copy_n(floats(batch).begin() + n * one, one, result.as<float>().begin());
  return result;
}

// --- Convolution, forward and backward -----------------------------------------------------------

std::vector<Conv2dProblem> conv_bases() {
  return {
      validated(Conv2dProblem{.N = 2,
                              .C = 4,
                              .H = 11,
                              .W = 14,
                              .K = 6,
                              .R = 3,
                              .S = 3,
                              .pad = {1, 0, 2, 1},
                              .stride = {2, 1},
                              .dilation = {1, 2}}),
      validated(
          Conv2dProblem{.C = 3, .H = 8, .W = 35, .K = 5, .R = 2, .S = 5, .pad = {0, 1, 3, 2}}),
      validated(Conv2dProblem{
          .N = 2, .C = 6, .H = 9, .W = 10, .K = 4, .R = 3, .S = 2, .stride = {1, 3}, .groups = 2}),
      validated(Conv2dProblem{.N = 3,
                              .C = 5,
                              .H = 12,
                              .W = 17,
                              .K = 5,
                              .R = 3,
                              .S = 3,
                              .pad = {2, 2, 2, 2},
                              .dilation = {2, 2},
                              .groups = 5}),
      validated(Conv2dProblem{.C = 17, .H = 7, .W = 9, .K = 19}),
      validated(
          Conv2dProblem{.C = 5, .H = 20, .W = 36, .K = 7, .R = 3, .S = 3, .pad = {1, 1, 1, 1}}),
      validated(Conv2dProblem{.N = 2,
                              .C = 2,
                              .H = 13,
                              .W = 13,
                              .K = 3,
                              .R = 2,
                              .S = 2,
                              .pad = {0, 3, 1, 0},
                              .stride = {4, 3}}),
  };
}

Shape x_shape(const Conv2dProblem& p) { return {p.N, p.C, p.H, p.W}; }
Shape w_shape(const Conv2dProblem& p) { return {p.K, p.C / p.groups, p.R, p.S}; }
Shape y_shape(const Conv2dProblem& p) { return {p.N, p.K, p.P, p.Q}; }

/// The same convolution with the padding moved into the input.
Conv2dProblem unpadded(Conv2dProblem p) {
  p.H += p.pad.top + p.pad.bottom;
  p.W += p.pad.left + p.pad.right;
  p.pad = {};
  return validated(p);
}

Array pad_by_hand(const Conv2dProblem& p, const Array& x) {
  const View4 from(x);
  return make4(x_shape(unpadded(p)), [&](int n, int c, int h, int w) {
    const int row = h - p.pad.top, column = w - p.pad.left;
    return row < 0 || row >= p.H || column < 0 || column >= p.W ? 0.0f : from(n, c, row, column);
  });
}

Array crop_by_hand(const Conv2dProblem& p, const Array& padded) {
  const View4 from(padded);
  return make4(x_shape(p), [&](int n, int c, int h, int w) {
    return from(n, c, h + p.pad.top, w + p.pad.left);
  });
}

/// The same convolution with the dilation written into the filter as zeros.
Conv2dProblem undilated(Conv2dProblem p) {
  p.R = static_cast<int>(window_extent(p.R, p.dilation.h));
  p.S = static_cast<int>(window_extent(p.S, p.dilation.w));
  p.dilation = {};
  return validated(p);
}

Array stuff_filter(const Conv2dProblem& p, const Array& weights) {
  const View4 from(weights);
  return make4(w_shape(undilated(p)), [&](int k, int c, int r, int s) {
    const bool tap = r % p.dilation.h == 0 && s % p.dilation.w == 0;
    return tap ? from(k, c, r / p.dilation.h, s / p.dilation.w) : 0.0f;
  });
}

Array taps_of_filter(const Conv2dProblem& p, const Array& stuffed) {
  const View4 from(stuffed);
  return make4(w_shape(p), [&](int k, int c, int r, int s) {
    return from(k, c, r * p.dilation.h, s * p.dilation.w);
  });
}

Conv2dProblem with_stride_1(Conv2dProblem p) {
  p.stride = {};
  return validated(p);
}

/// The outputs of the convolution with stride 1 that remain with p's stride.
Array subsample(const Conv2dProblem& p, const Array& dense) {
  const View4 from(dense);
  return make4(y_shape(p), [&](int n, int k, int row, int column) {
    return from(n, k, row * p.stride.h, column * p.stride.w);
  });
}

/// y with zeros where the stride leaves outputs out.
Array stuff_output(const Conv2dProblem& p, const Array& y) {
  const View4 from(y);
  return make4(y_shape(with_stride_1(p)), [&](int n, int k, int row, int column) {
    const bool kept = row % p.stride.h == 0 && column % p.stride.w == 0 && row / p.stride.h < p.P &&
                      column / p.stride.w < p.Q;
    return kept ? from(n, k, row / p.stride.h, column / p.stride.w) : 0.0f;
  });
}

Conv2dProblem without_groups(Conv2dProblem p) {
  p.groups = 1;
  return validated(p);
}

/// The grouped filter as a dense one: zero between channels of different groups.
Array block_diagonal(const Conv2dProblem& p, const Array& weights) {
  const View4 from(weights);
  const int group_c = p.C / p.groups, group_k = p.K / p.groups;
  return make4(w_shape(without_groups(p)), [&](int k, int c, int r, int s) {
    return c / group_c == k / group_k ? from(k, c % group_c, r, s) : 0.0f;
  });
}

Array diagonal_blocks(const Conv2dProblem& p, const Array& dense) {
  const View4 from(dense);
  const int group_c = p.C / p.groups, group_k = p.K / p.groups;
  return make4(w_shape(p), [&](int k, int c, int r, int s) {
    return from(k, k / group_k * group_c + c, r, s);
  });
}

/// Channels in another order inside of each group.
struct ChannelOrder {
  std::vector<int> order;  // of one group
  int operator()(int channel) const {
    const int size = static_cast<int>(order.size());
    return channel / size * size + order[at(channel % size)];
  }
};

Array permute_axis(const Array& array, int axis, const ChannelOrder& order) {
  const View4 from(array);
  return make4(array.shape(), [&](int a, int b, int c, int d) {
    return axis == 0 ? from(order(a), b, c, d) : from(a, order(b), c, d);
  });
}

Conv2dProblem of_one_image(Conv2dProblem p) {
  p.N = 1;
  return validated(p);
}

/// The output coordinate that reads input coordinate i through tap `tap`, or -1.
int output_of(int i, int pad, int tap, int stride, int dilation, int outputs) {
  const int shifted = i + pad - tap * dilation;
  if (shifted < 0 || shifted % stride != 0 || shifted / stride >= outputs) return -1;
  return shifted / stride;
}

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
      {"1x1 = a matrix product",
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

// --- im2col and col2im ---------------------------------------------------------------------------

std::vector<Im2colProblem> column_bases() {
  const auto make = [](Im2colProblem p) { return validated(p); };
  return {
      make({.N = 2, .C = 3, .rank = 2, .height = {9, 3, 1, 0, 2, 1}, .width = {12, 2, 0, 2, 1, 3}}),
      make({.C = 2, .rank = 2, .height = {9, 1, 0, 0, 3, 1}, .width = {9, 2, 0, 0, 5, 1}}),
      make({.C = 4, .rank = 2, .height = {7, 1}, .width = {5, 1}}),
      make({.N = 2, .C = 3, .rank = 1, .width = {20, 4, 2, 3, 2, 3}}),
      make({.C = 2, .rank = 1, .width = {11, 1, 0, 0, 3, 1}}),
      make({.N = 2,
            .C = 2,
            .rank = 3,
            .depth = {5, 2, 1, 0, 2, 1},
            .height = {6, 3, 1, 1, 1, 2},
            .width = {7, 3, 0, 2, 3, 1}}),
  };
}

using AxisChange = std::function<void(WindowAxis&)>;

Im2colProblem change_axes(Im2colProblem p, const AxisChange& change) {
  change(p.depth);
  change(p.height);
  change(p.width);
  return validated(p);
}

Im2colProblem unpadded(const Im2colProblem& p) {
  return change_axes(p, [](WindowAxis& axis) {
    axis.size += axis.pad_before + axis.pad_after;
    axis.pad_before = axis.pad_after = 0;
  });
}
Im2colProblem undilated(const Im2colProblem& p) {
  return change_axes(p, [](WindowAxis& axis) {
    axis.kernel = static_cast<int>(window_extent(axis.kernel, axis.dilation));
    axis.dilation = 1;
  });
}
Im2colProblem with_stride_1(const Im2colProblem& p) {
  return change_axes(p, [](WindowAxis& axis) { axis.stride = 1; });
}
Im2colProblem with_request(Im2colProblem p, Request request) {
  p.request = request;
  return validated(p);
}
Im2colProblem of_one_image(Im2colProblem p) {
  p.N = 1;
  return validated(p);
}

Shape x_shape(const Im2colProblem& p) { return im2col_signature(p).inputs[0].shape; }
Shape col_shape(const Im2colProblem& p) { return im2col_signature(p).outputs[0].shape; }

/// Visits the points of a box of three axes, and where each lies in a larger box:
/// visit(index in the small box, index in the large box).
void for_each_point(const std::array<int, 3>& small, const std::array<int, 3>& large,
                    const std::array<int, 3>& first, const std::array<int, 3>& step,
                    const std::function<void(std::int64_t, std::int64_t)>& visit) {
  const Index4 large_at{large[0], large[1], large[2]};
  std::int64_t i = 0;
  for (int a = 0; a < small[0]; ++a) {
    for (int b = 0; b < small[1]; ++b) {
      for (int c = 0; c < small[2]; ++c) {
        visit(i++,
              large_at(0, first[0] + a * step[0], first[1] + b * step[1], first[2] + c * step[2]));
      }
    }
  }
}

std::array<int, 3> over_axes(const Im2colProblem& p, int WindowAxis::*member) {
  return {p.depth.*member, p.height.*member, p.width.*member};
}

/// For each element of the smaller array, its place in the larger one; both are [..][points].
struct Embedding {
  std::vector<std::int64_t> place;
  Array gather(const Array& large, const Shape& small_shape) const {
    Array result(DType::f32, small_shape);
    for (std::size_t i = 0; i < place.size(); ++i) {
      result.as<float>()[i] = floats(large)[at(place[i])];
    }
    return result;
  }
  Array scatter(const Array& small, const Shape& large_shape) const {
    Array result(DType::f32, large_shape);
    for (std::size_t i = 0; i < place.size(); ++i) {
      result.as<float>()[at(place[i])] = floats(small)[i];
    }
    return result;
  }
};

/// x inside of x with its padding written out.
Embedding inside_padding(const Im2colProblem& p) {
  const Im2colProblem large = unpadded(p);
  Embedding result;
  for (std::int64_t nc = 0; nc < std::int64_t{p.N} * p.C; ++nc) {
    for_each_point(over_axes(p, &WindowAxis::size), over_axes(large, &WindowAxis::size),
                   over_axes(p, &WindowAxis::pad_before), {1, 1, 1},
                   [&](std::int64_t, std::int64_t where) {
                     result.place.push_back(nc * large.channel_size() + where);
                   });
  }
  return result;
}

/// The rows of a dilated kernel inside of the rows of the kernel of its whole extent.
Embedding dilated_rows(const Im2colProblem& p) {
  const Im2colProblem large = undilated(p);
  Embedding result;
  for (std::int64_t nc = 0; nc < std::int64_t{p.N} * p.C; ++nc) {
    for_each_point(
        over_axes(p, &WindowAxis::kernel), over_axes(large, &WindowAxis::kernel), {0, 0, 0},
        over_axes(p, &WindowAxis::dilation), [&](std::int64_t, std::int64_t tap) {
          for (std::int64_t window = 0; window < p.columns(); ++window) {
            result.place.push_back((nc * large.kernel_volume() + tap) * p.columns() + window);
          }
        });
  }
  return result;
}

/// The windows with a stride inside of all windows.
Embedding strided_columns(const Im2colProblem& p) {
  const Im2colProblem large = with_stride_1(p);
  Embedding result;
  for (std::int64_t row = 0; row < p.N * p.rows(); ++row) {
    for_each_point(over_axes(p, &WindowAxis::out), over_axes(large, &WindowAxis::out), {0, 0, 0},
                   over_axes(p, &WindowAxis::stride), [&](std::int64_t, std::int64_t window) {
                     result.place.push_back(row * large.columns() + window);
                   });
  }
  return result;
}

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

// --- gemm ----------------------------------------------------------------------------------------

std::vector<GemmProblem> gemm_bases() {
  return {{.M = 37, .N = 29, .K = 41},
          {.M = 1, .N = 65, .K = 7},
          {.M = 64, .N = 32, .K = 16},
          {.M = 129, .N = 130, .K = 33, .map = TileMap::hilbert},
          {.M = 70, .N = 150, .K = 18, .map = TileMap::identity8}};
}

Array transposed(const Array& a) {
  const std::int64_t rows = a.shape()[0], columns = a.shape()[1];
  Array result(DType::f32, {columns, rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      result.as<float>()[at(column * rows + row)] = floats(a)[at(row * columns + column)];
    }
  }
  return result;
}

Array permute_rows(const Array& a, const std::vector<int>& order) {
  const std::int64_t columns = a.shape()[1];
  Array result = a;
  for (std::size_t row = 0; row < order.size(); ++row) {
    std::copy_n(floats(a).begin() + order[row] * columns, columns,
                result.as<float>().begin() + static_cast<std::int64_t>(row) * columns);
  }
  return result;
}

std::vector<Identity<GemmProblem>> gemm_identities(const Subject& f, const CheckOptions& opt) {
  const auto product = [&f](const Array& a, const Array& b, TileMap map) {
    const GemmProblem p{.M = static_cast<int>(a.shape()[0]),
                        .N = static_cast<int>(b.shape()[1]),
                        .K = static_cast<int>(a.shape()[1]),
                        .map = map};
    return f(validated(p), {{"a", a}, {"b", b}}).at("c");
  };
  return {
      {"linear in a",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array& b = in.at("b");
         expect_same(product(sum(in.at("a"), more.at("a")), b, p.map),
                     sum(product(in.at("a"), b, p.map), product(more.at("a"), b, p.map)));
       }},
      {"linear in b",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p), more = f.inputs(p, 1);
         const Array& a = in.at("a");
         expect_same(product(a, sum(in.at("b"), more.at("b")), p.map),
                     sum(product(a, in.at("b"), p.map), product(a, more.at("b"), p.map)));
       }},
      {"the unit matrix",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         Array unit = zeros({p.K, p.K});
         for (std::int64_t i = 0; i < p.K; ++i) unit.as<float>()[at(i * p.K + i)] = 1;
         expect_same(product(in.at("a"), unit, p.map), in.at("a"), "a 1");
         expect_same(product(unit, in.at("b"), p.map), in.at("b"), "1 b");
       }},
      {"(a b)^T = b^T a^T",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         expect_same(product(transposed(in.at("b")), transposed(in.at("a")), p.map),
                     transposed(product(in.at("a"), in.at("b"), p.map)));
       }},
      {"(a b) c = a (b c)",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const Array c = f.inputs(GemmProblem{.M = 1, .N = 7, .K = p.N}, 2).at("b");
         const Array& a = in.at("a");
         const Array& b = in.at("b");
         expect_same(product(product(a, b, p.map), c, p.map),
                     product(a, product(b, c, p.map), p.map));
       }},
      {"permuted rows of a",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const std::vector<int> order = permutation(p.M, opt.seed);
         expect_same(product(permute_rows(in.at("a"), order), in.at("b"), p.map),
                     permute_rows(product(in.at("a"), in.at("b"), p.map), order));
       }},
      {"permuted k",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const std::vector<int> order = permutation(p.K, opt.seed);
         const Array a = transposed(permute_rows(transposed(in.at("a")), order));
         expect_same(product(a, permute_rows(in.at("b"), order), p.map),
                     product(in.at("a"), in.at("b"), p.map));
       }},
      {"the same under every map",
       {},
       [=, &f](const GemmProblem& p) {
         const Arrays in = f.inputs(p);
         const Array c = product(in.at("a"), in.at("b"), TileMap::row_major);
         for (const TileMapName& map : kTileMaps) {
           if (!hands_out_whole_tiles(map.map)) continue;
           expect_same(product(in.at("a"), in.at("b"), map.map), c, std::string(map.name));
         }
       }},
  };
}

// --- Tile maps -----------------------------------------------------------------------------------

/// Every (batch, m, n, k-step) lies in exactly one unit, and the units are sorted by block.
void expect_exact_cover(const TileMapProblem& p, const Array& units) {
  const auto rows = units.as<std::int32_t>();
  std::vector<int> visits(at(std::int64_t{p.batch} * p.tiles_m * p.tiles_n * p.k_steps));
  int last_block = -1;
  for (std::int64_t unit = 0; unit < units.shape()[0]; ++unit) {
    const auto row = rows.subspan(at(unit * kUnitColumns), kUnitColumns);
    const int block = row[0], batch = row[1], m = row[2], n = row[3], first = row[4], last = row[5];
    const auto broken = [&](const std::string& what) {
      return Broken{text("unit ", unit, " (", joined(row, ", "), "): ", what)};
    };
    if (block < last_block) throw broken("not sorted by block");
    last_block = block;
    if (!(batch >= 0 && batch < p.batch && m >= 0 && m < p.tiles_m && n >= 0 && n < p.tiles_n &&
          first >= 0 && first < last && last <= p.k_steps)) {
      throw broken("out of range or empty");
    }
    for (int k = first; k < last; ++k) {
      const Index4 place{p.tiles_m, p.tiles_n, p.k_steps};
      if (++visits[at(place(batch, m, n, k))] > 1) {
        throw broken(text("k-step ", k, " is in another unit too"));
      }
    }
  }
  const auto left_out = std::count(visits.begin(), visits.end(), 0);
  if (left_out != 0) {
    throw Broken{text(left_out, " of ", visits.size(), " k-steps of tiles are in no unit")};
  }
}

/// Every map on all tile counts up to 40 x 40; the maps that divide k-steps also in several ways.
std::vector<TileMapProblem> tile_map_bases(const CheckOptions& options) {
  std::vector<int> counts(40);
  std::iota(counts.begin(), counts.end(), 1);
  if (options.largest == Size::small) counts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 40};
  std::vector<TileMapProblem> problems;
  for (const TileMapName& map : kTileMaps) {
    for (const int m : counts) {
      for (const int n : counts) {
        TileMapProblem p{.map = map.map, .tiles_m = m, .tiles_n = n};
        if (map.map == TileMap::split_k) {
          p.k_steps = 2 + (m + n) % 9;
          p.splits = 1 + (m * 3 + n) % p.k_steps;
        } else if (map.map == TileMap::stream_k) {
          p.k_steps = 1 + (m + 2 * n) % 7;
          p.blocks = 1 + (m * 40 + n) % 150;
        } else if (map.map == TileMap::grouped) {
          p.group_rows = 1 + (m + n) % 11;
        }
        if (map.map == TileMap::batched || (m * n) % 5 == 0) p.batch = 1 + (m + n) % 3;
        problems.push_back(validated(p));
      }
    }
  }
  return problems;
}

}  // namespace

CheckReport check_identities(const Ladder& ladder, const Rung& rung, Where where,
                             const CheckOptions& options) {
  CheckReport report;
  const Subject subject(ladder, rung, where, options);
  if (is_sparse(ladder.name)) {
    check_sparse_identities(subject, options, report);
  } else if (ladder.name == "conv2d") {
    check_all(conv2d_identities(subject, options), conv_bases(), options, report);
  } else if (ladder.name == "conv2d_dgrad") {
    check_all(dgrad_identities(subject, options), conv_bases(), options, report);
  } else if (ladder.name == "conv2d_wgrad") {
    check_all(wgrad_identities(subject, options), conv_bases(), options, report);
  } else if (ladder.name == "im2col") {
    check_all(im2col_identities(subject, options), column_bases(), options, report);
  } else if (ladder.name == "col2im") {
    check_all(col2im_identities(subject, options), column_bases(), options, report);
  } else if (ladder.name == "gemm") {
    check_all(gemm_identities(subject, options), gemm_bases(), options, report);
  } else if (ladder.name == "tile_map") {
    const std::vector<Identity<TileMapProblem>> cover = {
        {"each k-step of each tile in one unit", {}, [&](const TileMapProblem& p) {
           expect_exact_cover(p, subject(p, {}).at("units"));
         }}};
    check_all(cover, tile_map_bases(options), options, report);
  } else {
    throw std::logic_error("no identities for the ladder " + ladder.name);
  }
  if (report.problems == 0 && report.failures.empty()) {
    report.failures.push_back("declines every identity's problems");
  }
  return report;
}

}  // namespace convladder::testing
