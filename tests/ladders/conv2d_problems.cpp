/// @file conv2d_problems.cpp
/// @brief The edge shapes of convolutions.
#include "tests/ladders/conv2d_problems.hpp"

#include <array>
#include <string>
#include <utility>

#include "tests/ladders/small_problems.hpp"

namespace convladder::testing {

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
      {0, "stride 2, dilated along rows alone",
       P{.C = 2,
         .H = 14,
         .W = 21,
         .K = 3,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .stride = {2, 2},
         .dilation = {1, 2}}},
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
       P{.C = 1850, .H = 3, .W = 5, .K = 2, .R = 3, .S = 3}, Size::full, 0, true, true},
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
       {"cuda_optimized/conv2d/implicit_gemm/im2col_l2_blocked",
        "cuda_optimized/conv2d_dgrad/gemm_col2im", "cuda_optimized/conv2d_wgrad/im2col_gemm"}},
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

std::vector<TestProblem> conv_problems_for(const std::string& ladder,
                                           const std::vector<ConvTestProblem>& problems) {
  std::vector<TestProblem> list;
  for (const ConvTestProblem& conv : problems) {
    const bool one_rung = conv.only.find("/" + ladder + "/") != std::string_view::npos;
    if (!conv.only.empty() && conv.only != ladder && !one_rung) continue;
    list.push_back({conv.number, conv.name, conv.problem, conv.size, conv.misalignment, conv.once});
    list.back().exact_only = conv.name == kTileSweep;
    list.back().offsets = conv.offsets;
    list.back().rungs = one_rung ? std::vector{std::string(conv.only)} : conv.rungs;
  }
  return list;
}

std::vector<TestProblem> conv_rounding_problems() {
  return {{.name = kRounding,
           .problem = validated(Conv2dProblem{.C = 128, .H = 12, .W = 15, .K = 136}),
           .equal_sums = true}};
}

std::vector<Problem> conv_limits() {
  std::vector<Problem> list;
  using P = Conv2dProblem;
  for (const P& problem : {
           P{.dtype = DType::f16},
           P{.C = 1 << 27, .H = 4, .W = 4, .R = 4, .S = 4},          // weights of a filter
           P{.C = 1 << 15, .H = 256, .W = 256, .R = 256, .S = 256},  // likewise, in many taps
           P{.R = 1 << 13, .S = 1 << 13, .pad = {1 << 13, 0, 1 << 13, 0}},  // likewise, padded
           P{.C = 64, .R = 1 << 13, .S = 1 << 13, .pad = {1 << 13, 0, 1 << 13, 0}},
           P{.N = 1 << 25, .H = 64, .W = 64},                           // pixels of all images
           P{.N = kLargestInt, .H = 3, .W = 3, .R = 3, .S = 3},         // likewise, tiles
           P{.N = kLargestInt, .H = 5, .W = 5, .R = 3, .S = 3},         // more of them
           P{.N = 1 << 30, .H = 3, .W = 3, .K = 4096, .R = 3, .S = 3},  // tiles of all filters
           P{.H = 3, .W = 3, .K = 1 << 26, .R = 3, .S = 3},             // filters, transformed
           P{.C = 512, .H = 3, .W = 3, .K = 1 << 30, .R = 3, .S = 3},   // likewise, blocks of them
           P{.C = 60'000'000,
           .H = 3,
           .W = 3,
           .K = 60'000'000,
           .R = 3,
           .S = 3,
           .groups = 60'000'000},                            // likewise, of groups
           P{.N = 1 << 25, .C = 8, .H = 8, .W = 8, .K = 8},  // pixels, with channels in eights
           P{.H = 1 << 16, .W = 1 << 16},                    // pixels of an image
           P{.N = 1 << 23, .C = 4096, .H = 8, .W = 8, .K = 4096},          // steps of all tiles
           P{.N = 1 << 24, .C = 256, .K = 256, .groups = 256},             // planes
           P{.N = 1 << 24, .H = 256, .W = 1},                              // rows of planes
           P{.C = 2, .H = 1, .W = 100'000, .K = 2, .groups = 2},           // a row of a plane
           P{.H = 301, .W = 301, .R = 2, .S = 2, .dilation = {300, 300}},  // inputs of an output
           P{.H = 100, .W = 100, .R = 100, .S = 100},  // nearly all of dy's padding
           P{.C = 1 << 15, .H = 256, .W = 256},        // an image of x
           // Likewise, of channels by themselves: of x, and of y alone.
           P{.C = 4, .H = 24'000, .W = 24'000, .K = 4, .R = 3, .S = 3, .groups = 4},
           P{.C = 4,
           .H = 16'000,
           .W = 16'000,
           .K = 4,
           .R = 3,
           .S = 3,
           .pad = {4000, 4000, 4000, 4000},
           .groups = 4},
           P{.H = 256, .W = 256, .K = 1 << 15},                     // likewise, of dy
           P{.N = 2, .C = 64, .H = 256, .W = 256, .R = 3, .S = 3},  // columns of two images
           // Classes of pixels that get different tiles.
           P{.C = 64, .H = 63, .W = 63, .K = 64, .R = 2, .S = 2, .stride = {2, 2}},
           P{.N = 16, .C = 256, .H = 63, .W = 63, .K = 512, .R = 3, .S = 3, .stride = {2, 2}},
           // Columns of 16 MB an image, two of which fill a budget of 32 MB, and of more than that.
           P{.N = 2, .C = 64, .H = 129, .W = 129, .R = 2, .S = 2},
           P{.N = 3, .C = 64, .H = 129, .W = 129, .R = 2, .S = 2},
           P{.N = 2, .C = 129, .H = 129, .W = 129, .R = 2, .S = 2},
           // Extents to which nothing can be added.
           P{.H = kLargestInt - 100, .W = 3, .R = 3, .S = 3},
           P{.H = 3, .W = kLargestInt - 100, .R = 3, .S = 3},
           P{.C = kLargestInt - 100, .H = 3, .W = 3, .R = 3, .S = 3},
           P{.H = 3, .W = 3, .K = kLargestInt - 100, .R = 3, .S = 3},
           P{.C = 2, .H = 3, .W = 3, .K = kLargestInt - 100, .R = 3, .S = 3},
           P{.H = kLargestInt - 10, .W = 1},
           P{.H = 1, .W = kLargestInt - 10},
           // Layers of networks, for which rungs have plans of their own.
           P{.N = 16,
           .C = 3,
           .H = 224,
           .W = 224,
           .K = 64,
           .R = 7,
           .S = 7,
           .pad = pad_all(3),
           .stride = {2, 2}},
           P{.N = 32, .C = 64, .H = 56, .W = 56, .K = 64, .R = 3, .S = 3, .pad = pad_all(1)},
           P{.N = 32, .C = 256, .H = 14, .W = 14, .K = 1024},
           P{.N = 4, .C = 512, .H = 7, .W = 7, .K = 512, .R = 3, .S = 3, .pad = pad_all(1)},
           P{.N = 16,
           .C = 256,
           .H = 56,
           .W = 56,
           .K = 256,
           .R = 3,
           .S = 3,
           .pad = pad_all(1),
           .groups = 256},
           P{.N = 4,
           .C = 96,
           .H = 112,
           .W = 112,
           .K = 96,
           .R = 5,
           .S = 5,
           .pad = pad_all(2),
           .stride = {2, 2},
           .groups = 96},
       }) {
    list.emplace_back(validated(problem));
  }
  return list;
}

std::vector<Conv2dProblem> small_convolutions() {
  using P = Conv2dProblem;
  std::vector<P> convs;
  for (const P& conv : std::vector<P>{
           {.N = 2,
 .C = 3,
 .H = 7,
 .W = 9,
 .K = 5,
 .R = 3,
 .S = 3,
 .pad = {1, 1, 1, 1},
 .bias = true},
           {.C = 8, .H = 9, .W = 12, .K = 8, .R = 3, .S = 2, .pad = {2, 0, 0, 1}, .stride = {2, 1}},
           {.C = 6, .H = 8, .W = 8, .K = 6, .R = 3, .S = 3, .pad = {1, 1, 1, 1}, .groups = 6},
           {.C = 6, .H = 9, .W = 9, .K = 6, .R = 3, .S = 3, .pad = {1, 1, 1, 1}, .groups = 6},
           {.N = 2, .C = 5, .H = 6, .W = 5, .K = 4, .R = 2, .S = 2},
           {.C = 33, .H = 6, .W = 6, .K = 3, .pad = {0, 1, 0, 0}}})
    convs.push_back(validated(conv));
  return convs;
}

std::vector<TestProblem> small_gradients() {
  std::vector<TestProblem> list;
  for (Conv2dProblem conv : small_convolutions()) {
    conv.bias = false;
    list.push_back({.name = "", .problem = conv});
  }
  return list;
}

}  // namespace convladder::testing
