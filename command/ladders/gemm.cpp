#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"

namespace convladder::command {
namespace {

constexpr GemmProblem kGemmExample = {.M = 200, .N = 168, .K = 128};

std::vector<Task> read_gemm(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which collects notes
  parameters.require_only(ladder.name, {"m", "n", "k", "a", "b", "bias", "activation", "map",
                                        "dtype", "scale-a", "scale-b", "batch", "transpose"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Extents extents;
  for (const char* name : {"m", "n", "k", "batch"}) extents.tell_option(parameters, name);
  const std::string transposed = parameters.word("transpose", {"a", "b", "ab"}).value_or("");
  GemmBatchProblem products{.transpose_a = transposed.starts_with("a"),
                            .transpose_b = transposed.ends_with("b")};
  const auto read = [&](const char* name, bool transpose, std::string rows, std::string columns) {
    if (!parameters.given(name)) return;
    if (transpose) std::swap(rows, columns);
    const std::string matrix = text("[", rows, "][", columns, "]");
    const Array& array =
        task.given.emplace(name, *parameters.array(name, {matrix, "[batch]" + matrix}))
            .first->second;
    const Shape& shape = array.shape();
    const std::string source = parameters.source(name, shape);
    if (shape.size() == 3) extents.tell("batch", shape[0], source);
    extents.tell(rows, shape[shape.size() - 2], source);
    extents.tell(columns, shape.back(), source);
  };
  read("a", products.transpose_a, "m", "k");
  read("b", products.transpose_b, "k", "n");
  if (extents.told("batch")) {
    products.batch = extents.value("batch", 1);
    require(products.batch >= 1, "batch", products.batch, "must be at least 1");
  }
  if (parameters.array_given("bias")) {
    const Array& array =
        task.given.emplace("bias", *parameters.array("bias", {"[n]"})).first->second;
    extents.tell("n", array.shape()[0], parameters.source("bias", array.shape()));
  }
  GemmProblem problem{.M = extents.value("m", kGemmExample.M),
                      .N = extents.value("n", kGemmExample.N),
                      .K = extents.value("k", kGemmExample.K),
                      .map = parameters.map().value_or(TileMap::row_major),
                      .bias = parameters.given("bias")};
  if (parameters.word("activation", {"none", "relu"}) == "relu") {
    problem.activation = Activation::relu;
  }
  parameters.set_dtype(problem, {"fp8"});
  for (const auto& [name, scale] :
       {std::pair{"scale-a", &problem.scale_a}, {"scale-b", &problem.scale_b}}) {
    const std::vector<double> given = parameters.reals(name);
    if (given.empty()) continue;
    require(given.size() == 1, name, joined(given, ","), "must be one number");
    *scale = static_cast<float>(given.front());
  }
  problem = validated(problem);
  products.product = problem;
  const bool is_one = products.batch == 0 && transposed.empty();
  task.problem = is_one ? Problem(problem) : Problem(validated(products));
  task.title = describe(task.problem);
  task.notes = parameters.notes();
  return {std::move(task)};
}

std::string gemm_in_code(const GemmProblem& p) {
  const std::string scales =
      p.dtype == DType::f8 ? text(", .scale_a = ", p.scale_a, ", .scale_b = ", p.scale_b) : "";
  return text("GemmProblem{.M = ", p.M, ", .N = ", p.N, ", .K = ", p.K,
              ", .map = TileMap::", name_of(p.map), ", .dtype = DType::", in_code(p.dtype),
              ", .precision = Precision::", name_of(p.precision), scales,
              ", .bias = ", p.bias ? "true" : "false",
              ", .activation = Activation::", name_of(p.activation), "}");
}

std::string products_in_code(const Problem& problem) {
  const auto* products = std::get_if<GemmBatchProblem>(&problem);
  if (products == nullptr) return gemm_in_code(std::get<GemmProblem>(problem));
  return text("GemmBatchProblem{.product = ", gemm_in_code(products->product),
              ", .batch = ", products->batch,
              ", .transpose_a = ", products->transpose_a ? "true" : "false",
              ", .transpose_b = ", products->transpose_b ? "true" : "false", "}");
}

}  // namespace

LadderCommand gemm_command() {
  return {.read = read_gemm, .in_code = products_in_code, .terms = {{"a", "b"}, {"bias"}}};
}

}  // namespace convladder::command
