/// @file columns.cpp
/// @brief Windows in 1, 2 and 3 dimensions.
#include "tests/ladders/columns.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/ladders/conv2d_problems.hpp"
#include "tests/ladders/small_problems.hpp"

namespace convladder::testing {

namespace {

struct ColumnsTestProblem {
  int number;
  std::string name;
  Im2colProblem problem;
  Size size = Size::small;
  std::size_t misalignment = 0;
};

}  // namespace

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
      {0, "3-D, dilated in depth",
       P{.C = 2, .rank = 3, .depth = {7, 3, 1, 1, 1, 2}, .height = {5, 2}, .width = {6, 2}}},
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

std::vector<Problem> column_limits() {
  using P = Im2colProblem;
  std::vector<Problem> list;
  for (const P& problem :
       {P{.dtype = DType::f16}, P{.height = {1 << 16, 1}, .width = {1 << 16, 1}},  // windows
        P{.C = 1 << 20, .height = {64, 64}, .width = {64, 64}},  // rows of columns
        P{.N = kLargestInt, .C = kLargestInt, .height = {1, 1}, .width = {1, 1}}})  // channels
    list.emplace_back(validated(problem));
  return list;
}

std::vector<TestProblem> small_columns() {
  std::vector<TestProblem> list;
  for (const Conv2dProblem& conv : small_convolutions()) {
    for (const Request request : {Request::write, Request::add}) {
      Im2colProblem columns = columns_of(conv);
      columns.request = request;
      list.push_back({.name = "", .problem = validated(columns)});
    }
  }
  return list;
}

}  // namespace convladder::testing
