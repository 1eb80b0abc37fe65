/// @file im2col.cpp
/// @brief Options of im2col and col2im.
#include <algorithm>
#include <array>

#include "command/files.hpp"
#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "core/error.hpp"
#include "core/same_padding.hpp"

namespace convladder::command {
namespace {

constexpr int kExampleN = 2, kExampleC = 3, kExampleKernel = 3;

/// The example's extents, by the number of axes.
std::vector<int> example_sizes(std::size_t rank) {
  if (rank == 1) return {1000};
  if (rank == 2) return {48, 64};
  return {12, 16, 20};
}

const char* axes_text(std::size_t rank) { return rank == 1 ? "1-D" : rank == 2 ? "2-D" : "3-D"; }

/// The number of axes: from an array, else from the sizes, else from a list with one number per
/// axis.
std::size_t rank_of(const Parameters& parameters, const Array* array) {
  if (array != nullptr) return array->shape().size() - 2;
  if (parameters.given("size")) return parameters.numbers("size").size();
  if (parameters.given("h")) return 2;
  std::size_t rank = 1;
  for (const char* name : {"kernel", "stride", "dilation"})
    rank = std::max(rank, parameters.numbers(name).size());
  return rank > 1 ? rank : 2;
}

/// Padding before and after each axis; empty for `same`, which follows from the sizes of the
/// problem.
std::vector<int> read_pad(const Parameters& parameters, std::size_t rank) {
  if (parameters.pads_same()) return std::vector<int>(2 * rank, 0);
  const std::vector<int> given = parameters.numbers("pad");
  if (given.size() == 2 * rank) return given;  // before and after, as top,bottom,left,right
  std::vector<int> pad;
  for (const int both : parameters.for_each_axis("pad", rank, 0))
    pad.insert(pad.end(), {both, both});
  return pad;
}

/// The letters of an image's axes.
std::vector<std::string> axis_names(std::size_t rank) {
  const std::vector<std::string> all = {"d", "h", "w"};
  return {all.end() - static_cast<std::ptrdiff_t>(rank), all.end()};
}

/// @param forward true for im2col, false for col2im
Task read_columns(const Ladder& ladder, Parameters parameters, bool forward) {
  parameters.require_only(
      ladder.name, {"n", "c", "h", "w", "size", "kernel", "pad", "stride", "dilation", "request",
                    "layout", forward ? "x" : "col", "into"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Im2colProblem problem;
  const std::string word = parameters.word("request", {"write", "add", "none"}).value_or("write");
  problem.request = word == "add" ? Request::add : word == "none" ? Request::none : Request::write;
  require(problem.request != Request::write || !parameters.given("into"), "into",
          parameters.word("into").value_or(""),
          "is used with --request add or none; write never reads the output");

  const std::vector<std::string> image_axes = {"[n][c][w]", "[n][c][h][w]", "[n][c][d][h][w]"};
  const std::vector<std::string> column_axes = {"[n][c * kernel volume][output volume]"};
  for (const char* name : {"x", "col", "into"}) {
    if (!parameters.given(name)) continue;
    const bool image = name == std::string("x") || (name == std::string("into") && !forward);
    task.given.emplace(name, *parameters.array(name, image ? image_axes : column_axes));
  }
  const auto given = [&](const char* name) -> const Array* {
    const auto found = task.given.find(name);
    return found == task.given.end() ? nullptr : &found->second;
  };
  const Array* const image = forward ? given("x") : given("into");
  const Array* const columns = forward ? given("into") : given("col");

  const std::size_t rank = rank_of(parameters, image);
  require(rank <= 3, "size", parameters.word("size").value_or(""),
          "has more than three axes: W, H,W or D,H,W");
  const std::vector<std::string> axes = axis_names(rank);
  Extents extents;
  for (const char* name : {"n", "c", "h", "w"}) extents.tell_option(parameters, name);
  require(rank > 1 || !extents.told("h"), "h", extents.value("h", 0),
          "a 1-D problem has no height");
  if (parameters.given("size")) {
    const std::vector<int> size = parameters.numbers("size");
    require(size.size() == rank, "size", joined(size, ","),
            text("the given array is ", axes_text(rank)));
    for (std::size_t axis = 0; axis < rank; ++axis) extents.tell(axes[axis], size[axis], "--size");
  }
  if (image != nullptr) {
    const std::string source = parameters.source(forward ? "x" : "into", image->shape());
    extents.tell("n", image->shape()[0], source);
    extents.tell("c", image->shape()[1], source);
    for (std::size_t axis = 0; axis < rank; ++axis)
      extents.tell(axes[axis], image->shape()[axis + 2], source);
  }
  const std::vector<int> kernel = parameters.for_each_axis("kernel", rank, kExampleKernel);
  if (columns != nullptr) {
    const Shape& shape = columns->shape();
    const std::string source = parameters.source(forward ? "into" : "col", shape);
    extents.tell("n", shape[0], source);
    std::int64_t volume = 1;
    for (const int taps : kernel) {
      require(taps >= 1, "kernel", joined(kernel, ","), "must be at least 1");
      volume = checked_product({volume, taps}, "kernel");
    }
    if (shape[1] % volume != 0) {
      throw BadInput(text(source, ": its ", shape[1], " rows are not a multiple of the kernel's ",
                          volume, " taps"));
    }
    extents.tell("c", shape[1] / volume, source);
    if (!forward) {
      for (const std::string& axis : axes) {
        if (!extents.told(axis))
          throw BadInput(
              "size: must be given together with col, whose shape does not determine it");
      }
    }
  }

  const std::vector<int> example = example_sizes(rank);
  const std::vector<int> stride = parameters.for_each_axis("stride", rank, 1);
  const std::vector<int> dilation = parameters.for_each_axis("dilation", rank, 1);
  const std::vector<int> pad = read_pad(parameters, rank);
  problem.N = extents.value("n", kExampleN);
  problem.C = extents.value("c", kExampleC);
  problem.rank = static_cast<int>(rank);
  const std::array<WindowAxis*, 3> windows = {&problem.depth, &problem.height, &problem.width};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    *windows[3 - rank + axis] = {.size = extents.value(axes[axis], example[axis]),
                                 .kernel = kernel[axis],
                                 .pad_before = pad[2 * axis],
                                 .pad_after = pad[2 * axis + 1],
                                 .stride = stride[axis],
                                 .dilation = dilation[axis]};
  }
  problem.layout = parameters.layout();
  if (parameters.pads_same()) problem = with_same_padding(problem);
  problem = validated(problem);
  task.problem = problem;
  task.title = describe(problem);
  task.notes = parameters.notes();
  if (problem.request == Request::none && !task.given.contains("into")) {
    // The rung must not change them; zeros show that.
    const ArraySpec output = ladder.signature(problem).outputs.front();
    require_available(4.0 * static_cast<double>(element_count(output.shape)), "into");
    task.given.emplace("into", Array(output.dtype, output.shape));
  }
  return task;
}

std::string axis_in_code(const WindowAxis& axis) {
  return text("{",
              joined(std::vector<int>{axis.size, axis.kernel, axis.pad_before, axis.pad_after,
                                      axis.stride, axis.dilation, axis.out},
                     ", "),
              "}");
}

std::string columns_in_code(const Im2colProblem& p) {
  return text("Im2colProblem{.N = ", p.N, ", .C = ", p.C, ", .rank = ", p.rank,
              ", .depth = ", axis_in_code(p.depth), ", .height = ", axis_in_code(p.height),
              ", .width = ", axis_in_code(p.width), ", .request = Request::", name_of(p.request),
              ", .layout = Layout::", name_of(p.layout), ", .dtype = DType::", in_code(p.dtype),
              "}");
}

LadderCommand columns_command(bool forward) {
  const auto read = [forward](const Ladder& ladder, const Options& options) {
    return std::vector{read_columns(ladder, options.problem, forward)};
  };
  return {.read = read, .in_code = code_of<Im2colProblem>(columns_in_code)};
}

}  // namespace

LadderCommand im2col_command() { return columns_command(true); }
LadderCommand col2im_command() { return columns_command(false); }

}  // namespace convladder::command
