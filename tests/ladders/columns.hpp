/// @file columns.hpp
/// @brief Windows that the suite asks im2col and col2im about.
#pragma once

#include <array>
#include <vector>

#include "core/im2col_problem.hpp"
#include "tests/dice.hpp"
#include "tests/identity_tools.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {

/// Windows in 1, 2 and 3 dimensions, each with the three requests.
std::vector<TestProblem> column_problems();
/// Any, with at most 300,000 numbers.
Im2colProblem random_columns(Dice& dice);
/// See LadderTests::non_finite.
std::vector<TestProblem> small_columns();
/// See LadderTests::limits.
std::vector<Problem> column_limits();

inline std::vector<Im2colProblem> column_bases() {
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

inline Im2colProblem change_axes(Im2colProblem p, const AxisChange& change) {
  change(p.depth);
  change(p.height);
  change(p.width);
  return validated(p);
}

inline Im2colProblem unpadded(const Im2colProblem& p) {
  return change_axes(p, [](WindowAxis& axis) {
    axis.size += axis.pad_before + axis.pad_after;
    axis.pad_before = axis.pad_after = 0;
  });
}
inline Im2colProblem undilated(const Im2colProblem& p) {
  return change_axes(p, [](WindowAxis& axis) {
    axis.kernel = static_cast<int>(window_extent(axis.kernel, axis.dilation));
    axis.dilation = 1;
  });
}
inline Im2colProblem with_stride_1(const Im2colProblem& p) {
  return change_axes(p, [](WindowAxis& axis) { axis.stride = 1; });
}
inline Im2colProblem with_request(Im2colProblem p, Request request) {
  p.request = request;
  return validated(p);
}
inline Im2colProblem of_one_image(Im2colProblem p) {
  p.N = 1;
  return validated(p);
}

inline Shape x_shape(const Im2colProblem& p) { return im2col_signature(p).inputs[0].shape; }
inline Shape col_shape(const Im2colProblem& p) { return im2col_signature(p).outputs[0].shape; }

/// Visits the points of a box of three axes, and where each lies in a larger box:
/// visit(index in the small box, index in the large box).
inline void for_each_point(const std::array<int, 3>& small, const std::array<int, 3>& large,
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

inline std::array<int, 3> over_axes(const Im2colProblem& p, int WindowAxis::*member) {
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
inline Embedding inside_padding(const Im2colProblem& p) {
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
inline Embedding dilated_rows(const Im2colProblem& p) {
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
inline Embedding strided_columns(const Im2colProblem& p) {
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

}  // namespace convladder::testing
