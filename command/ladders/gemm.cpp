#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"

namespace convladder::command {
namespace {

constexpr GemmProblem kGemmExample = {.M = 200, .N = 168, .K = 128};

std::vector<Task> read_gemm(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which takes notes
  parameters.require_only(ladder.name, {"m", "n", "k", "a", "b", "bias", "activation", "map",
                                        "dtype", "scale-a", "scale-b"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Extents extents;
  for (const char* name : {"m", "n", "k"}) extents.tell_option(parameters, name);
  const auto read = [&](const char* name, const char* axes, const char* rows, const char* columns) {
    if (!parameters.given(name)) return;
    const Array& array = task.given.emplace(name, *parameters.array(name, {axes})).first->second;
    const std::string source = parameters.source(name, array.shape());
    extents.tell(rows, array.shape()[0], source);
    extents.tell(columns, array.shape()[1], source);
  };
  read("a", "[m][k]", "m", "k");
  read("b", "[k][n]", "k", "n");
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
  task.problem = problem = validated(problem);
  task.title = describe(problem);
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

}  // namespace

LadderCommand gemm_command() {
  return {.read = read_gemm,
          .in_code = code_of<GemmProblem>(gemm_in_code),
          .terms = {{"a", "b"}, {"bias"}}};
}

}  // namespace convladder::command
