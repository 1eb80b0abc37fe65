#include "tests/problems.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

#include "tests/dice.hpp"
#include "tests/found_problems.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

struct ConvTestProblem {
  int number;
  std::string name;
  Conv2dProblem problem;
  Size size = Size::small;
  std::size_t misalignment = 0;
  bool only_conv2d = false;  ///< Nothing for im2col and col2im.
  bool once = false;
  std::string_view only = "";  ///< The ladder, or the rung, that it is for; empty: all.
  /// Of the gradients: it shows something to these rungs alone, and takes the others minutes.
  std::vector<std::string> rungs_of_gradients = {};
};

constexpr Padding pad_all(int h, int w) { return {h, h, w, w}; }
constexpr Padding pad_all(int pad) { return pad_all(pad, pad); }

constexpr const char* kTileSweep = "tile sweep";

/// The small problems that a sanitizer gets, which makes everything several times slower: each kind
/// of edge once, where there are several.
constexpr std::string_view kForSanitizers[] = {
    "minimal",
    "1x1 output",
    "primes",
    "uncovered tail pixels",
    "gcd(stride, dilation) = 2",
    "output larger than the input",
    "windows wholly in the padding",
    "empty batch",
    "depthwise, multiplier 2, dilation 2",
    "1-D as 2-D",
    "asymmetric padding",
    "each parameter another",
    "one tall filter",
    "filter 6x6, six channels",
    "1x1 filter, many channels",
    "groups of 3 and 5 channels",
    "padding wider than the filter",
    "depthwise, planes of odd size",
    "depthwise 5x5, multiplier 2, asymmetric padding",
    "depthwise 5x5, stride 2",
    "filter 5x20, stride 2, one channel",
    "deep and narrow",
    "arrays at 16 n + 4 bytes",
    kTileSweep,
    "W % 4 = 2, H*W % 4 = 2",
    "ReLU after a bias",
    "ReLU, rows of fours",
    "ReLU, depthwise",
    "ReLU of few and long sums",
    "3-D, each parameter another",
    "3-D, uncovered tails",
    "3-D, empty batch",
    "1-D, minimal",
    "1-D, gcd(stride, dilation) = 2",
    "1-D, windows in the padding",
    "1-D, more windows than pixels, all in fours",
    "2-D, fours, dilated",
    "1-D, many channels",
    "1x1 filter, padding on the right",
};

/// Whether a small problem with this name is among them.
Size size_of_small(std::string_view name) {
  return std::ranges::find(kForSanitizers, name) != std::end(kForSanitizers) ? Size::small
                                                                             : Size::full;
}

/// Problems that a rung's choices turn on: a kernel for this filter, a tile of that size, a copy
/// that the hardware can or cannot make. Each is just beyond what another problem has.
std::vector<ConvTestProblem> choice_problems() {
  using P = Conv2dProblem;
  std::vector<ConvTestProblem> list;
  const auto add = [&](const std::string& name, const P& problem, std::string_view only = "",
                       bool once = false) {
    list.push_back({0, name, problem, Size::full, 0, true, once, only});
  };
  // The columns are not x.
  add("1x1 filter, stride across", P{.C = 2, .H = 3, .W = 5, .K = 3, .stride = {1, 2}}, "conv2d");
  for (const Padding pad : {Padding{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}})
    add("1x1 filter, padding at one side", P{.C = 2, .H = 3, .W = 5, .K = 3, .pad = pad}, "conv2d");
  // Kernels for square filters of this height.
  for (const int r : {3, 5, 7})
    add("stride 2, no square filter",
        P{.C = 2, .H = 9, .W = 11, .K = 3, .R = r, .S = 2, .stride = {2, 2}}, "conv2d");
  const P depthwise{.C = 2, .H = 9, .W = 8, .K = 2, .R = 3, .S = 3, .pad = pad_all(1), .groups = 2};
  P other = depthwise;
  other.stride = {1, 2};
  add("depthwise 3x3, stride across", other);
  other = depthwise;
  other.dilation = {1, 2};
  add("depthwise 3x3, dilation across", other);
  other = depthwise;
  other.stride = {3, 3};
  add("depthwise 3x3, stride 3", other);
  other.R = other.S = 5;
  add("depthwise 5x5, stride 3", other);
  // Pairs of floats, from an even column on and from an odd one.
  other = depthwise;
  other.pad = {};
  add("depthwise 3x3, no padding, pairs", other);
  for (const std::size_t offset : {4u, 8u}) {
    other.pad = offset == 4 ? Padding{} : pad_all(1);
    add(text("depthwise 3x3, even rows, arrays at 16 n + ", offset, " bytes"), other);
    list.back().misalignment = offset;
  }
  other.stride = {2, 2};
  other.pad = {0, 1, 0, 1};
  add("depthwise 3x3, stride 2, pairs from an even column", other, "conv2d_dgrad");
  other.pad = pad_all(1);
  add("depthwise 3x3, stride 2, pairs from an odd column", other, "conv2d_dgrad");
  add("depthwise, multiplier 2, bands",
      P{.H = 90, .W = 64, .K = 2, .R = 3, .S = 3, .pad = pad_all(1)},
      "cuda_optimized/conv2d_dgrad/depthwise");
  add("depthwise, a row at a time", P{.H = 3, .W = 1700, .R = 3, .S = 3, .pad = pad_all(1)},
      "cuda_optimized/conv2d_wgrad/depthwise");
  add("depthwise, rows that no window reads",
      P{.C = 2, .H = 20, .W = 8, .K = 2, .stride = {8, 1}, .groups = 2}, "conv2d_wgrad");
  // Planes are summed in more than two parts.
  add("depthwise, 228 planes of a filter",
      P{.N = 228, .C = 397, .H = 1, .W = 1, .K = 397, .groups = 397},
      "cuda_optimized/conv2d_wgrad/depthwise", true);

  // What the fields of a tensor copy hold: windows from -128 to 127, and 255 from tap to tap.
  add("windows begin 260 rows before x",
      P{.C = 4, .H = 3, .W = 2, .K = 4, .pad = {260, 0, 0, 0}, .stride = {2, 1}}, "conv2d");
  add("windows begin 130 columns behind x",
      P{.C = 4, .H = 2, .W = 3, .K = 4, .pad = {0, 0, 0, 130}}, "conv2d");
  add("the last window begins 130 rows before the end of x",
      P{.C = 4, .H = 132, .W = 1, .K = 4, .R = 2, .dilation = {130, 1}}, "conv2d");
  add("taps 256 rows apart",
      P{.C = 4, .H = 60, .W = 1, .K = 4, .R = 2, .pad = {0, 200, 0, 0}, .dilation = {256, 1}},
      "conv2d");
  add("windows of one class begin 127 rows behind dy, of another 128",
      P{.C = 4, .H = 2, .W = 2, .K = 4, .R = 2, .S = 2, .pad = {255, 0, 0, 0}, .stride = {2, 2}},
      "conv2d_dgrad");
  add("padding and strides of 2^15",
      P{.C = 4, .H = 1, .W = 1, .K = 4, .pad = pad_all(1 << 15), .stride = {1 << 15, 1 << 15}});
  add("a tall filter of four channels", P{.C = 4, .H = 36, .W = 2, .K = 4, .R = 32});

  // Tiles, and shares of sums.
  const std::string_view wgrad = "cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async";
  add("20 filters, 1024 pixels", P{.H = 32, .W = 32, .K = 20}, "conv2d");
  add("128 filters, 1024 pixels", P{.H = 32, .W = 32, .K = 128}, "conv2d", true);
  add("65 filters, 65 tiles of pixels", P{.H = 91, .W = 91, .K = 65}, "conv2d", true);
  const std::string_view dgrad = "cuda_optimized/conv2d_dgrad/implicit_gemm";
  add("65 channels, 65 tiles of pixels", P{.C = 65, .H = 91, .W = 91}, dgrad, true);
  add("40 channels, 1024 pixels", P{.C = 40, .H = 32, .W = 32}, dgrad, true);
  add("weights that fit beside inputs one by one, but not in fours",
      P{.C = 179, .H = 1, .W = 16, .stride = {9, 9}}, "conv2d");
  add("columns in tiles of 192", P{.N = 1300, .C = 320, .H = 1, .W = 1}, wgrad, true);
  add("tiles of 128 x 128", P{.C = 1856, .H = 1, .W = 1, .K = 1730},
      "cuda_optimized/conv2d_wgrad/implicit_gemm_split_k", true);
  add("shares of sums that end within a tile",
      P{.N = 228, .C = 397, .H = 1, .W = 1, .K = 397, .groups = 397}, wgrad, true);
  return list;
}

/// The thirty edge shapes, without 18 and 19, and some that the tiles of later rungs ask for.
std::vector<ConvTestProblem> conv_problems() {
  using P = Conv2dProblem;
  std::vector<ConvTestProblem> list = {
      {1, "minimal", P{}},
      {2, "one pixel, the rest padding", P{.R = 3, .S = 3, .pad = pad_all(1)}},
      {3, "1x1 output", P{.C = 3, .H = 5, .W = 5, .K = 2, .R = 5, .S = 5}},
      {4, "H != W", P{.C = 2, .H = 7, .W = 5, .K = 3, .R = 3, .S = 3, .pad = pad_all(1)}},
      {5, "R < S", P{.C = 2, .H = 7, .W = 9, .K = 3, .R = 1, .S = 5, .pad = pad_all(0, 2)}},
      {6, "R > S", P{.N = 2, .C = 3, .H = 9, .W = 7, .K = 4, .R = 5, .S = 1, .pad = pad_all(2, 0)}},
      {7, "even filter", P{.C = 3, .H = 8, .W = 8, .K = 4, .R = 2, .S = 2, .stride = {2, 2}}},
      {8, "primes",
       P{.N = 3,
         .C = 5,
         .H = 13,
         .W = 17,
         .K = 7,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .stride = {2, 2}}},
      {9, "uncovered tail pixels",
       P{.C = 2, .H = 10, .W = 10, .K = 3, .R = 3, .S = 3, .stride = {3, 3}}},
      {10, "stride > filter 1x1", P{.C = 2, .H = 9, .W = 9, .K = 3, .stride = {3, 3}}},
      {0, "steps past the only pixel",
       P{.C = 4, .H = 1, .W = 1, .K = 8, .pad = {1, 1, 1, 1}, .stride = {2, 2}}},
      {11, "stride > filter 2x2",
       P{.C = 2, .H = 9, .W = 9, .K = 3, .R = 2, .S = 2, .stride = {5, 5}}},
      {12, "dilation 2",
       P{.C = 3, .H = 9, .W = 9, .K = 2, .R = 3, .S = 3, .pad = pad_all(2), .dilation = {2, 2}}},
      {13, "gcd(stride, dilation) = 1",
       P{.C = 3, .H = 15, .W = 15, .K = 2, .R = 3, .S = 3, .stride = {2, 2}, .dilation = {3, 3}}},
      {14, "gcd(stride, dilation) = 2",
       P{.C = 2,
         .H = 16,
         .W = 16,
         .K = 2,
         .R = 3,
         .S = 3,
         .pad = pad_all(4),
         .stride = {4, 4},
         .dilation = {2, 2}}},
      {15, "gcd 2, dilation > stride",
       P{.C = 2,
         .H = 16,
         .W = 16,
         .K = 2,
         .R = 3,
         .S = 3,
         .pad = pad_all(3),
         .stride = {2, 2},
         .dilation = {4, 4}}},
      {16, "output larger than the input",
       P{.C = 2, .H = 5, .W = 5, .K = 2, .R = 5, .S = 5, .pad = pad_all(4)}},
      {17, "windows wholly in the padding", P{.H = 3, .W = 3, .R = 3, .S = 3, .pad = pad_all(7)}},
      // 18 and 19: rejected_problems().
      {20, "empty batch",
       P{.N = 0, .C = 3, .H = 8, .W = 8, .K = 4, .R = 3, .S = 3, .pad = pad_all(1)}},
      {21, "W % 4 = 1", P{.C = 3, .H = 17, .W = 513, .K = 5, .R = 3, .S = 3, .pad = pad_all(1)},
       Size::full},
      {24, "C*R*S = 45",
       P{.N = 2, .C = 5, .H = 11, .W = 11, .K = 6, .R = 3, .S = 3, .pad = pad_all(1)}},
      {25, "two groups",
       P{.N = 2, .C = 4, .H = 9, .W = 9, .K = 6, .R = 3, .S = 3, .pad = pad_all(1), .groups = 2}},
      {26, "depthwise, stride 2",
       P{.N = 2,
         .C = 32,
         .H = 9,
         .W = 9,
         .K = 32,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .stride = {2, 2},
         .groups = 32}},
      {27, "depthwise, multiplier 2, dilation 2",
       P{.C = 8,
         .H = 9,
         .W = 9,
         .K = 16,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .dilation = {2, 2},
         .groups = 8}},
      {28, "1-D as 2-D",
       P{.C = 16, .H = 1, .W = 100, .K = 8, .R = 1, .S = 3, .pad = pad_all(0, 1)}},
      {29, "even filter, 'same' padding",
       P{.N = 2, .C = 3, .H = 9, .W = 10, .K = 4, .R = 2, .S = 2, .pad = {0, 1, 0, 1}}},
      {29, "asymmetric padding",
       P{.N = 2, .C = 3, .H = 9, .W = 10, .K = 4, .R = 2, .S = 2, .pad = {0, 1, 2, 0}}},
      {29, "11x11, stride 4",
       P{.C = 3, .H = 67, .W = 67, .K = 6, .R = 11, .S = 11, .stride = {4, 4}}, Size::full},
      {30, "C*R*S*P*Q over 2^31",
       P{.C = 64, .H = 1024, .W = 1024, .R = 7, .S = 7, .pad = pad_all(3)}, Size::huge},
      {30, "more images than grid.z",
       P{.N = 70000, .H = 4, .W = 4, .R = 3, .S = 3, .pad = pad_all(1)}, Size::huge},

      {0, "each parameter another",
       P{.N = 3,
         .C = 6,
         .H = 23,
         .W = 31,
         .K = 8,
         .R = 4,
         .S = 3,
         .pad = {1, 3, 2, 0},
         .stride = {3, 2},
         .dilation = {2, 3},
         .groups = 2}},
      {0, "vertical stride and dilation",
       P{.C = 2,
         .H = 29,
         .W = 11,
         .K = 3,
         .R = 3,
         .S = 2,
         .pad = pad_all(2, 0),
         .stride = {4, 1},
         .dilation = {3, 1}}},
      {0, "horizontal stride and dilation",
       P{.C = 2,
         .H = 11,
         .W = 29,
         .K = 3,
         .R = 2,
         .S = 3,
         .pad = pad_all(0, 2),
         .stride = {1, 4},
         .dilation = {1, 3}}},
      {0, "one tall filter", P{.C = 1, .H = 40, .W = 3, .K = 1, .R = 33, .S = 1}},
      {0, "one row", P{.N = 5, .C = 3, .H = 1, .W = 37, .K = 5, .R = 1, .S = 7}},
      {0, "one column",
       P{.N = 2, .C = 3, .H = 37, .W = 1, .K = 5, .R = 7, .S = 1, .pad = pad_all(3, 0)}},
      {0, "filter 9x9", P{.C = 2, .H = 20, .W = 19, .K = 2, .R = 9, .S = 9, .pad = pad_all(4)}},
      {0, "filter 6x6, six channels", P{.C = 6, .H = 27, .W = 38, .K = 6, .R = 6, .S = 6}},
      {0, "many channels", P{.C = 65, .H = 6, .W = 7, .K = 33, .R = 3, .S = 3, .pad = pad_all(1)},
       Size::full},
      {0, "1x1 filter, many channels", P{.N = 2, .C = 37, .H = 5, .W = 9, .K = 41}},
      {0, "groups of 3 and 5 channels",
       P{.N = 2,
         .C = 9,
         .H = 12,
         .W = 10,
         .K = 15,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .groups = 3}},
      {0, "padding wider than the filter",
       P{.C = 2, .H = 6, .W = 5, .K = 3, .R = 3, .S = 2, .pad = {5, 0, 0, 6}, .stride = {2, 3}}},
      {0, "weights larger than 64 KB for one filter",
       P{.C = 1850, .H = 3, .W = 5, .K = 2, .R = 3, .S = 3}, Size::full, 0, true},
      {0, "a filter larger than 64 KB alone", P{.H = 130, .W = 131, .R = 129, .S = 129}, Size::full,
       0, true, true, "conv2d"},
      {0, "a tile of inputs larger than shared memory",
       P{.C = 2,
         .H = 130,
         .W = 250,
         .K = 2,
         .R = 5,
         .S = 5,
         .stride = {5, 5},
         .dilation = {20, 20}},
       Size::full, 0, true},
      {0,
       "columns of 12 MB an image, two of three images in 32 MB",
       P{.N = 3, .C = 32, .H = 211, .W = 217, .R = 1, .S = 2},
       Size::full,
       0,
       true,
       true,
       "",
       {"cuda_optimized/conv2d_dgrad/gemm_col2im", "cuda_optimized/conv2d_wgrad/im2col_gemm"}},
      {0, "channels in whole multiples of 64, filters in tiles of 64 and a rest",
       P{.N = 2, .C = 64, .H = 9, .W = 11, .K = 70, .R = 3, .S = 3, .pad = pad_all(1)}, Size::full},
      {0, "two groups of 64 channels, strides",
       P{.C = 128,
         .H = 11,
         .W = 9,
         .K = 4,
         .R = 2,
         .S = 3,
         .pad = pad_all(1),
         .stride = {2, 2},
         .groups = 2},
       Size::full},
      {0, "many filters and channels",
       P{.C = 64, .H = 5, .W = 6, .K = 150, .R = 2, .S = 2, .pad = pad_all(1)}, Size::full},
      {0, "depthwise, whole planes",
       P{.N = 3, .C = 6, .H = 14, .W = 14, .K = 6, .R = 3, .S = 3, .pad = pad_all(1), .groups = 6}},
      {0, "depthwise, planes of odd size",
       P{.N = 5, .C = 3, .H = 7, .W = 7, .K = 3, .R = 3, .S = 3, .pad = pad_all(1), .groups = 3}},
      {0, "depthwise 5x5, multiplier 2, asymmetric padding",
       P{.N = 2,
         .C = 3,
         .H = 9,
         .W = 30,
         .K = 6,
         .R = 5,
         .S = 5,
         .pad = {1, 0, 1, 3},
         .groups = 3}},
      {0, "depthwise 5x5, stride 2",
       P{.N = 2,
         .C = 3,
         .H = 11,
         .W = 30,
         .K = 3,
         .R = 5,
         .S = 5,
         .pad = {2, 2, 2, 1},
         .stride = {2, 2},
         .groups = 3}},
      {0, "depthwise, planes in bands",
       P{.C = 2, .H = 90, .W = 64, .K = 2, .R = 3, .S = 3, .pad = pad_all(1), .groups = 2},
       Size::full},
      {0, "filter 5x20, stride 2, one channel",
       P{.N = 2, .C = 1, .H = 20, .W = 75, .K = 32, .R = 5, .S = 20, .stride = {2, 2}}},
      {0, "filter 7x7, stride 2, three channels",
       P{.C = 3, .H = 40, .W = 40, .K = 35, .R = 7, .S = 7, .pad = pad_all(3), .stride = {2, 2}},
       Size::full},
      {0, "deep and narrow", P{.N = 7, .C = 130, .H = 2, .W = 2, .K = 3, .R = 2, .S = 2}},
  };
  for (const std::size_t offset : {0u, 4u, 8u, 12u}) {
    list.push_back({22, "arrays at 16 n + " + std::to_string(offset) + " bytes",
                    P{.C = 4, .H = 16, .W = 64, .K = 8, .R = 3, .S = 3, .pad = pad_all(1)},
                    offset == 4 ? Size::small : Size::full, offset});
  }
  for (const int out_w : {31, 32, 33, 127, 128, 129}) {
    for (const int k : {1, 3, 63, 64, 65, 129}) {
      // One row more than 8 in P, so that the tiles end inside of the output along both axes.
      list.push_back(
          {23, kTileSweep,
           P{.C = 2, .H = 9, .W = out_w + 2, .K = k, .R = 3, .S = 3, .pad = {1, 1, 0, 0}},
           out_w == 33 && k < 63 ? Size::small : Size::full});
    }
  }
  for (const int w : {6, 7, 8}) {
    list.push_back({0,
                    "W % 4 = " + std::to_string(w % 4) + ", H*W % 4 = " + std::to_string(3 * w % 4),
                    P{.C = 3, .H = 3, .W = w, .K = 2, .R = 2, .S = 3, .pad = pad_all(1)}});
  }
  // Padding beside a filter of one tap: outputs that have no product at all.
  list.push_back({0, "1x1 filter, padding above",
                  P{.N = 2, .C = 3, .H = 5, .W = 8, .K = 4, .pad = {2, 0, 0, 0}}});
  list.push_back({0, "1x1 filter, padding on the right",
                  P{.C = 8, .H = 4, .W = 13, .K = 8, .pad = {0, 0, 0, 3}}});
  list.push_back({0, "1x1 filter, padding below and on the left, stride 2",
                  P{.C = 5, .H = 6, .W = 7, .K = 3, .pad = {0, 1, 3, 0}, .stride = {2, 2}}});
  for (ConvTestProblem& choice : choice_problems()) list.push_back(std::move(choice));
  bool bias = true;  // every other problem, so that both branches meet all kinds
  for (ConvTestProblem& entry : list) {
    entry.problem.bias = bias || entry.number == 17;
    bias = !bias;
    entry.problem = validated(entry.problem);
    if (entry.size == Size::small) entry.size = size_of_small(entry.name);
  }
  return list;
}

/// ReLU hides all errors below zero, so that these problems are few, beside those without: one for
/// each way on which a sum is completed and stored.
std::vector<ConvTestProblem> relu_problems() {
  using P = Conv2dProblem;
  std::vector<ConvTestProblem> list = {
      {0, "ReLU after a bias",
       P{.N = 2, .C = 3, .H = 9, .W = 11, .K = 6, .R = 3, .S = 3, .pad = pad_all(1), .bias = true}},
      {0, "ReLU without a bias",
       P{.N = 2, .C = 3, .H = 8, .W = 13, .K = 5, .R = 3, .S = 2, .stride = {2, 1}}},
      {0, "ReLU, rows of fours",
       P{.C = 4, .H = 6, .W = 16, .K = 12, .R = 3, .S = 3, .pad = pad_all(1), .bias = true}},
      {0, "ReLU, 1x1 filter", P{.N = 2, .C = 5, .H = 6, .W = 7, .K = 4, .bias = true}},
      {0, "ReLU, groups",
       P{.N = 2,
         .C = 6,
         .H = 7,
         .W = 10,
         .K = 8,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .groups = 2,
         .bias = true}},
      {0, "ReLU, depthwise",
       P{.N = 2,
         .C = 5,
         .H = 9,
         .W = 9,
         .K = 5,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .groups = 5,
         .bias = true}},
      {0, "ReLU, depthwise 7x7",
       P{.C = 3, .H = 10, .W = 8, .K = 3, .R = 7, .S = 7, .pad = pad_all(3), .groups = 3}},
      {0, "ReLU of few and long sums",
       P{.C = 150, .H = 3, .W = 3, .K = 9, .R = 3, .S = 3, .pad = pad_all(1), .bias = true}},
      {0, "ReLU, many filters and channels",
       P{.C = 64, .H = 5, .W = 6, .K = 150, .R = 2, .S = 2, .pad = pad_all(1), .bias = true},
       Size::full},
      {0, "ReLU, weights larger than 64 KB for one filter",
       P{.C = 1850, .H = 3, .W = 5, .K = 2, .R = 3, .S = 3, .bias = true}, Size::full, 0, true,
       true},
  };
  for (ConvTestProblem& entry : list) {
    entry.problem.activation = Activation::relu;
    entry.problem = validated(entry.problem);
    if (entry.size == Size::small) entry.size = size_of_small(entry.name);
  }
  return list;
}

struct ColumnsTestProblem {
  int number;
  std::string name;
  Im2colProblem problem;
  Size size = Size::small;
  std::size_t misalignment = 0;
};

/// The forward pass under each tile map.
std::vector<ConvTestProblem> mapped_conv_problems() {
  using P = Conv2dProblem;
  std::vector<ConvTestProblem> list;
  const auto add = [&](TileMap map, P problem, Size size) {
    problem.map = map;
    problem.bias = true;
    list.push_back({0, "map", validated(problem), size});
  };
  for (const TileMapName& map : kTileMaps) {
    // 5 x 3 tiles of 32 x 32, of two products. A sanitizer gets one of each kind of map.
    const bool one_of_a_kind = map.map == TileMap::identity8 || map.map == TileMap::hilbert ||
                               map.map == TileMap::grouped || map.map == TileMap::stream_k;
    add(map.map, {.C = 4, .H = 13, .W = 12, .K = 134, .groups = 2},
        one_of_a_kind ? Size::small : Size::full);
  }
  for (const TileMap map :
       {TileMap::identity2, TileMap::identity8, TileMap::grouped, TileMap::hilbert}) {
    add(map, {.H = 5, .W = 8, .K = 300}, Size::full);
    // 6 x 3 tiles of 128 pixels x 64 filters.
    add(map, {.H = 17, .W = 40, .K = 130, .R = 3, .S = 3, .pad = pad_all(1)}, Size::full);
  }
  // Long sums, which several blocks can share.
  add(TileMap::split_k, {.C = 30, .H = 5, .W = 5, .K = 5, .R = 3, .S = 3}, Size::small);
  add(TileMap::stream_k, {.C = 30, .H = 5, .W = 5, .K = 5, .R = 3, .S = 3}, Size::full);
  return list;
}

/// Windows in 1, 2 and 3 dimensions, each with the three requests.
std::vector<TestProblem> column_problems() {
  using P = Im2colProblem;
  // Axes: size, kernel, pad before, pad after, stride, dilation.
  std::vector<ColumnsTestProblem> list = {
      {28, "3-D", P{.C = 2, .rank = 3, .depth = {5, 3}, .height = {6, 3}, .width = {7, 3}}},
      {0, "3-D, padded",
       P{.C = 2, .rank = 3, .depth = {5, 3, 1, 1}, .height = {6, 3, 1, 1}, .width = {7, 3, 1, 1}}},
      {0, "3-D, each parameter another",
       P{.N = 2,
         .C = 3,
         .rank = 3,
         .depth = {7, 2, 0, 2, 3, 1},
         .height = {9, 3, 2, 1, 2, 2},
         .width = {11, 4, 1, 3, 1, 3}}},
      {0, "3-D, stride > kernel",
       P{.C = 2,
         .rank = 3,
         .depth = {5, 1, 0, 0, 2, 1},
         .height = {6, 1, 0, 0, 3, 1},
         .width = {7, 2, 0, 0, 4, 1}}},
      {0, "3-D, uncovered tails",
       P{.N = 2,
         .rank = 3,
         .depth = {8, 3, 0, 0, 3, 1},
         .height = {7, 2, 0, 0, 4, 1},
         .width = {10, 3, 0, 0, 5, 1}}},
      {0, "3-D, one plane",
       P{.C = 3, .rank = 3, .depth = {1, 1}, .height = {6, 3}, .width = {5, 2}}},
      {0, "3-D, empty batch",
       P{.N = 0, .C = 2, .rank = 3, .depth = {4, 2}, .height = {4, 2}, .width = {4, 2}}},
      {0, "1-D, stride > kernel", P{.C = 2, .rank = 1, .width = {11, 1, 0, 0, 3, 1}}},
      {0, "1-D, minimal", P{.rank = 1}},
      {0, "1-D, long", P{.N = 2, .C = 3, .rank = 1, .width = {1000, 5, 2, 2, 1, 1}}},
      {0, "1-D, gcd(stride, dilation) = 1", P{.C = 2, .rank = 1, .width = {31, 4, 5, 2, 3, 2}}},
      {0, "1-D, gcd(stride, dilation) = 2", P{.C = 2, .rank = 1, .width = {31, 4, 5, 2, 4, 6}}},
      {0, "1-D, gcd = stride", P{.C = 2, .rank = 1, .width = {40, 3, 3, 1, 2, 6}}},
      {0, "1-D, uncovered tail", P{.rank = 1, .width = {23, 3, 0, 0, 7, 1}}},
      {0, "1-D, windows in the padding", P{.rank = 1, .width = {2, 2, 9, 7, 3, 2}}},
      {0, "1-D, more windows than pixels, all in fours",
       P{.C = 3, .rank = 1, .width = {8, 5, 4, 4, 1, 1}}},
      {0, "1-D, fours with a stride", P{.N = 2, .rank = 1, .width = {24, 7, 3, 2, 2, 1}}},
      {0, "1-D, fours with stride 3", P{.N = 2, .rank = 1, .width = {48, 4, 2, 2, 3, 2}}},
      {0, "1-D, fours with stride 4", P{.rank = 1, .width = {16, 5, 1, 0, 4, 1}}},
      {0, "1-D, fours with stride 5", P{.rank = 1, .width = {20, 2, 0, 0, 5, 1}}},
      {0, "1-D, fours, first tap five pixels before x", P{.rank = 1, .width = {4, 2, 5, 0, 1, 1}}},
      {0, "2-D, fours, dilated",
       P{.N = 2, .C = 9, .height = {9, 3, 2, 2, 1, 2}, .width = {36, 3, 2, 2, 1, 2}}},
      {0, "2-D, fours, 7x7 with stride 2",
       P{.N = 2, .C = 5, .height = {13, 7, 3, 3, 2, 1}, .width = {24, 7, 3, 3, 2, 1}}},
      {0, "2-D, fours, 1x1", P{.C = 3, .height = {3, 1}, .width = {8, 1}}},
      {0, "2-D, fours, 2x2", P{.height = {5, 2, 1, 0}, .width = {8, 2, 1, 0}}},
      {0, "2-D, fours, 2x2 with stride 2",
       P{.height = {5, 2, 1, 0, 2, 1}, .width = {8, 2, 1, 0, 2, 1}}},
      {0, "2-D, fours, 3x3 with stride 2",
       P{.C = 2, .height = {5, 3, 1, 1, 2, 1}, .width = {8, 3, 1, 1, 2, 1}}},
      {0, "2-D, fours, 3x3 with stride 3",
       P{.height = {6, 3, 1, 1, 3, 1}, .width = {12, 3, 1, 1, 3, 1}}},
      {0, "2-D, fours, 5x5", P{.C = 2, .height = {5, 5, 2, 2, 1, 1}, .width = {8, 5, 2, 2, 1, 1}}},
      {0, "2-D, 7x7 with stride 2", P{.height = {9, 7, 0, 0, 2, 1}, .width = {9, 7, 0, 0, 2, 1}}},
      {0, "2-D, fours, dilated across",
       P{.height = {5, 3, 1, 1, 1, 1}, .width = {8, 3, 2, 2, 1, 2}}},
      {0, "2-D, fours, stride down", P{.height = {5, 3, 1, 1, 2, 1}, .width = {8, 3, 1, 1, 1, 1}}},
      {0, "3-D, fours",
       P{.C = 2, .rank = 3, .depth = {3, 2}, .height = {4, 3, 1, 1}, .width = {8, 3, 1, 1}}},
      {0, "1-D, many channels", P{.N = 3, .C = 67, .rank = 1, .width = {9, 3, 1, 1, 1, 1}}},
      // Of what a kernel for common filters asks, all but one: the axes alike, and no dilation.
      {0, "2-D, fours, 3x3 dilated along rows alone",
       P{.C = 2, .height = {7, 3, 1, 1, 1, 1}, .width = {12, 3, 2, 2, 1, 2}}},
      {0, "2-D, fours, 3x3 dilated along columns alone",
       P{.C = 2, .height = {7, 3, 1, 1, 1, 2}, .width = {12, 3, 1, 1, 1, 1}}},
      {0, "2-D, fours, 1x3", P{.C = 2, .height = {7, 1, 0, 0, 1, 1}, .width = {12, 3, 1, 1, 1, 1}}},
      {0, "2-D, fours, 3x3 with vertical stride 2",
       P{.C = 2, .height = {7, 3, 1, 1, 2, 1}, .width = {12, 3, 1, 1, 1, 1}}},
  };
  for (const ConvTestProblem& conv : conv_problems()) {
    // The columns do not depend on K.
    if (conv.only_conv2d || (conv.number == 23 && conv.problem.K != 3)) continue;
    list.push_back(
        {conv.number, conv.name, columns_of(conv.problem), conv.size, conv.misalignment});
  }
  std::vector<TestProblem> all;
  for (ColumnsTestProblem& entry : list) {
    if (entry.size == Size::small) entry.size = size_of_small(entry.name);
    for (const Request request : {Request::write, Request::add, Request::none}) {
      if (entry.size == Size::huge && request != Request::write) continue;
      entry.problem.request = request;
      all.push_back(
          {entry.number, entry.name, validated(entry.problem), entry.size, entry.misalignment});
    }
  }
  return all;
}

std::vector<TestProblem> gemm_problems() {
  std::vector<TestProblem> list;
  const auto add = [&](const std::string& name, GemmProblem problem, Size size = Size::small,
                       std::size_t misalignment = 0) {
    list.push_back({0, name, validated(problem), size, misalignment});
  };
  add("minimal", {.M = 1, .N = 1, .K = 1});
  add("inner product", {.M = 1, .N = 1, .K = 1031});
  add("outer product", {.M = 37, .N = 41, .K = 1});
  add("row times matrix", {.M = 1, .N = 67, .K = 29});
  add("matrix times column", {.M = 67, .N = 1, .K = 29});
  add("primes", {.M = 7, .N = 11, .K = 13});
  add("long sums", {.M = 5, .N = 7, .K = 1031});
  add("tall", {.M = 517, .N = 3, .K = 5});
  add("wide", {.M = 3, .N = 517, .K = 5});
  add("C*R*S = 45", {.M = 6, .N = 121, .K = 45});
  for (const int tile : {8, 16, 32, 64, 128}) {
    const Size size = tile == 32 ? Size::small : Size::full;
    const std::string about = "around a tile of " + std::to_string(tile);
    const int below = tile - 1, above = tile + 1;
    add(about, {.M = tile, .N = tile, .K = tile}, size);
    add(about, {.M = below, .N = tile, .K = above}, size);
    add(about, {.M = tile, .N = above, .K = below}, size);
    add(about, {.M = above, .N = below, .K = tile}, size);
    add(about, {.M = above, .N = above, .K = above}, size);
    add(about, {.M = below, .N = below, .K = below}, size);
    add("odd number of k-steps of " + std::to_string(tile), {.M = 9, .N = 10, .K = 3 * tile}, size);
  }
  for (const std::size_t offset : {4u, 8u, 12u}) {
    add("arrays at 16 n + " + std::to_string(offset) + " bytes", {.M = 33, .N = 36, .K = 20},
        Size::small, offset);
  }
  for (const TileMapName& map : kTileMaps) {
    // K is short: the order of the tiles is what counts.
    for (const auto& [m, n, k] : {std::array{1, 1, 1},
                                  {33, 17, 9},
                                  {161, 97, 5},
                                  {97, 161, 5},
                                  {65, 129, 17},
                                  {130, 130, 3}}) {
      add("map", {.M = m, .N = n, .K = k, .map = map.map}, m == 161 ? Size::small : Size::full);
    }
    for (const auto& [m, n, k] : {std::array{320, 40, 3}, {40, 320, 3}, {513, 257, 2}}) {
      add("map", {.M = m, .N = n, .K = k, .map = map.map}, Size::full);
      list.back().once = m == 513;
    }
  }
  // Eight tiles of 128 x 128, four of 128 x 256; more than one step, and sums of several.
  add("eight large tiles", {.M = 512, .N = 256, .K = 36}, Size::full);
  list.back().once = true;
  for (const TileMap map : {TileMap::split_k, TileMap::stream_k}) {
    for (const auto& [m, n, k] : {std::array{33, 70, 150}, {5, 9, 700}, {70, 33, 333}}) {
      add("map, long sums", {.M = m, .N = n, .K = k, .map = map});
    }
  }
  return list;
}

std::vector<TestProblem> tile_map_problems() {
  std::vector<TestProblem> list;
  const auto add = [&](const std::string& name, TileMapProblem problem, Size size = Size::small) {
    list.push_back({0, name, validated(problem), size});
  };
  for (const TileMapName& map : kTileMaps) {
    for (const auto& [m, n] : {std::array{1, 1},
                               {1, 9},
                               {9, 1},
                               {10, 6},
                               {6, 10},
                               {5, 9},
                               {9, 5},
                               {17, 17},
                               {7, 13},
                               {32, 32},
                               {3, 40},
                               {33, 2},
                               {40, 40}}) {
      TileMapProblem problem{.map = map.map, .tiles_m = m, .tiles_n = n};
      const Size size = m * n <= 200 ? Size::small : Size::full;
      add("one k-step", problem, size);
      problem.k_steps = 7;
      problem.batch = 1 + (m + n) % 3;
      if (map.map == TileMap::split_k) {
        for (const int splits : {1, 3, 7}) {
          problem.splits = splits;
          add("split", problem, size);
        }
      } else if (map.map == TileMap::stream_k) {
        for (const int blocks : {1, 2, 7, 132, 5000}) {
          problem.blocks = blocks;
          add("shared", problem, size);
        }
      } else if (map.map == TileMap::grouped) {
        for (const int rows : {1, 3, 8, 50}) {
          problem.group_rows = rows;
          add("grouped", problem, size);
        }
      } else {
        add("batch", problem, size);
      }
    }
  }
  // A batch counts along grid.z, which ends at 65535: CUTLASS launches batch % 65536 blocks.
  for (const int batch : {65535, 65536, 70000}) {
    add("more products than grid.z", {.map = TileMap::batched, .batch = batch}, Size::full);
  }
  add("more products than grid.z", {.map = TileMap::row_major, .tiles_n = 2, .batch = 65536},
      Size::full);
  add("many splits", {.map = TileMap::split_k, .tiles_m = 2, .k_steps = 1000, .splits = 999});
  add("splits that do not divide",
      {.map = TileMap::split_k, .tiles_m = 3, .k_steps = 10, .splits = 4});
  add("more products than grid.z, split",
      {.map = TileMap::split_k, .k_steps = 5, .splits = 3, .batch = 22000}, Size::full);
  add("tall", {.map = TileMap::row_major, .tiles_m = 70000}, Size::full);
  add("wide", {.map = TileMap::row_major, .tiles_n = 70000}, Size::full);
  add("tall", {.map = TileMap::identity1, .tiles_m = 70000}, Size::full);
  add("wide", {.map = TileMap::horizontal, .tiles_n = 70000}, Size::full);
  // group_rows * tiles_n is beyond an int.
  add("a super-row far taller than the product",
      {.map = TileMap::grouped, .tiles_m = 3, .tiles_n = 4, .group_rows = 1 << 30});
  add("as wide as grid.y", {.map = TileMap::identity2, .tiles_n = 2 * 65535}, Size::full);
  return list;
}

Conv2dProblem random_conv(Dice& dice) {
  while (true) {
    Conv2dProblem p;
    p.groups = dice(0, 2) == 0 ? dice(2, 4) : 1;
    p.N = dice(1, 3);
    p.C = p.groups * dice(1, 9);
    p.K = p.groups * dice(1, 9);
    // Every third is a few wide or tall planes: what is planned by what fits must give way there.
    const int shape = dice(0, 5);
    if (shape <= 1) {
      p.N = 1;
      p.C = p.groups * dice(1, 2);
      p.K = p.C * dice(1, 2);
    }
    p.H = shape == 0 ? dice(100, 700) : shape == 1 ? dice(1, 12) : dice(1, 40);
    p.W = shape == 0 ? dice(1, 12) : shape == 1 ? dice(100, 700) : dice(1, 70);
    p.R = dice(1, 7);
    p.S = dice(1, 7);
    if (dice(0, 1) == 0) p.dilation = {dice(1, 3), dice(1, 3)};
    // Also windows that lie wholly in the padding, and pixels that no window reads.
    const int most_rows = dice(0, 3) == 0 ? p.R * p.dilation.h : 4;
    const int most_columns = dice(0, 3) == 0 ? p.S * p.dilation.w : 4;
    p.pad = {dice(0, most_rows), dice(0, most_rows), dice(0, most_columns), dice(0, most_columns)};
    if (dice(0, 1) == 0) p.stride = {dice(1, 4), dice(1, 4)};
    if (dice(0, 5) == 0) p.stride = {dice(1, 2 * p.R + 1), dice(1, 2 * p.S + 1)};
    p.bias = dice(0, 1) == 0;
    try {
      p = validated(p);
    } catch (const BadInput&) {
      continue;
    }
    const std::int64_t products =
        std::int64_t{p.N} * p.K * p.P * p.Q * (p.C / p.groups) * p.R * p.S;
    if (products <= 400'000) return p;
  }
}

Im2colProblem random_columns(Dice& dice) {
  while (true) {
    Im2colProblem p{.N = dice(1, 3), .C = dice(1, 9), .rank = dice(1, 3)};
    const auto axis = [&](int longest) {
      return WindowAxis{dice(1, longest), dice(1, 5), dice(0, 4),
                        dice(0, 4),       dice(1, 5), dice(1, 4)};
    };
    p.width = axis(40);
    if (p.rank >= 2) p.height = axis(20);
    if (p.rank >= 3) p.depth = axis(9);
    p.request = static_cast<Request>(dice(0, 2));
    try {
      p = validated(p);
    } catch (const BadInput&) {
      continue;
    }
    if (p.N * p.rows() * p.columns() <= 300'000) return p;
  }
}

GemmProblem random_gemm(Dice& dice) {
  constexpr std::array whole = {TileMap::row_major, TileMap::identity1, TileMap::identity2,
                                TileMap::identity4, TileMap::identity8, TileMap::horizontal,
                                TileMap::grouped,   TileMap::hilbert};
  return validated(GemmProblem{.M = dice(1, 200),
                               .N = dice(1, 200),
                               .K = dice(1, 70),
                               .map = whole[static_cast<std::size_t>(dice(0, 7))]});
}

TileMapProblem random_tile_map(Dice& dice) {
  TileMapProblem p{.map = kTileMaps[static_cast<std::size_t>(dice(0, 10))].map,
                   .tiles_m = dice(1, 70),
                   .tiles_n = dice(1, 70),
                   .k_steps = dice(1, 20)};
  if (p.map == TileMap::split_k) p.splits = dice(1, p.k_steps);
  if (p.map == TileMap::grouped) p.group_rows = dice(1, 20);
  if (dice(0, 1) == 0) p.batch = dice(1, 5);
  if (p.map == TileMap::stream_k) p.blocks = dice(1, 300);
  return validated(p);
}

}  // namespace

bool is_for(const TestProblem& problem, const std::string& rung) {
  return problem.rungs.empty() || std::ranges::find(problem.rungs, rung) != problem.rungs.end();
}

std::string title_of(const TestProblem& problem) {
  std::string line = problem.number == 0 ? "" : std::to_string(problem.number) + " ";
  line += problem.name + ": " + describe(problem.problem);
  if (problem.misalignment != 0) line += text(", misaligned by ", problem.misalignment, " bytes");
  return line;
}

namespace {

std::vector<TestProblem> thought_of_problems(const std::string& ladder) {
  if (ladder.starts_with("conv2d")) {
    std::vector<TestProblem> list;
    std::vector<ConvTestProblem> problems = conv_problems();
    if (ladder == "conv2d") {
      // First: the tests with planted bugs end with the first that fails.
      for (const ConvTestProblem& conv : relu_problems()) {
        list.push_back({conv.number, conv.name, conv.problem, conv.size});
      }
      const std::vector<ConvTestProblem> mapped = mapped_conv_problems();
      problems.insert(problems.end(), mapped.begin(), mapped.end());
    }
    for (const ConvTestProblem& conv : problems) {
      const bool one_rung = conv.only.find("/" + ladder + "/") != std::string_view::npos;
      if (!conv.only.empty() && conv.only != ladder && !one_rung) continue;
      list.push_back(
          {conv.number, conv.name, conv.problem, conv.size, conv.misalignment, conv.once});
      list.back().exact_only = conv.name == kTileSweep;
      if (one_rung) {
        list.back().rungs = {std::string(conv.only)};
      } else if (ladder != "conv2d") {
        list.back().rungs = conv.rungs_of_gradients;
      }
    }
    return list;
  }
  if (ladder == "im2col" || ladder == "col2im") return column_problems();
  if (ladder == "gemm") return gemm_problems();
  if (ladder == "tile_map") return tile_map_problems();
  if (is_sparse(ladder)) return sparse_problems(ladder);
  throw std::logic_error("no test problems for the ladder " + ladder);
}

}  // namespace

std::vector<TestProblem> problems_of(const std::string& ladder) {
  std::vector<TestProblem> list = thought_of_problems(ladder);
  for (TestProblem& found : found_problems(ladder)) list.push_back(std::move(found));
  return list;
}

std::vector<TestProblem> random_problems(const std::string& ladder, int count, std::uint64_t seed) {
  if (is_sparse(ladder)) return random_sparse_problems(ladder, count, seed);
  Dice dice(seed);
  std::vector<TestProblem> list;
  for (int i = 1; i <= count; ++i) {
    Problem problem = GemmProblem{};
    if (ladder.starts_with("conv2d")) {
      Conv2dProblem conv = random_conv(dice);
      if (ladder == "conv2d" && i % 4 == 0) conv.activation = Activation::relu;
      problem = conv;
    } else if (ladder == "im2col" || ladder == "col2im") {
      problem = random_columns(dice);
    } else if (ladder == "gemm") {
      problem = random_gemm(dice);
    } else if (ladder == "tile_map") {
      problem = random_tile_map(dice);
    } else {
      throw std::logic_error("no random problems for the ladder " + ladder);
    }
    list.push_back(
        {0, text("random ", i, " of seed ", seed), problem, Size::small,
         ladder == "tile_map" ? std::size_t{0} : static_cast<std::size_t>(dice(0, 3)) * 4});
  }
  return list;
}

std::vector<std::vector<Problem>> forms_of(const Problem& problem) {
  constexpr std::array precisions = {Precision::fp32, Precision::tf32};
  std::vector<std::vector<Problem>> forms;
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      forms.emplace_back();
      for (const Precision precision : precisions) {
        Conv2dProblem form = *conv;
        form.layout = layout;
        form.precision = precision;
        forms.back().emplace_back(form);
      }
    }
  } else if (const auto* columns = std::get_if<Im2colProblem>(&problem)) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      Im2colProblem form = *columns;
      form.layout = layout;
      forms.push_back({form});
    }
  } else if (const auto* product = std::get_if<GemmProblem>(&problem)) {
    forms.emplace_back();
    for (const Precision precision : precisions) {
      GemmProblem form = *product;
      form.precision = precision;
      forms.back().emplace_back(form);
    }
  } else if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) {
    forms.emplace_back();
    for (const Precision precision : precisions) {
      SparseConvProblem form = *sparse;
      form.precision = precision;
      forms.back().emplace_back(form);
    }
    for (const DType dtype : {DType::f16, DType::bf16}) {
      SparseConvProblem form = *sparse;
      form.dtype = dtype;
      forms.push_back({form});
    }
  } else if (const auto* book = std::get_if<RulebookProblem>(&problem)) {
    for (const RulebookForm asked :
         {RulebookForm::pairs, RulebookForm::table, RulebookForm::sorted, RulebookForm::split}) {
      RulebookProblem form = *book;
      form.form = asked;
      forms.push_back({form});
    }
  } else {
    forms.push_back({problem});
  }
  return forms;
}

std::string name_of_form(const Problem& form) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&form))
    return text(name_of(conv->layout), " ", name_of(conv->precision));
  if (const auto* columns = std::get_if<Im2colProblem>(&form)) return name_of(columns->layout);
  if (const auto* product = std::get_if<GemmProblem>(&form)) return name_of(product->precision);
  if (const auto* sparse = std::get_if<SparseConvProblem>(&form))
    return sparse->dtype == DType::f32 ? name_of(sparse->precision) : name_of(sparse->dtype);
  if (const auto* book = std::get_if<RulebookProblem>(&form))
    return std::string(name_of(book->form));
  return "any";
}

namespace {

/// What tells problems of one name apart best: the mode of a rulebook, or the map of tiles.
std::string kind_of(const Problem& problem) {
  if (const auto* book = std::get_if<RulebookProblem>(&problem))
    return text(", ", name_of(book->mode));
  if (const auto* tiles = std::get_if<TileMapProblem>(&problem))
    return text(", ", name_of(tiles->map));
  TileMap map = TileMap::row_major;
  if (const auto* product = std::get_if<GemmProblem>(&problem)) map = product->map;
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) map = conv->map;
  return map == TileMap::row_major ? "" : text(", ", name_of(map));
}

}  // namespace

std::vector<TestProblem> fixed_problems(const std::string& ladder) {
  std::vector<TestProblem> list = problems_of(ladder);
  for (TestProblem& problem : rounding_problems(ladder)) list.push_back(std::move(problem));
  std::map<std::string, int> count;
  for (TestProblem& problem : list) {
    problem.id = problem.name + kind_of(problem.problem);
    ++count[problem.id];
  }
  std::map<std::string, int> seen;
  for (TestProblem& problem : list) {
    if (count[problem.id] > 1) problem.id += text(" #", ++seen[problem.id]);
  }
  return list;
}

std::vector<TestProblem> rounding_problems(const std::string& ladder) {
  const std::string name = "rounding, not truncation";
  if (ladder == "gemm") {
    return {{.name = name,
             .problem = validated(GemmProblem{.M = 40, .N = 70, .K = 300}),
             .equal_sums = true}};
  }
  // Filters of one tap: at the border of dx, larger ones have fewer products.
  if (ladder == "conv2d" || ladder == "conv2d_dgrad" || ladder == "conv2d_wgrad") {
    return {{.name = name,
             .problem = validated(Conv2dProblem{.C = 128, .H = 12, .W = 15, .K = 136}),
             .equal_sums = true}};
  }
  return sparse_rounding_problems(ladder);
}

std::vector<RejectedProblem> rejected_problems() {
  return {{18, "no output column", {.C = 2, .H = 4, .W = 5, .K = 2, .R = 3, .S = 6}, "q = 0"},
          {19,
           "C's division makes an output of none",
           {.H = 5, .W = 5, .R = 6, .S = 6, .stride = {2, 2}},
           "p = 0"}};
}

}  // namespace convladder::testing
