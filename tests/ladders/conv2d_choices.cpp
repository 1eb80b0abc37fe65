/// @file conv2d_choices.cpp
/// @brief Convolutions that rungs choose by, and those with ReLU, under tile maps, and at random.
#include <array>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/tile_map_problem.hpp"
#include "tests/ladders/conv2d_problems.hpp"
#include "tests/ladders/small_problems.hpp"

namespace convladder::testing {

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
  // Winograd's tiles: ends inside of a tile and behind it, a tile wholly in the padding, blocks of
  // several tiles, filters and channels that are no multiple of what a block takes.
  const auto tiled = [&](const std::string& name, P problem, Padding pad,
                         std::string_view only = "conv2d") {
    problem.R = problem.S = 3;
    problem.pad = pad;
    add(text("filters 3x3, ", name), problem, only, true);
  };
  tiled("one output an image", {.N = 3, .C = 5, .H = 3, .W = 3, .K = 2}, {});
  tiled("padding beyond the filter", {.C = 3, .H = 2, .W = 3, .K = 4}, {5, 4, 6, 3});
  tiled("6 x 9 outputs", {.C = 9, .H = 8, .W = 11, .K = 33}, {});
  tiled("9 x 17 outputs, 65 filters", {.N = 2, .C = 5, .H = 9, .W = 17, .K = 65}, pad_all(1));
  tiled("wide images, 70 filters", {.N = 2, .C = 17, .H = 10, .W = 130, .K = 70}, pad_all(1));
  tiled("130 filters in each of two groups",
        {.N = 2, .C = 6, .H = 12, .W = 60, .K = 260, .groups = 2}, pad_all(1));
  // Their gradients: tiles of dx, and of dy that is cropped where the padding is more than 2.
  tiled("one output an image, tiles of x", {.N = 3, .C = 5, .H = 3, .W = 3, .K = 2}, {},
        "conv2d_dgrad");
  tiled("cropped outputs", {.C = 3, .H = 6, .W = 5, .K = 4}, {5, 4, 6, 3}, "conv2d_dgrad");
  tiled("rows of x that are cropped away", {.C = 2, .H = 1, .W = 2, .K = 3}, {3, 2, 2, 4},
        "conv2d_dgrad");
  tiled("no padding, 70 channels", {.N = 2, .C = 70, .H = 22, .W = 61, .K = 17}, {},
        "conv2d_dgrad");
  tiled("130 channels in each of two groups",
        {.N = 2, .C = 260, .H = 12, .W = 60, .K = 6, .groups = 2}, pad_all(1), "conv2d_dgrad");
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
      "cuda_optimized/conv2d_dgrad/depthwise/nchw");
  add("depthwise, a row at a time", P{.H = 3, .W = 1700, .R = 3, .S = 3, .pad = pad_all(1)},
      "cuda_optimized/conv2d_wgrad/depthwise/nchw");
  add("depthwise, rows that no window reads",
      P{.C = 2, .H = 20, .W = 8, .K = 2, .stride = {8, 1}, .groups = 2}, "conv2d_wgrad");
  // In C++: tiles across and down, a phase for each remainder of a stride, and windows that no tile
  // holds.
  const std::string_view blocked = "cpu_reference/conv2d/im2col_gemm_blocked";
  add("depthwise, multiplier 2, tiles across and down",
      P{.N = 2, .H = 100, .W = 130, .K = 2, .R = 3, .S = 3, .pad = pad_all(1), .bias = true},
      blocked);
  add("depthwise, dilation beside a stride",
      P{.C = 2,
        .H = 9,
        .W = 40,
        .K = 2,
        .R = 3,
        .S = 5,
        .pad = pad_all(4),
        .stride = {2, 3},
        .dilation = {2, 2},
        .groups = 2},
      blocked);
  add("depthwise, a stride beyond the filter",
      P{.C = 2, .H = 9, .W = 40, .K = 2, .R = 2, .S = 2, .stride = {5, 7}, .groups = 2}, blocked);
  add("depthwise, 528 taps",
      P{.C = 2, .H = 25, .W = 24, .K = 2, .R = 24, .S = 22, .pad = pad_all(2), .groups = 2},
      blocked);
  add("depthwise, more padding than a vector",
      P{.C = 2, .H = 9, .W = 8, .K = 2, .R = 2, .S = 2, .pad = pad_all(19), .groups = 2}, blocked);
  add("groups of six filters, a stride and a rest of a tile",
      P{.N = 2,
        .C = 9,
        .H = 41,
        .W = 50,
        .K = 18,
        .R = 3,
        .S = 3,
        .pad = pad_all(1),
        .stride = {2, 2},
        .groups = 3,
        .bias = true},
      blocked);
  add("32 filters, tiles of few rows",
      P{.C = 32, .H = 11, .W = 60, .K = 32, .R = 3, .S = 3, .pad = pad_all(1)}, blocked);
  add("32 filters, windows too high for a tile",
      P{.C = 24, .H = 40, .W = 60, .K = 32, .R = 7, .S = 3, .pad = pad_all(1)}, blocked);
  add("depthwise, a window higher than a tile",
      P{.H = 610, .W = 3, .R = 2, .S = 2, .dilation = {600, 1}}, blocked);
  add("depthwise, a window longer than a tile",
      P{.H = 2, .W = 8200, .R = 1, .S = 2, .dilation = {1, 8195}}, blocked);
  // Few pixels: blocks of fewer filters.
  add("50 filters a block", P{.C = 5, .H = 3, .W = 3, .K = 197, .R = 2, .S = 2}, blocked);
  add("1x1 filters, planes as rows across blocks",
      P{.N = 2, .C = 3, .H = 11, .W = 13, .K = 7, .groups = 1, .bias = true}, blocked);
  // Planes are summed in more than two parts.
  add("depthwise, 228 planes of a filter",
      P{.N = 228, .C = 397, .H = 1, .W = 1, .K = 397, .groups = 397},
      "cuda_optimized/conv2d_wgrad/depthwise/nchw", true);
  // Four channels a thread: tiles of 14 rows and columns and 32 vectors, 7 columns of 1 or 2 rows.
  // Two: tiles of 14 columns and 4, 8 or 14 rows, and 64 channels.
  for (const auto& [ladder, first, second] : {std::array{"conv2d", "x", "y"},
                                              {"conv2d_dgrad", "dy", "dx"},
                                              {"conv2d_wgrad", "x", "dy"}}) {
    const std::string rung = text("cuda_optimized/", ladder, "/depthwise/nhwc");
    const auto add_both = [&](const std::string& name, const P& problem) {
      add("depthwise in fours, " + name, problem, ladder);
      list.back().rungs = {rung, rung + "_tiled"};
    };
    const auto in_fours = [&](const std::string& name, P problem, int taps, Padding pad) {
      problem.K = problem.groups = problem.C;
      problem.R = problem.S = taps;
      problem.pad = pad;
      add_both(name, problem);
    };
    in_fours("two tiles of channels", {.N = 2, .C = 132, .H = 5, .W = 9}, 3, pad_all(1));
    in_fours("tiles of pixels", {.C = 8, .H = 15, .W = 16}, 3, pad_all(1));
    in_fours("padding beyond the filter", {.C = 4, .H = 3, .W = 2}, 3, {5, 4, 3, 6});
    in_fours("5x5", {.N = 2, .C = 4, .H = 9, .W = 17}, 5, {2, 2, 0, 3});
    in_fours("stride 2", {.C = 12, .H = 15, .W = 33, .stride = {2, 2}}, 3, {1, 0, 1, 0});
    in_fours("5x5, stride 2", {.C = 4, .H = 16, .W = 31, .stride = {2, 2}}, 5, pad_all(2));
    // Channels in fours, for which there is no kernel all the same.
    in_fours("stride across", {.C = 4, .H = 5, .W = 8, .stride = {1, 2}}, 3, pad_all(1));
    in_fours("dilation down", {.C = 4, .H = 6, .W = 5, .dilation = {2, 1}}, 3, pad_all(1));
    in_fours("dilation across", {.C = 4, .H = 5, .W = 6, .dilation = {1, 2}}, 3, pad_all(1));
    in_fours("stride 3", {.C = 4, .H = 7, .W = 8, .stride = {3, 3}}, 3, pad_all(1));
    in_fours("5x5, stride 3", {.C = 4, .H = 8, .W = 9, .stride = {3, 3}}, 5, pad_all(2));
    in_fours("7x7", {.C = 4, .H = 7, .W = 8}, 7, pad_all(3));
    add_both("5x3",
             P{.C = 4, .H = 6, .W = 7, .K = 4, .R = 5, .S = 3, .pad = pad_all(1), .groups = 4});
    in_fours("many images", {.N = 9, .C = 8, .H = 14, .W = 13}, 3, pad_all(1));
    in_fours("arrays at 16 n + 4 bytes", {.C = 8, .H = 4, .W = 4}, 3, pad_all(1));
    list.back().misalignment = 4;
    for (const char* array : {first, second}) {
      in_fours(text(array, " alone at 16 n + 4 bytes"), {.C = 8, .H = 4, .W = 4}, 3, pad_all(1));
      list.back().offsets = {{array, 4}};
    }
  }

  add("depthwise in tiles, 33 images for 32 blocks",
      P{.N = 33,
        .C = 512,
        .H = 1,
        .W = 2,
        .K = 512,
        .R = 3,
        .S = 3,
        .pad = pad_all(1),
        .groups = 512},
      "cuda_optimized/conv2d_wgrad/depthwise/nhwc_tiled");

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
  const std::string_view wgrad = "cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async";
  add("20 filters, 1024 pixels", P{.H = 32, .W = 32, .K = 20}, "conv2d");
  add("128 filters, 1024 pixels", P{.H = 32, .W = 32, .K = 128}, "conv2d", true);
  add("65 filters, 65 tiles of pixels", P{.H = 91, .W = 91, .K = 65}, "conv2d", true);
  const std::string_view dgrad = "cuda_optimized/conv2d_dgrad/implicit_gemm/residue_classes";
  add("65 channels, 65 tiles of pixels", P{.C = 65, .H = 91, .W = 91}, dgrad, true);
  add("40 channels, 1024 pixels", P{.C = 40, .H = 32, .W = 32}, dgrad, true);
  add("as many products of padding as are taken", P{.H = 8, .W = 8, .R = 8, .S = 8},
      "conv2d_dgrad");
  add("more products of padding than are taken, in four classes",
      P{.H = 18, .W = 18, .R = 17, .S = 17, .stride = {2, 2}}, "conv2d_dgrad");
  add("weights that fit beside inputs one by one, but not in fours",
      P{.C = 179, .H = 1, .W = 16, .stride = {9, 9}}, "conv2d");
  add("columns in tiles of 192", P{.N = 1300, .C = 320, .H = 1, .W = 1}, wgrad, true);
  add("tiles of 128 x 128", P{.C = 1856, .H = 1, .W = 1, .K = 1730},
      "cuda_optimized/conv2d_wgrad/implicit_gemm/split_k", true);
  add("shares of sums that end within a tile",
      P{.N = 228, .C = 397, .H = 1, .W = 1, .K = 397, .groups = 397}, wgrad, true);
  // Winograd's tiles: filters that fill tiles of 128, and more than 32 tiles.
  const std::string_view tiles_4x4 = "cuda_optimized/conv2d/winograd/4x4";
  tiled("128 filters, 36 tiles of 4x4", {.C = 3, .H = 22, .W = 22, .K = 128}, pad_all(1),
        tiles_4x4);
  tiled("256 filters, 36 tiles of 4x4", {.C = 3, .H = 22, .W = 22, .K = 256}, pad_all(1),
        tiles_4x4);
  // As many channels as numbers up to 8 may have: whole sums are nowhere larger.
  tiled("454 channels", {.C = 454, .H = 13, .W = 13, .K = 5}, pad_all(1), tiles_4x4);
  // Rows in pieces of three taps: more pixels, channels and filters than a block takes at once; and
  // x in fours with padding at its left.
  const std::string_view pieces = "cuda_optimized/conv2d/winograd/split_rows";
  add("filters 6x6, two blocks each way and of filters",
      P{.C = 14, .H = 38, .W = 56, .K = 14, .R = 6, .S = 6, .groups = 2, .bias = true}, pieces);
  add("filters 4x5, padding 4, 13 channels",
      P{.N = 2, .C = 13, .H = 7, .W = 12, .K = 3, .R = 4, .S = 5, .pad = {1, 2, 4, 3}}, pieces);
  add("filters 4x5, rows in fours, arrays at 16 n + 4 bytes",
      P{.C = 2, .H = 5, .W = 12, .K = 3, .R = 4, .S = 5}, pieces);
  list.back().misalignment = 4;
  for (const bool strided : {true, false}) {
    P across{.H = 5, .W = 9, .R = 4, .S = 5};
    (strided ? across.stride : across.dilation) = {1, 2};
    add(text("filters 4x5, ", strided ? "stride" : "dilation", " across"), across, "conv2d");
    list.back().rungs = {"cpu_reference/conv2d/winograd_split_rows",
                         "cuda_optimized/conv2d/winograd/split_rows"};
  }
  // Fourier tiles of 64 x 64, more than one, with spectra in either place; and filters that are
  // wider than the smallest tile, but not taller.
  const std::string_view fourier = "cuda_optimized/conv2d/fft/fused";
  add("a filter that reaches over 25 x 25 pixels",
      P{.C = 2, .H = 70, .W = 66, .K = 3, .R = 5, .S = 5, .dilation = {6, 6}}, fourier);
  add("depthwise, filters that reach over 25 x 21 pixels",
      P{.C = 2,
        .H = 70,
        .W = 60,
        .K = 2,
        .R = 5,
        .S = 5,
        .pad = pad_all(3),
        .dilation = {6, 5},
        .groups = 2},
      fourier);
  add("a filter of one row and 18 columns",
      P{.C = 2, .H = 4, .W = 40, .K = 2, .S = 18, .pad = pad_all(0, 3)}, fourier);
  // Spectra of many channels: as many tiles, channels and filters as tensor cores take, with
  // groups.
  const std::string_view spectra = "cuda_optimized/conv2d/fft/3xtf32";
  add("filters 8x8, 16 tiles of an output",
      P{.N = 16, .C = 9, .H = 8, .W = 8, .K = 9, .R = 8, .S = 8}, spectra);
  add("filters 2x4, groups of 8 filters and 9 channels",
      P{.N = 8, .C = 18, .H = 2, .W = 15, .K = 16, .R = 2, .S = 4, .pad = pad_all(1), .groups = 2},
      spectra, true);
  add("filters 8x8, more channels than a step of the tensor cores",
      P{.N = 16, .C = 33, .H = 8, .W = 8, .K = 8, .R = 8, .S = 8}, spectra, true);
  // Any filter, and its channel's filters one after the other: there is no room for all.
  add("depthwise 2x2, multiplier 2, bands", P{.H = 90, .W = 64, .K = 2, .R = 2, .S = 2},
      "cuda_optimized/conv2d_dgrad/depthwise/nchw");
  // The first of three classes of pixels has more of them, and so other tiles than both others.
  add("three classes of pixels, tiles of two sizes", P{.C = 17, .H = 48, .W = 31, .stride = {1, 3}},
      "cuda_optimized/conv2d_dgrad/implicit_gemm/mma_tf32");

  // Of the second four of nine classes, the third one has most pixels: a tile more than the first.
  add("nine classes of pixels, the largest not the first of its launch",
      P{.H = 81, .W = 7, .stride = {3, 3}}, "cuda_optimized/conv2d_dgrad/implicit_gemm/mma", true);

  // Tiles of 128 x 128.
  for (const std::string_view rung :
       {"cuda_optimized/conv2d/implicit_gemm/mma", "cuda_optimized/conv2d_dgrad/implicit_gemm/mma"})
    add(text("128 channels and filters, 2048 pixels, ", rung),
        P{.C = 128, .H = 32, .W = 64, .K = 128}, rung, true);

  // In 16 bits TMA takes channels in eights, and has the same fields.
  const auto in_eights = [&](const std::string& name, const P& problem) {
    add("channels in eights, " + name, problem);
    list.back().rungs = {"cuda_optimized/conv2d/implicit_gemm/mma",
                         "cuda_optimized/conv2d/implicit_gemm/warp_specialized",
                         "cuda_optimized/conv2d/hopper/swap_ab",
                         "cuda_optimized/conv2d/implicit_gemm/halo_tile",
                         "cuda_optimized/conv2d_dgrad/implicit_gemm/mma",
                         "cuda_optimized/conv2d_dgrad/implicit_gemm/warp_specialized",
                         "cuda_optimized/conv2d_dgrad/hopper/halo_tile",
                         "cuda_optimized/conv2d_wgrad/implicit_gemm/warp_specialized"};
  };
  in_eights("windows begin 130 columns behind x",
            P{.C = 8, .H = 2, .W = 3, .K = 8, .pad = {0, 0, 0, 130}});
  in_eights(
      "windows of one class begin 127 rows behind dy, of another 128",
      P{.C = 8, .H = 2, .W = 2, .K = 8, .R = 2, .S = 2, .pad = {255, 0, 0, 0}, .stride = {2, 2}});
  in_eights("72 filters", P{.C = 16, .H = 9, .W = 10, .K = 72, .R = 2, .S = 2});
  // Patches of pixels: whole rows or strips of them in tiles of 208 columns or 224, whole images
  // also in 128.
  const auto in_patches = [&](const std::string& name, const P& problem) {
    add("patches, " + name, problem);
    list.back().rungs = {"cuda_optimized/conv2d/implicit_gemm/halo_tile",
                         "cuda_optimized/conv2d/hopper/halo_tile_tf32",
                         "cuda_optimized/conv2d_dgrad/hopper/halo_tile",
                         "cuda_optimized/conv2d_wgrad/hopper/halo_tile",
                         "cuda_optimized/conv2d_wgrad/hopper/cluster_reduction"};
  };
  const Padding one = pad_all(1);
  in_patches("rows of 29 pixels, two tiles",
             P{.C = 8, .H = 12, .W = 28, .K = 72, .R = 3, .S = 3, .pad = one, .bias = true});
  in_patches(
      "strips of 26 rows, groups",
      P{.N = 2, .C = 16, .H = 27, .W = 17, .K = 16, .R = 2, .S = 2, .groups = 2, .bias = true});
  in_patches("strips of 28 rows, weights that follow",
             P{.C = 136, .H = 29, .W = 15, .K = 8, .R = 3, .S = 3, .pad = one});
  in_patches("more filters than stay for one block", P{.C = 8, .H = 3, .W = 9, .K = 520});
  in_patches("stride 2, and no pixel but those between",
             P{.C = 8, .H = 1, .W = 1, .K = 8, .pad = one, .stride = {2, 2}});
  in_patches("stride 1 x 2, and no column but those between",
             P{.C = 8, .H = 2, .W = 1, .K = 8, .pad = one, .stride = {1, 2}});
  in_patches("two tiles of filters share what follows",
             P{.C = 136, .H = 9, .W = 9, .K = 136, .R = 3, .S = 3, .pad = one, .bias = true});
  in_patches("64 filters a group", P{.C = 16, .H = 3, .W = 9, .K = 128, .groups = 2});
  in_patches("stride 3 x 2", P{.C = 8, .H = 9, .W = 12, .K = 8, .pad = one, .stride = {3, 2}});
  in_patches("taps 128 rows apart",
             P{.C = 8, .H = 258, .W = 1, .K = 8, .R = 3, .dilation = {128, 1}});
  in_patches("taps 128 columns apart",
             P{.C = 8, .H = 1, .W = 258, .K = 8, .S = 3, .dilation = {1, 128}});
  in_patches("taps 40 pixels apart",
             P{.C = 8, .H = 82, .W = 82, .K = 8, .R = 3, .S = 3, .dilation = {40, 40}});
  in_patches("four images, three in a tile",
             P{.N = 4, .C = 8, .H = 5, .W = 5, .K = 72, .R = 3, .S = 3, .pad = one, .bias = true});
  in_patches("images with padding above and on the left, groups", P{.N = 3,
                                                                    .C = 16,
                                                                    .H = 4,
                                                                    .W = 5,
                                                                    .K = 16,
                                                                    .R = 3,
                                                                    .S = 2,
                                                                    .pad = {2, 0, 1, 0},
                                                                    .groups = 2,
                                                                    .bias = true});
  in_patches("filters larger than images",
             P{.N = 5, .C = 3, .H = 2, .W = 3, .K = 10, .R = 4, .S = 3, .pad = {1, 3, 2, 1}});
  in_patches("windows in images begin inside dy",
             P{.N = 3, .C = 8, .H = 3, .W = 3, .K = 8, .R = 2, .S = 2, .pad = pad_all(3)});
  in_patches("stride 2, three images",
             P{.N = 3, .C = 8, .H = 5, .W = 7, .K = 8, .pad = one, .stride = {2, 2}});
  in_patches("129 images of a pixel", P{.N = 129, .C = 8, .H = 1, .W = 1, .K = 8});
  in_patches("209 images of a pixel", P{.N = 209, .C = 8, .H = 1, .W = 1, .K = 8});
  // One tap, and filters in groups of 32: sums are stored by fours.
  const auto by_fours = [&](const std::string& name, const P& problem) {
    add("patches by fours, " + name, problem, "cuda_optimized/conv2d/hopper/halo_tile_tf32");
  };
  by_fours("96 filters", P{.N = 2, .C = 8, .H = 3, .W = 9, .K = 96, .bias = true});
  by_fours("96 filters of three channels", P{.C = 3, .H = 3, .W = 9, .K = 96, .bias = true});
  by_fours("y alone at 16 n + 4 bytes", P{.C = 4, .H = 3, .W = 5, .K = 160});
  list.back().offsets = {{"y", 4}};
  // Two blocks for each tile.
  const auto in_two_blocks = [&](const std::string& name, const P& problem) {
    add("two blocks, " + name, problem);
    list.back().rungs = {"cuda_optimized/conv2d/hopper/cluster_split_k",
                         "cuda_optimized/conv2d_dgrad/hopper/cluster_split_k",
                         "cuda_optimized/conv2d_wgrad/hopper/halo_tile",
                         "cuda_optimized/conv2d_wgrad/hopper/cluster_reduction"};
  };
  in_two_blocks(
      "parts of 64 channels and of 72, filters to the middle of a tile",
      P{.N = 3, .C = 136, .H = 7, .W = 7, .K = 136, .R = 3, .S = 3, .pad = one, .bias = true});
  in_two_blocks("few pixels", P{.N = 2, .C = 70, .H = 3, .W = 5, .K = 66, .R = 2, .S = 2});
  list.back().size = Size::small;
  in_two_blocks("two groups",
                P{.C = 132, .H = 5, .W = 9, .K = 132, .R = 2, .S = 2, .groups = 2, .bias = true});
  list.back().size = Size::small;
  in_two_blocks("two tiles of images",
                P{.N = 5, .C = 200, .H = 7, .W = 7, .K = 72, .R = 3, .S = 3, .pad = one});
  in_two_blocks("strips, groups",
                P{.C = 272, .H = 9, .W = 17, .K = 144, .R = 2, .S = 2, .groups = 2});
  in_two_blocks("channels not in eights", P{.C = 132, .H = 3, .W = 5, .K = 136, .R = 2, .S = 2});
  in_two_blocks("arrays at 16 n + 4 bytes", P{.C = 136, .H = 3, .W = 5, .K = 136, .R = 2, .S = 2});
  list.back().misalignment = 4;
  in_two_blocks("stride 2, and no pixel but those between",
                P{.C = 72, .H = 1, .W = 1, .K = 72, .pad = one, .stride = {2, 2}});
  // Strips of 8 columns, and what is left of two images.
  const auto in_full_tiles = [&](const std::string& name, const P& problem) {
    add("full tiles, " + name, problem);
    list.back().rungs = {"cuda_optimized/conv2d/hopper/full_tiles",
                         "cuda_optimized/conv2d_dgrad/hopper/full_tiles",
                         "cuda_optimized/conv2d_wgrad/hopper/halo_tile",
                         "cuda_optimized/conv2d_wgrad/hopper/cluster_reduction"};
  };
  in_full_tiles(
      "three images, two tiles down, filters to the middle of a block",
      P{.N = 3, .C = 72, .H = 29, .W = 12, .K = 136, .R = 3, .S = 3, .pad = one, .bias = true});
  in_full_tiles("narrow strips alone",
                P{.N = 2, .C = 72, .H = 3, .W = 5, .K = 72, .R = 2, .S = 3, .pad = {1, 0, 0, 1}});
  list.back().size = Size::small;
  in_full_tiles("wide strips alone", P{.C = 72, .H = 3, .W = 17, .K = 72, .R = 1, .S = 2});
  list.back().size = Size::small;
  in_full_tiles(
      "a group's last tile has one block",
      P{.C = 384, .H = 2, .W = 3, .K = 384, .R = 1, .S = 2, .pad = pad_all(1), .groups = 2});
  in_full_tiles(
      "channels not in eights, dilation",
      P{.C = 70, .H = 5, .W = 10, .K = 66, .R = 2, .S = 2, .pad = one, .dilation = {2, 1}});
  in_full_tiles("arrays at 16 n + 4 bytes", P{.C = 72, .H = 3, .W = 11, .K = 72, .S = 2});
  list.back().misalignment = 4;
  in_full_tiles("five columns are left", P{.C = 72, .H = 1, .W = 13, .K = 72});
  in_full_tiles("taps 40 pixels apart",
                P{.C = 72, .H = 82, .W = 82, .K = 72, .R = 3, .S = 3, .dilation = {40, 40}});
  in_full_tiles("stride 2, and no pixel but those between",
                P{.C = 72, .H = 1, .W = 1, .K = 72, .pad = one, .stride = {2, 2}});
  // Weight-stationary: pixels of all images in tiles of 128, and of 192.
  const auto of_all_filters = [&](const std::string& name, const P& problem) {
    add("all filters, " + name, problem);
    list.back().rungs = {"cuda_optimized/conv2d/hopper/weight_stationary",
                         "cuda_optimized/conv2d_dgrad/hopper/weight_stationary",
                         "cuda_optimized/conv2d_wgrad/hopper/halo_tile",
                         "cuda_optimized/conv2d_wgrad/hopper/cluster_reduction"};
  };
  of_all_filters("13 tiles of pixels, three of filters or one",
                 P{.N = 2, .C = 8, .H = 25, .W = 32, .K = 136, .bias = true});
  of_all_filters("7 tiles of 192 pixels", P{.C = 72, .H = 32, .W = 40, .K = 8});
  of_all_filters("three tiles of channels", P{.C = 136, .H = 3, .W = 9, .K = 8});
  of_all_filters("channels not in eights", P{.C = 12, .H = 3, .W = 9, .K = 8});
  of_all_filters("arrays at 16 n + 4 bytes", P{.C = 8, .H = 3, .W = 9, .K = 8});
  list.back().misalignment = 4;
  of_all_filters("empty batch", P{.N = 0, .C = 8, .H = 3, .W = 9, .K = 8});
  of_all_filters("stride 2, and no pixel but those between",
                 P{.C = 8, .H = 1, .W = 1, .K = 8, .pad = one, .stride = {2, 2}});
  of_all_filters("weights that do not fit", P{.C = 456, .H = 3, .W = 4, .K = 456});
  // One class of dx's pixels has taps, and the others are zero.
  const auto with_zeros = [&](const std::string& name, const P& problem) {
    add("zeros between, " + name, problem, "cuda_optimized/conv2d_dgrad/hopper/strided_zeros");
  };
  with_zeros("two images, two tiles of channels",
             P{.N = 2, .C = 72, .H = 6, .W = 17, .K = 136, .stride = {2, 2}});
  with_zeros("a row and a column more of zeros",
             P{.N = 2, .C = 8, .H = 5, .W = 7, .K = 8, .pad = one, .stride = {2, 2}});
  list.back().size = Size::small;
  with_zeros("64 channels a group, stride 3",
             P{.C = 128, .H = 4, .W = 9, .K = 16, .stride = {3, 3}, .groups = 2});
  with_zeros("channels not in eights", P{.C = 12, .H = 3, .W = 9, .K = 12, .stride = {1, 2}});
  list.back().size = Size::small;
  with_zeros("dx alone at 16 n + 4 bytes",
             P{.N = 3, .C = 8, .H = 4, .W = 3, .K = 8, .stride = {2, 1}});
  list.back().offsets = {{"dx", 4}};
  with_zeros("filters 3x3 that reach one class", P{.N = 2,
                                                   .C = 8,
                                                   .H = 8,
                                                   .W = 9,
                                                   .K = 72,
                                                   .R = 3,
                                                   .S = 3,
                                                   .pad = pad_all(2),
                                                   .stride = {2, 2},
                                                   .dilation = {2, 2}});
  with_zeros("several classes have taps",
             P{.C = 8, .H = 7, .W = 7, .K = 8, .R = 3, .S = 3, .stride = {2, 2}});
  with_zeros("no pixel that a tap reaches",
             P{.C = 8, .H = 1, .W = 3, .K = 8, .pad = one, .stride = {2, 2}});
  with_zeros("stride 4", P{.C = 8, .H = 5, .W = 5, .K = 8, .stride = {4, 4}});
  with_zeros("empty batch", P{.N = 0, .C = 8, .H = 3, .W = 9, .K = 8, .stride = {2, 2}});
  // Of dw: clusters of two, with tiles of 64 channels.
  const auto in_clusters = [&](const std::string& name, const P& problem) {
    add("clusters' sums, " + name, problem, "cuda_optimized/conv2d_wgrad/hopper/cluster_reduction");
  };
  in_clusters("30 images of 9 x 9",
              P{.N = 30, .C = 72, .H = 9, .W = 9, .K = 72, .R = 3, .S = 3, .pad = one});
  // Images in a row: bands of four of 7 x 8 pixels, the last one of two; of three; without padding.
  in_clusters("30 images of 7 x 7 in a row",
              P{.N = 30, .C = 72, .H = 7, .W = 7, .K = 72, .R = 3, .S = 3, .pad = one});
  in_clusters("9 images of 8 x 8 in a row",
              P{.N = 9, .C = 40, .H = 8, .W = 8, .K = 64, .R = 3, .S = 3, .pad = one});
  in_clusters("2 images of 1 x 6", P{.N = 2, .C = 32, .H = 3, .W = 8, .K = 64, .R = 3, .S = 3});
  in_clusters("6 images of 3 x 6 in a row",
              P{.N = 6, .C = 32, .H = 5, .W = 8, .K = 64, .R = 3, .S = 3});
  // Shares of the pixels: tiles of 64 filters by 64 channels to 512, 128 by 64 to 256, 256 by 64 or
  // 128; with strides, x and y in boxes of whole rows or parts of them.
  const auto in_shares = [&](const std::string& name, const P& problem) {
    add("pixel shares, " + name, problem, "cuda_optimized/conv2d_wgrad/hopper/split_k_1x1");
  };
  in_shares("64 filters by 512 channels and a last piece of 8",
            P{.N = 2, .C = 520, .H = 5, .W = 7, .K = 8, .bias = true});
  in_shares("filters to the middle of the second piece, six stages and more",
            P{.N = 9, .C = 136, .H = 20, .W = 21, .K = 72, .bias = true});
  in_shares("a tile of 256 filters and one of 8, two tiles of channels",
            P{.N = 3, .C = 136, .H = 9, .W = 11, .K = 264, .bias = true});
  in_shares("256 filters by 64 channels, stride 2",
            P{.N = 3, .C = 64, .H = 15, .W = 13, .K = 200, .stride = {2, 2}, .bias = true});
  in_shares("128 filters a group, two taps down, stride 2 x 1, dilated", P{.N = 2,
                                                                           .C = 48,
                                                                           .H = 13,
                                                                           .W = 9,
                                                                           .K = 208,
                                                                           .R = 2,
                                                                           .S = 1,
                                                                           .pad = {1, 0, 0, 2},
                                                                           .stride = {2, 1},
                                                                           .dilation = {3, 1},
                                                                           .groups = 2,
                                                                           .bias = true});
  in_shares("rows of 100 windows in two boxes",
            P{.N = 2, .C = 16, .H = 9, .W = 199, .K = 24, .stride = {2, 2}, .bias = true});
  in_shares("boxes of four rows of 14, the last one of two",
            P{.N = 3, .C = 72, .H = 27, .W = 28, .K = 136, .stride = {2, 2}, .bias = true});
  in_shares("stride 2, an unread row below the last window, and padding",
            P{.N = 2, .C = 8, .H = 8, .W = 9, .K = 8, .pad = {0, 1, 0, 0}, .stride = {2, 2}});
  in_shares("stride 1 x 2", P{.N = 2, .C = 16, .H = 3, .W = 9, .K = 24, .stride = {1, 2}});
  in_shares("padding on the left alone",
            P{.N = 2, .C = 16, .H = 3, .W = 5, .K = 24, .pad = {0, 0, 1, 0}});
  in_shares("images of one row, stride 2",
            P{.N = 3, .C = 16, .H = 1, .W = 9, .K = 24, .stride = {2, 2}});
  in_shares("groups of 8 channels", P{.N = 2, .C = 16, .H = 3, .W = 5, .K = 16, .groups = 2});
  in_shares("odd channels and filters, groups",
            P{.N = 2, .C = 130, .H = 5, .W = 7, .K = 262, .groups = 2, .bias = true});
  // Two neighbours of a row are a register, from an even column on or from an odd one.
  const auto in_pairs = [&](const std::string& name, const P& problem) {
    add("columns in pairs, " + name, problem, "cuda_optimized/conv2d/direct/mma");
  };
  in_pairs("stride 2, odd padding, 3 pieces of 16 columns", {.N = 2,
                                                             .C = 3,
                                                             .H = 9,
                                                             .W = 96,
                                                             .K = 10,
                                                             .R = 3,
                                                             .S = 4,
                                                             .pad = {1, 1, 3, 1},
                                                             .stride = {2, 2}});
  in_pairs("stride 2, odd padding, taps 3 columns apart", {.C = 2,
                                                           .H = 6,
                                                           .W = 40,
                                                           .K = 3,
                                                           .R = 2,
                                                           .S = 3,
                                                           .pad = pad_all(1),
                                                           .stride = {1, 2},
                                                           .dilation = {1, 3}});
  in_pairs("stride 3, odd padding",
           {.C = 2, .H = 7, .W = 104, .K = 9, .R = 2, .S = 4, .pad = pad_all(1), .stride = {2, 3}});
  in_pairs("65 filters, rows of 33 outputs, groups",
           {.C = 4, .H = 4, .W = 36, .K = 130, .R = 2, .S = 4, .groups = 2, .bias = true});
  // 16-bit elements may be aligned to neither pairs of them nor copies of 16 bytes.
  for (const std::size_t offset : {2u, 4u, 10u}) {
    in_eights(text("arrays at 16 n + ", offset, " bytes"),
              P{.C = 8, .H = 5, .W = 6, .K = 16, .R = 2, .S = 2, .pad = {1, 0, 0, 1}});
    list.back().misalignment = offset;
    list.back().rungs.clear();  // all that take such numbers
  }
  // What an im2col tensor map can describe: several tiles, channels and filters that do not fill
  // one, and each of its limits, from inside and from outside.
  const auto by_tma = [&](const std::string& name, const P& problem) {
    add("im2col TMA, " + name, problem, "conv2d");
    list.back().rungs = {"cuda_optimized/conv2d/implicit_gemm/tma_im2col",
                         "cuda_optimized/conv2d/implicit_gemm/wgmma"};
  };
  by_tma("three images, two stages a tap, filters to the middle of a tile",
         P{.N = 3, .C = 72, .H = 7, .W = 7, .K = 136, .R = 3, .S = 3, .pad = one});
  by_tma("strides, dilation, different padding at each side", P{.N = 2,
                                                                .C = 16,
                                                                .H = 13,
                                                                .W = 11,
                                                                .K = 70,
                                                                .R = 3,
                                                                .S = 2,
                                                                .pad = {2, 1, 0, 3},
                                                                .stride = {2, 3},
                                                                .dilation = {1, 2}});
  list.back().size = Size::small;
  by_tma("two groups", P{.C = 128, .H = 5, .W = 9, .K = 128, .R = 2, .S = 2, .groups = 2});
  list.back().size = Size::small;
  by_tma("groups of 192 filters", P{.N = 2, .C = 128, .H = 16, .W = 32, .K = 384, .groups = 2});
  by_tma("groups that are no whole tiles", P{.C = 96, .H = 5, .W = 9, .K = 128, .groups = 2});
  by_tma("1024 pixels, 256 filters", P{.C = 8, .H = 32, .W = 32, .K = 256});
  by_tma("900 pixels, 256 filters, nine steps",
         P{.C = 8, .H = 30, .W = 30, .K = 256, .R = 3, .S = 3, .pad = one});
  by_tma("2000 pixels, 64 filters", P{.C = 8, .H = 40, .W = 50, .K = 64});
  by_tma("odd number of filters", P{.C = 8, .H = 9, .W = 17, .K = 65, .R = 2, .S = 2, .pad = one});
  by_tma("padding of 128", P{.C = 8, .H = 3, .W = 3, .K = 8, .S = 3, .pad = {0, 0, 128, 128}});
  by_tma("padding of 129", P{.C = 8, .H = 3, .W = 3, .K = 8, .S = 3, .pad = {0, 0, 129, 0}});
  by_tma("padding of 129 below", P{.C = 8, .H = 3, .W = 3, .K = 8, .pad = {0, 129, 0, 0}});
  by_tma("taps 255 apart",
         P{.C = 8, .H = 2, .W = 260, .K = 8, .S = 2, .pad = {0, 0, 0, 127}, .dilation = {1, 255}});
  by_tma("taps 256 apart",
         P{.C = 8, .H = 2, .W = 260, .K = 8, .S = 2, .pad = {0, 0, 0, 128}, .dilation = {1, 256}});
  by_tma("stride 8", P{.C = 8, .H = 18, .W = 9, .K = 8, .R = 2, .stride = {8, 8}});
  by_tma("stride 9", P{.C = 8, .H = 19, .W = 9, .K = 8, .R = 2, .stride = {9, 8}});
  by_tma("stride 9 across", P{.C = 8, .H = 9, .W = 19, .K = 8, .R = 2, .stride = {8, 9}});
  by_tma("empty batch", P{.N = 0, .C = 8, .H = 3, .W = 9, .K = 8});
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
      {0, "ReLU, rows of six taps",
       P{.C = 2, .H = 5, .W = 9, .K = 3, .R = 3, .S = 6, .pad = pad_all(1), .bias = true}},
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
      {0, "ReLU, depthwise in fours",
       P{.C = 8,
         .H = 5,
         .W = 9,
         .K = 8,
         .R = 3,
         .S = 3,
         .pad = pad_all(1),
         .groups = 8,
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
  list.push_back(
      {0, "ReLU, eight channels and ten filters",
       P{.C = 8, .H = 5, .W = 9, .K = 10, .R = 3, .S = 3, .pad = pad_all(1), .bias = true},
       Size::full});
  list.back().rungs = {"cuda_optimized/conv2d/implicit_gemm/tma_im2col",
                       "cuda_optimized/conv2d/implicit_gemm/wgmma"};
  for (ConvTestProblem& entry : list) {
    entry.problem.activation = Activation::relu;
    entry.problem = validated(entry.problem);
    if (entry.size == Size::small) entry.size = size_of_small(entry.name);
  }
  return list;
}

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

}  // namespace convladder::testing
