#include "problems.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "core/conv2d_transpose.hpp"
#include "core/error.hpp"
#include "core/padding_after.hpp"
#include "core/points_in_float.hpp"
#include "core/problem.hpp"
#include "core/same_padding.hpp"
#include "oracle/rulebook.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace convladder::python {
namespace {

using Numbers = std::vector<int>;

/// The value with the name `word`. @throws BadInput that lists the words
template <class Value>
Value named(const std::string& parameter, const std::string& word,
            const std::vector<std::pair<const char*, Value>>& values) {
  std::string words;
  for (const auto& [name, value] : values) {
    if (name == word) return value;
    words += (words.empty() ? "" : ", ") + std::string(name);
  }
  throw BadInput(text(parameter, " = '", word, "': it must be one of ", words));
}

Activation activation_named(const std::string& word) {
  return named<Activation>("activation", word,
                           {{"none", Activation::none}, {"relu", Activation::relu}});
}

Precision precision_named(const std::string& word) {
  return named<Precision>("precision", word,
                          {{"fp32", Precision::fp32}, {"tf32", Precision::tf32}});
}

DType dtype_named(const std::string& word) {
  return named<DType>(
      "dtype", word, {{"float32", DType::f32}, {"float16", DType::f16}, {"bfloat16", DType::bf16}});
}

Layout layout_named(const std::string& word) {
  return named<Layout>("layout", word, {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}});
}

/// One of several numbers. @throws BadInput unless there are `count`
void require_count(const std::string& parameter, const Numbers& numbers, std::size_t count) {
  require(numbers.size() == count, parameter, joined(numbers, ", "),
          text("must be ", count, " numbers"));
}

Step step_of(const std::string& parameter, const Numbers& numbers) {
  require_count(parameter, numbers, 2);
  return {numbers[0], numbers[1]};
}

/// Top, bottom, left and right. @param pad empty: same, which follows from the problem
Padding padding_of(const std::optional<Numbers>& pad) {
  if (!pad) return {};
  require_count("pad", *pad, 4);
  return {(*pad)[0], (*pad)[1], (*pad)[2], (*pad)[3]};
}

/// @param pad empty: same
Problem conv2d_problem(int N, int C, int H, int W, int K, int R, int S,
                       const std::optional<Numbers>& pad, const Numbers& stride,
                       const Numbers& dilation, int groups, bool bias,
                       const std::string& activation, const std::string& dtype,
                       const std::string& precision, const std::string& layout) {
  Conv2dProblem problem{.N = N,
                        .C = C,
                        .H = H,
                        .W = W,
                        .K = K,
                        .R = R,
                        .S = S,
                        .pad = padding_of(pad),
                        .stride = step_of("stride", stride),
                        .dilation = step_of("dilation", dilation),
                        .groups = groups,
                        .bias = bias,
                        .activation = activation_named(activation),
                        .layout = layout_named(layout),
                        .dtype = dtype_named(dtype),
                        .precision = precision_named(precision)};
  if (!pad) problem.pad = same_padding(problem);
  return validated(problem);
}

/// In the terms of the transposed convolution. @param pad empty: same
Problem conv2d_transpose_problem(int N, int C, int H, int W, int K, int R, int S,
                                 const std::optional<Numbers>& pad, const Numbers& stride,
                                 const Numbers& dilation, const Numbers& out_padding, int groups,
                                 bool bias, const std::string& dtype, const std::string& precision,
                                 const std::string& layout) {
  return gradient_of(Conv2dTranspose{.N = N,
                                     .C = C,
                                     .H = H,
                                     .W = W,
                                     .K = K,
                                     .R = R,
                                     .S = S,
                                     .pad = padding_of(pad),
                                     .same = !pad,
                                     .stride = step_of("stride", stride),
                                     .dilation = step_of("dilation", dilation),
                                     .out_padding = step_of("out_padding", out_padding),
                                     .groups = groups,
                                     .bias = bias,
                                     .layout = layout_named(layout),
                                     .dtype = dtype_named(dtype),
                                     .precision = precision_named(precision)});
}

/// @param pad before and after, axis by axis; empty: same
Problem im2col_problem(int N, int C, const Numbers& size, const Numbers& kernel,
                       const std::optional<Numbers>& pad, const Numbers& stride,
                       const Numbers& dilation) {
  const std::size_t rank = size.size();
  require(rank >= 1 && rank <= 3, "size", joined(size, ", "), "must be 1 to 3 numbers");
  require_count("kernel", kernel, rank);
  if (pad) require_count("pad", *pad, 2 * rank);
  require_count("stride", stride, rank);
  require_count("dilation", dilation, rank);
  Im2colProblem problem{.N = N, .C = C, .rank = static_cast<int>(rank)};
  WindowAxis* const all[] = {&problem.depth, &problem.height, &problem.width};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    *all[3 - rank + axis] = {.size = size[axis],
                             .kernel = kernel[axis],
                             .pad_before = pad ? (*pad)[2 * axis] : 0,
                             .pad_after = pad ? (*pad)[2 * axis + 1] : 0,
                             .stride = stride[axis],
                             .dilation = dilation[axis]};
  }
  return validated(pad ? problem : with_same_padding(problem));
}

TileMap tile_map_named(const std::string& word) {
  std::vector<std::pair<const char*, TileMap>> maps;
  for (const TileMapName& map : kTileMaps) maps.emplace_back(map.name.data(), map.map);
  return named("map", word, maps);
}

/// @param batch 0: one GEMM, of matrices without a first axis
Problem gemm_problem(int M, int N, int K, int batch, bool transpose_a, bool transpose_b, bool bias,
                     const std::string& activation, const std::string& map,
                     const std::string& dtype, const std::string& precision) {
  const GemmProblem product = validated(GemmProblem{.M = M,
                                                    .N = N,
                                                    .K = K,
                                                    .map = tile_map_named(map),
                                                    .dtype = dtype_named(dtype),
                                                    .precision = precision_named(precision),
                                                    .bias = bias,
                                                    .activation = activation_named(activation)});
  if (batch == 0 && !transpose_a && !transpose_b) return product;
  return validated(GemmBatchProblem{
      .product = product, .batch = batch, .transpose_a = transpose_a, .transpose_b = transpose_b});
}

/// @param H of planes; empty: lines
Problem fft_problem(int N, std::optional<int> H, int L, const std::string& direction,
                    const std::string& ring, const std::string& input) {
  if (H) require(*H >= 1, "height", *H, "must be at least 1");
  return validated(FftProblem{
      .N = N,
      .H = H.value_or(0),
      .L = L,
      .direction = named<FftDirection>(
          "direction", direction,
          {{"forward", FftDirection::forward}, {"inverse", FftDirection::inverse}}),
      .ring = named<FftRing>("ring", ring,
                             {{"complex", FftRing::complex}, {"mersenne", FftRing::mersenne}}),
      .input = named<FftInput>("input", input,
                               {{"complex", FftInput::complex}, {"real", FftInput::real}})});
}

Problem tile_map_problem(const std::string& map, int tiles_m, int tiles_n, int k_steps, int splits,
                         int batch, int blocks, int group_rows) {
  return validated(TileMapProblem{.map = tile_map_named(map),
                                  .tiles_m = tiles_m,
                                  .tiles_n = tiles_n,
                                  .k_steps = k_steps,
                                  .splits = splits,
                                  .batch = batch,
                                  .blocks = blocks,
                                  .group_rows = group_rows});
}

PerAxis per_axis(const std::string& parameter, const Numbers& numbers, std::size_t ndim,
                 int others) {
  require_count(parameter, numbers, ndim);
  PerAxis axes = every_axis(others);
  std::ranges::copy(numbers, axes.value);
  return axes;
}

/// @param pad before and after, axis by axis
RulebookProblem rulebook_problem(const std::string& mode, int sites, int batch,
                                 const Numbers& shape, const Numbers& kernel, const Numbers& stride,
                                 const Numbers& pad, const Numbers& dilation,
                                 const Numbers& out_padding) {
  const std::size_t ndim = shape.size();
  require(ndim >= 1 && ndim <= kMaxAxes, "shape", joined(shape, ", "),
          text("must be 1 to ", kMaxAxes, " numbers"));
  require_count("pad", pad, 2 * ndim);
  Numbers before, after;
  for (std::size_t axis = 0; axis < ndim; ++axis) {
    before.push_back(pad[2 * axis]);
    after.push_back(pad[2 * axis + 1]);
  }
  return validated(with_padding_after(
      RulebookProblem{.mode = named<SparseMode>("mode", mode,
                                                {{"subm", SparseMode::subm},
                                                 {"strided", SparseMode::strided},
                                                 {"transposed", SparseMode::transposed},
                                                 {"inverse", SparseMode::inverse}}),
                      .ndim = static_cast<int>(ndim),
                      .batch = batch,
                      .sites = sites,
                      .shape = per_axis("shape", shape, ndim, 1),
                      .kernel = per_axis("kernel", kernel, ndim, 3),
                      .stride = per_axis("stride", stride, ndim, 1),
                      .pad = per_axis("pad", before, ndim, 0),
                      .dilation = per_axis("dilation", dilation, ndim, 1),
                      .out_padding = per_axis("out_padding", out_padding, ndim, 0),
                      .form = RulebookForm::pairs},
      per_axis("pad", after, ndim, 0)));
}

/// Sites without a kernel.
RulebookProblem site_grid(int sites, int batch, const Numbers& shape) {
  const Numbers ones(shape.size(), 1), zeros(shape.size(), 0), no_pad(2 * shape.size(), 0);
  return rulebook_problem("subm", sites, batch, shape, ones, ones, no_pad, ones, zeros);
}

Problem sparse_to_dense_problem(int sites, int batch, const Numbers& shape, int C) {
  return validated(SparseToDenseProblem{.grid = site_grid(sites, batch, shape), .C = C});
}

Problem sparse_global_pool_problem(int sites, int batch, const Numbers& shape, int C,
                                   const std::string& reduce) {
  return validated(SparseGlobalPoolProblem{
      .grid = site_grid(sites, batch, shape),
      .C = C,
      .reduce = named<PoolReduction>(
          "reduce", reduce, {{"max", PoolReduction::max}, {"mean", PoolReduction::mean}})});
}

/// @param type of the points' coordinates, by NumPy's name
Problem voxelize_problem(int points, int columns, const std::array<double, 3>& voxel,
                         const std::array<double, 6>& range, const std::string& type) {
  const auto coordinates = named<CoordinateType>("points", type,
                                                 {{"float16", CoordinateType::f16},
                                                  {"float32", CoordinateType::f32},
                                                  {"float64", CoordinateType::f64}});
  return validated(VoxelizeProblem{
      .grid = voxel_grid(range, voxel, coordinates), .points = points, .columns = columns});
}

using DoublePoints = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// Points of a problem in float64, converted to those of its rungs.
nb::object points_of(const Problem& problem, const std::array<double, 6>& range,
                     const DoublePoints& points) {
  return to_numpy(points_in_float(std::get<VoxelizeProblem>(problem).grid, range,
                                  {points.data(), points.size()},
                                  static_cast<std::int64_t>(points.shape(1))));
}

void add_rulebook(nb::module_& module) {
  nb::class_<Rulebook>(module, "Rulebook")
      .def_ro("inputs", &Rulebook::N)
      .def_ro("outputs", &Rulebook::M)
      .def("coords", [](const Rulebook& book) { return to_numpy(book.out_coords); })
      .def("pairs", [](const Rulebook& book) { return to_numpy(book.pairs); })
      .def("table", [](const Rulebook& book) { return to_numpy(book.nbr); })
      .def("problem", [](const Rulebook& book) { return Problem(book.problem); });
  module.def(
      "rulebook",
      [](const Problem& problem, const HostArray& coords) {
        const Array sites = copy_of("coords", coords);
        const nb::gil_scoped_release others_run;
        return make_rulebook(std::get<RulebookProblem>(problem), sites);
      },
      "problem"_a, "coords"_a);
  module.def(
      "sparse_conv_problem",
      [](const Rulebook& book, int Cin, int Cout, const std::string& dtype, bool bias,
         const std::string& activation, const std::string& precision) {
        return Problem(
            convolution_over(book, SparseConvProblem{.Cin = Cin,
                                                     .Cout = Cout,
                                                     .dtype = dtype_named(dtype),
                                                     .precision = precision_named(precision),
                                                     .bias = bias,
                                                     .activation = activation_named(activation)}));
      },
      "rulebook"_a, "Cin"_a, "Cout"_a, "dtype"_a, "bias"_a, "activation"_a, "precision"_a);
  module.def(
      "sparse_pool_problem",
      [](const Rulebook& book, int C) { return Problem(pooling_over(book, C)); }, "rulebook"_a,
      "C"_a);
}

}  // namespace

void add_problems(nb::module_& module) {
  nb::class_<Problem>(module, "Problem").def("__str__", [](const Problem& problem) {
    return describe(problem);
  });
  module.def("conv2d_problem", &conv2d_problem, "N"_a, "C"_a, "H"_a, "W"_a, "K"_a, "R"_a, "S"_a,
             "pad"_a.none(), "stride"_a, "dilation"_a, "groups"_a, "bias"_a, "activation"_a,
             "dtype"_a, "precision"_a, "layout"_a);
  module.def("conv2d_transpose_problem", &conv2d_transpose_problem, "N"_a, "C"_a, "H"_a, "W"_a,
             "K"_a, "R"_a, "S"_a, "pad"_a.none(), "stride"_a, "dilation"_a, "out_padding"_a,
             "groups"_a, "bias"_a, "dtype"_a, "precision"_a, "layout"_a);
  module.def("im2col_problem", &im2col_problem, "N"_a, "C"_a, "size"_a, "kernel"_a, "pad"_a.none(),
             "stride"_a, "dilation"_a);
  module.def("fft_problem", &fft_problem, "N"_a, "H"_a.none(), "L"_a, "direction"_a, "ring"_a,
             "input"_a);
  module.def("gemm_problem", &gemm_problem, "M"_a, "N"_a, "K"_a, "batch"_a, "transpose_a"_a,
             "transpose_b"_a, "bias"_a, "activation"_a, "map"_a, "dtype"_a, "precision"_a);
  module.def("tile_map_problem", &tile_map_problem, "map"_a, "tiles_m"_a, "tiles_n"_a, "k_steps"_a,
             "splits"_a, "batch"_a, "blocks"_a, "group_rows"_a);
  module.def(
      "rulebook_problem",
      [](const std::string& mode, int sites, int batch, const Numbers& shape, const Numbers& kernel,
         const Numbers& stride, const Numbers& pad, const Numbers& dilation,
         const Numbers& out_padding) {
        return Problem(rulebook_problem(mode, sites, batch, shape, kernel, stride, pad, dilation,
                                        out_padding));
      },
      "mode"_a, "sites"_a, "batch"_a, "shape"_a, "kernel"_a, "stride"_a, "pad"_a, "dilation"_a,
      "out_padding"_a);
  module.def("sparse_to_dense_problem", &sparse_to_dense_problem, "sites"_a, "batch"_a, "shape"_a,
             "C"_a);
  module.def("sparse_global_pool_problem", &sparse_global_pool_problem, "sites"_a, "batch"_a,
             "shape"_a, "C"_a, "reduce"_a);
  module.def("voxelize_problem", &voxelize_problem, "points"_a, "columns"_a, "voxel"_a, "range"_a,
             "type"_a);
  module.def("points_in_float", &points_of, "problem"_a, "range"_a, "points"_a);
  add_rulebook(module);
}

}  // namespace convladder::python
