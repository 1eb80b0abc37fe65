/// @file defects.cpp
/// @brief The defects of well-known implementations, each a test that every rung must pass, so that
/// none of them returns. docs/ tells their stories; the numbers are those of the catalogue there:
///
/// - "sizes": output-size formulas in the wild;
/// - "im2col n": im2col, col2im and convolution layers (Caffe, MXNet, PyTorch ...), 1 to 12;
/// - "direct n": a much-read direct convolution kernel and its test program, 1 to 15;
/// - "map a", "map b": CUTLASS's tile maps.
///
/// Those of sparse convolutions, D1 to D17, are in sparse_test.cpp.
///
/// Not tests, because a correct result does not show them:
/// - im2col 3 (a request of `none` that still adds the bias): the forward pass takes no request
/// here.
/// - im2col 10 (a pointer outside of its array, formed but not used): undefined behaviour that the
///   sanitizer build looks for (-fsanitize=pointer-overflow).
/// - im2col 11 (a document that calls explicit im2col "implicit"): words.
/// - direct 9 (a "prefetch" that overlaps with nothing), 12 (the input read once for each output
///   channel), 13 (no register blocking): times and counters, which benchmarks show.
/// - direct 10 ("register" accumulators in local memory): a matter of the compiler's output.
/// - direct 11 (two threads that own an output): the values agree; counted stores would show it.
/// - direct 14 (multiply-adds counted as operations, in an int): nothing here counts them in an
/// int.
#include <doctest/doctest.h>

#include <algorithm>
#include <cuda_on_cpu/control.hpp>
#include <limits>
#include <set>

#include "core/arithmetic.hpp"
#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "tests/check.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

/// Checks every rung of the ladder in every place that is there; at least one must take each
/// problem.
void check_all_rungs(const std::string& ladder_name, const std::vector<Problem>& problems,
                     std::size_t misalignment = 0) {
  std::vector<TestProblem> tests;
  for (const Problem& problem : problems) {
    tests.push_back({.name = "defect",
                     .problem = problem,
                     .misalignment = misalignment,
                     .once = settings().small});
  }
  CheckOptions options = options_for(settings());
  options.real_mode = false;  // all of them are mistakes about places, which exact data show
  const Ladder& all = ladder(ladder_name);
  int most = 0;
  for (const Rung& rung : all.rungs) {
    for (const Where where : kEverywhere) {
      if (!rung.code_at(where) || device_at(where) == nullptr) continue;
      const CheckReport report = check_rung_on(tests, all, rung, where, options);
      INFO(rung.name, " (", name_of(where), "), seed ", settings().seed);
      for (const std::string& failure : report.failures) FAIL_CHECK(failure);
      most = std::max(most, report.problems);
    }
  }
  CHECK(most == static_cast<int>(problems.size()));
}

/// The same problem with each request.
std::vector<Problem> with_all_requests(Im2colProblem problem) {
  std::vector<Problem> all;
  for (const Request request : {Request::write, Request::add, Request::none}) {
    problem.request = request;
    all.push_back(validated(problem));
  }
  return all;
}

bool refused(const Conv2dProblem& problem) {
  try {
    validated(problem);
    return false;
  } catch (const BadInput&) {
    return true;
  }
}

}  // namespace

TEST_SUITE_BEGIN("defects");

TEST_CASE("defect sizes: truncating division, and a dilated extent without its - 1") {
  int none = 0, truncation_accepts = 0, extent_is_wrong = 0;
  for (int h = 1; h <= 13; ++h) {
    for (int r = 1; r <= 5; ++r) {
      for (int pad = 0; pad <= 4; ++pad) {
        for (int stride = 1; stride <= 5; ++stride) {
          for (int dilation = 1; dilation <= 4; ++dilation) {
            Conv2dProblem p{.H = h,
                            .W = 9,
                            .R = r,
                            .pad = {pad, pad, 0, 0},
                            .stride = {stride, 1},
                            .dilation = {dilation, 1}};
            int right = 0;  // by counting the windows that fit
            while (right * stride + (r - 1) * dilation < h + 2 * pad) ++right;
            const int truncated = (h + 2 * pad - ((r - 1) * dilation + 1)) / stride + 1;
            const int without_minus_1 = (h + 2 * pad - r * dilation) / stride + 1;
            REQUIRE(refused(p) == (right == 0));
            if (right == 0) {
              ++none;
              truncation_accepts += truncated >= 1 ? 1 : 0;
            } else {
              REQUIRE(validated(p).P == right);
              extent_is_wrong += dilation > 1 && without_minus_1 != right ? 1 : 0;
            }
          }
        }
      }
    }
  }
  // The sweep is worth its time: that often the two well-known mistakes would show in it.
  CHECK(none == 1280);
  CHECK(truncation_accepts == 403);
  CHECK(extent_is_wrong == 2166);
}

TEST_CASE("defect im2col 1: an empty gather that ignores the request") {
  for (const char* name : {"im2col", "col2im"}) {
    check_all_rungs(name, with_all_requests({.C = 2, .rank = 1, .width = {11, 1, 0, 0, 3, 1}}));
    check_all_rungs(name, with_all_requests({.C = 2, .rank = 1, .width = {12, 3, 0, 0, 5, 1}}));
    check_all_rungs(name, with_all_requests({.C = 2,
                                             .rank = 3,
                                             .depth = {5, 1, 0, 0, 3, 1},
                                             .height = {4, 1, 0, 0, 3, 1},
                                             .width = {7, 2, 0, 0, 3, 1}}));
  }
}

TEST_CASE("defect im2col 2: a short cut for 1x1 that ignores the request") {
  for (const char* name : {"im2col", "col2im"}) {
    check_all_rungs(name, with_all_requests({.N = 2, .C = 3, .height = {5, 1}, .width = {7, 1}}));
    check_all_rungs(name, with_all_requests({.N = 2, .C = 3, .rank = 1, .width = {7, 1}}));
  }
}

TEST_CASE("defect im2col 4: height, width and channels in another order") {
  for (const char* name : {"im2col", "col2im"}) {
    check_all_rungs(name, with_all_requests({.N = 2, .C = 7, .height = {5, 2}, .width = {11, 3}}));
    check_all_rungs(
        name, with_all_requests(
                  {.N = 3, .C = 2, .rank = 3, .depth = {3, 2}, .height = {5, 1}, .width = {7, 3}}));
  }
}

TEST_CASE("defect im2col 5: one and three dimensions promised, two done") {
  for (const char* name : {"im2col", "col2im"}) {
    check_all_rungs(name,
                    with_all_requests({.N = 2, .C = 3, .rank = 1, .width = {9, 3, 1, 0, 2, 2}}));
    check_all_rungs(name, with_all_requests({.N = 2,
                                             .C = 3,
                                             .rank = 3,
                                             .depth = {5, 3, 1, 0, 2, 1},
                                             .height = {6, 2, 0, 1, 1, 2},
                                             .width = {7, 3, 2, 0, 2, 1}}));
  }
}

TEST_CASE("defect im2col 6: sizes beyond 2^31 in 32 bits") {
  // The arrays themselves are problem 30: on a GPU, on request. Their sizes are right everywhere.
  const Im2colProblem huge = columns_of(
      validated(Conv2dProblem{.C = 64, .H = 1024, .W = 1024, .R = 7, .S = 7, .pad = {3, 3, 3, 3}}));
  CHECK(huge.rows() * huge.columns() == 3288334336);
  CHECK(im2col_signature(huge).outputs[0].shape == Shape{1, 3136, 1048576});
  const Im2colProblem more = validated(Im2colProblem{.C = 70000, .rank = 1, .width = {70000, 1}});
  CHECK(more.C * more.columns() == 4900000000);
}

TEST_CASE("defect im2col 7: parameters so large that the sizes wrap") {
  CHECK(refused({.H = 5, .W = 5, .pad = {kMaxInt, kMaxInt, 0, 0}}));  // 2 * pad = -2
  CHECK(refused({.H = kMaxInt, .W = 5, .pad = {1, 0, 0, 0}}));
  CHECK(refused({.H = 5, .W = 5, .R = kMaxInt, .dilation = {kMaxInt, 1}}));
  CHECK(refused({.N = kMaxInt, .C = kMaxInt, .H = kMaxInt}));
  CHECK_FALSE(refused({.H = 5, .W = 5, .stride = {kMaxInt, kMaxInt}}));
  check_all_rungs(
      "conv2d",
      {validated(Conv2dProblem{
          .C = 2, .H = 5, .W = 5, .K = 2, .R = 3, .S = 3, .stride = {kMaxInt, kMaxInt}})});
}

TEST_CASE("defect im2col 8: no images, no launch, no error") {
  const Conv2dProblem conv = validated(
      Conv2dProblem{.N = 0, .C = 3, .H = 8, .W = 8, .K = 4, .R = 3, .S = 3, .bias = true});
  for (const char* name : {"conv2d", "conv2d_dgrad", "conv2d_wgrad"}) check_all_rungs(name, {conv});
  for (const char* name : {"im2col", "col2im"}) {
    check_all_rungs(name, with_all_requests(columns_of(conv)));
  }
}

TEST_CASE(
    "defect im2col 9: a filter dilated twice ends in a negative size, not in an endless loop") {
  // A 3x3 filter with dilation 4, handed over expanded to 9x9 and dilated again.
  CHECK(refused({.H = 20, .W = 20, .R = 9, .S = 9, .dilation = {4, 4}}));
  CHECK_FALSE(refused({.H = 20, .W = 20, .R = 3, .S = 3, .dilation = {4, 4}}));
}

TEST_CASE("defect im2col 12: a flipped filter, and padding of the wrong sign") {
  // A bright pixel on black, and a filter that is no flip of itself: the answer is the filter,
  // turned.
  check_all_rungs(
      "conv2d",
      {validated(
           Conv2dProblem{.C = 2, .H = 6, .W = 7, .K = 2, .R = 2, .S = 3, .pad = {2, 0, 0, 1}}),
       validated(Conv2dProblem{
           .C = 1, .H = 9, .W = 9, .R = 4, .S = 4, .pad = {3, 0, 1, 2}, .stride = {2, 2}})});
}

TEST_CASE("defect direct 1: a weight index that forgets the input channel") {
  check_all_rungs("conv2d",
                  {validated(Conv2dProblem{.C = 3, .H = 9, .W = 11, .K = 2, .R = 3, .S = 3}),
                   validated(Conv2dProblem{.C = 2, .H = 5, .W = 5, .K = 3})});
}

TEST_CASE("defect direct 2: test data in which a wrong index makes no difference") {
  const Conv2dProblem conv =
      validated(Conv2dProblem{.C = 6, .H = 12, .W = 12, .K = 6, .R = 6, .S = 6});
  const Arrays inputs = make_inputs(conv2d_signature(conv), Data::integer, settings().seed,
                                    longest_sum("conv2d", conv));
  const auto weights = inputs.at("weights").as<float>();
  std::set<std::vector<float>> filters;  // of one input and one output channel
  for (std::ptrdiff_t i = 0; i < 36; ++i) {
    const std::vector<float> filter(weights.begin() + i * 36, weights.begin() + (i + 1) * 36);
    const std::vector<float> flipped(filter.rbegin(), filter.rend());
    std::vector<float> negative = flipped;
    for (float& value : negative) value = -value;
    CHECK(filter != flipped);   // convolution and cross-correlation differ,
    CHECK(filter != negative);  // and not only by a sign
    filters.insert(filter);
  }
  CHECK(filters.size() == 36);
}

TEST_CASE("defect direct 3: an output smaller than a tile, and a grid without blocks") {
  std::vector<Problem> problems;
  const int step = settings().small ? 4 : 1;
  for (int h = 1; h <= 9; h += step) {
    for (int w = 1; w <= 5; w += step) {
      problems.push_back(
          validated(Conv2dProblem{.C = 2, .H = h + 2, .W = w + 2, .K = 2, .R = 3, .S = 3}));
    }
  }
  check_all_rungs("conv2d", problems);
}

TEST_CASE("defect direct 4: filters taller than a tile") {
  check_all_rungs("conv2d",
                  {validated(Conv2dProblem{.C = 2, .H = 21, .W = 23, .K = 2, .R = 9, .S = 9}),
                   validated(Conv2dProblem{.C = 2, .H = 23, .W = 27, .K = 2, .R = 11, .S = 11})});
}

TEST_CASE("defect direct 5: float4 at addresses that are no multiple of 16") {
  std::vector<Problem> problems;
  for (const int w : {37, 41, 43, 50}) {
    problems.push_back(validated(Conv2dProblem{.C = 3, .H = 13, .W = w, .K = 2, .R = 3, .S = 3}));
  }
  // Rows of whole float4, but channels at other offsets; and the reverse case.
  problems.push_back(validated(Conv2dProblem{.C = 3, .H = 1, .W = 6, .K = 2, .R = 1, .S = 3}));
  problems.push_back(validated(Conv2dProblem{.C = 3, .H = 4, .W = 7, .K = 2, .R = 3, .S = 3}));
  for (const std::size_t offset : {0u, 4u, 8u, 12u}) {
    if (settings().small && offset != 4) continue;
    check_all_rungs("conv2d", problems, offset);
  }
}

TEST_CASE("defect direct 6: rows past the tile, read past the end of the input") {
  // The guard bands around x hold NaN, so that such a read shows in the last rows.
  check_all_rungs("conv2d",
                  {validated(Conv2dProblem{.C = 6, .H = 13, .W = 12, .K = 6, .R = 6, .S = 6}),
                   validated(Conv2dProblem{.C = 1, .H = 6, .W = 6, .R = 6, .S = 6})});
}

TEST_CASE("defect direct 7: shared memory that overflows at some heights") {
  std::vector<Problem> problems;
  for (const int p : {4, 12, 20}) {  // P % 8 = 4
    problems.push_back(
        validated(Conv2dProblem{.C = 2, .H = p + 6, .W = 18, .K = 2, .R = 7, .S = 7}));
  }
  check_all_rungs("conv2d", problems);
}

TEST_CASE("defect direct 8: missing barriers, which lock-step execution hides") {
  const Ladder& conv2d = ladder("conv2d");
  const Comparison comparison(
      conv2d, validated(Conv2dProblem{.C = 16, .H = 12, .W = 37, .K = 5, .R = 3, .S = 3}),
      Data::integer, settings().seed);
  int runs = 0;
  for (const Rung& rung : conv2d.rungs) {
    if (!rung.code_at(Where::emulated)) continue;
    for (int order = 0; order < 10; ++order) {
      set_emulated_thread_order(order, settings().seed);
      const Outcome outcome = comparison.run(rung, Where::emulated);
      CAPTURE(rung.name);
      CAPTURE(order);
      CAPTURE(outcome.reason);
      CHECK((outcome.status == Status::agrees || outcome.status == Status::declined));
      runs += outcome.ran ? 1 : 0;
    }
  }
  CHECK(runs >= 10);
}

TEST_CASE("defect direct 15: a batch that is ignored, and errors that are not checked") {
  check_all_rungs(
      "conv2d", {validated(Conv2dProblem{.N = 3, .C = 2, .H = 7, .W = 8, .K = 2, .R = 3, .S = 3})});
  // An error of the device reaches the caller, with its place.
  Device& device = *device_at(Where::emulated);
  std::byte host[4] = {};
  CHECK_THROWS_AS(device.upload(nullptr, host, sizeof host), DeviceError);
  cuda_on_cpu::control::reset();
}

TEST_CASE("defect map a: a map that divides by N where its grid has less than N columns") {
  std::vector<Problem> problems;
  for (const TileMap map :
       {TileMap::identity1, TileMap::identity2, TileMap::identity4, TileMap::identity8}) {
    for (const auto& [m, n] : {std::pair{10, 6}, {6, 10}, {3, 2}, {2, 3}, {1, 1}, {7, 5}}) {
      problems.push_back(validated(TileMapProblem{.map = map, .tiles_m = m, .tiles_n = n}));
    }
  }
  check_all_rungs("tile_map", problems);
  // CUTLASS's second overload covers 10 of these 60 tiles.
  const TileMapProblem known =
      validated(TileMapProblem{.map = TileMap::identity8, .tiles_m = 10, .tiles_n = 6});
  const Comparison comparison(ladder("tile_map"), known, Data::integer, 1);
  for (const Rung& rung : ladder("tile_map").rungs) {
    for (const Where where : {Where::cpu, Where::emulated}) {
      const Outcome outcome = comparison.run(rung, where);
      if (!outcome.ran) continue;
      const auto units = outcome.outputs.at("units").as<std::int32_t>();
      std::set<std::pair<int, int>> tiles;
      for (std::size_t i = 0; i < units.size(); i += kUnitColumns) {
        tiles.emplace(units[i + 2], units[i + 3]);
      }
      CHECK(tiles.size() == 60);
    }
  }
}

TEST_CASE("defect map b: a map that the product cannot be instantiated with") {
  std::vector<Problem> problems;
  for (const TileMapName& map : kTileMaps) {
    if (!hands_out_whole_tiles(map.map)) continue;
    problems.push_back(validated(GemmProblem{.M = 100, .N = 70, .K = 9, .map = map.map}));
  }
  CHECK(problems.size() == 8);
  check_all_rungs("gemm", problems);
}

TEST_SUITE_END();

}  // namespace convladder::testing
