/// @file example.cpp
/// @brief Prints a main() in C++ that runs a rung on a problem: for ./ladder extract.
///
///     example RUNG [PROBLEM OPTION...]      as of `convladder compare`
///
/// Inputs are small integers, which it writes out; so it does with what the rung must compute,
/// after the rung was compared with the reference. Exit status: 0; 2 for bad input, or a problem
/// that the rung declines; 4 if it differs from the reference.
#include <cstdio>
#include <string>
#include <vector>

#include "command/options.hpp"
#include "command/program.hpp"
#include "command/report.hpp"
#include "command/task.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"
#include "oracle/memory_order.hpp"

namespace convladder::command {
namespace {

constexpr std::int64_t kMostNumbers = 50'000;  ///< Of all arrays: an editor has to open the file.

const Rung& rung_of(const std::string& name, const Ladder** ladder) {
  for (const Ladder& candidate : ladders()) {
    for (const Rung& rung : candidate.rungs) {
      if (rung.name != name) continue;
      *ladder = &candidate;
      return rung;
    }
  }
  throw BadInput(text("rung = ", name, ": there is no such rung (./ladder list)"));
}

// --- Problems as C++
// --------------------------------------------------------------------------------

const char* in_code(DType dtype) {
  constexpr const char* kNames[] = {"f32", "i32", "f16", "bf16"};
  return kNames[static_cast<std::size_t>(dtype)];
}
std::string in_code(const PerAxis& axes) { return text("{{", joined(axes.value, ", "), "}}"); }
std::string in_code(const WindowAxis& axis) {
  return text("{",
              joined(std::vector<int>{axis.size, axis.kernel, axis.pad_before, axis.pad_after,
                                      axis.stride, axis.dilation, axis.out},
                     ", "),
              "}");
}

std::string in_code(const Conv2dProblem& p) {
  return text("Conv2dProblem{.N = ", p.N, ", .C = ", p.C, ", .H = ", p.H, ", .W = ", p.W,
              ", .K = ", p.K, ", .R = ", p.R, ", .S = ", p.S, ", .pad = {", p.pad.top, ", ",
              p.pad.bottom, ", ", p.pad.left, ", ", p.pad.right, "}, .stride = {", p.stride.h, ", ",
              p.stride.w, "}, .dilation = {", p.dilation.h, ", ", p.dilation.w,
              "}, .groups = ", p.groups, ", .bias = ", p.bias ? "true" : "false",
              ", .activation = Activation::", name_of(p.activation),
              ", .layout = Layout::", name_of(p.layout), ", .map = TileMap::", name_of(p.map),
              ", .dtype = DType::", in_code(p.dtype),
              ", .precision = Precision::", name_of(p.precision), ", .P = ", p.P, ", .Q = ", p.Q,
              "}");
}

std::string in_code(const Im2colProblem& p) {
  return text("Im2colProblem{.N = ", p.N, ", .C = ", p.C, ", .rank = ", p.rank,
              ", .depth = ", in_code(p.depth), ", .height = ", in_code(p.height),
              ", .width = ", in_code(p.width), ", .request = Request::", name_of(p.request),
              ", .layout = Layout::", name_of(p.layout), ", .dtype = DType::", in_code(p.dtype),
              "}");
}

std::string in_code(const GemmProblem& p) {
  return text("GemmProblem{.M = ", p.M, ", .N = ", p.N, ", .K = ", p.K,
              ", .map = TileMap::", name_of(p.map), ", .dtype = DType::", in_code(p.dtype),
              ", .precision = Precision::", name_of(p.precision), "}");
}

std::string in_code(const TileMapProblem& p) {
  return text("TileMapProblem{.map = TileMap::", name_of(p.map), ", .tiles_m = ", p.tiles_m,
              ", .tiles_n = ", p.tiles_n, ", .k_steps = ", p.k_steps, ", .splits = ", p.splits,
              ", .batch = ", p.batch, ", .blocks = ", p.blocks, ", .group_rows = ", p.group_rows,
              "}");
}

std::string in_code(const RulebookProblem& p) {
  return text("RulebookProblem{.mode = SparseMode::", name_of(p.mode), ", .ndim = ", p.ndim,
              ", .batch = ", p.batch, ", .sites = ", p.sites, ", .shape = ", in_code(p.shape),
              ", .kernel = ", in_code(p.kernel), ", .stride = ", in_code(p.stride),
              ", .pad = ", in_code(p.pad), ", .dilation = ", in_code(p.dilation),
              ", .out_padding = ", in_code(p.out_padding),
              ", .form = RulebookForm::", name_of(p.form), ", .out_shape = ", in_code(p.out_shape),
              ", .KV = ", p.KV, "}");
}

std::string in_code(const SparseConvProblem& p) {
  return text("SparseConvProblem{.book = ", in_code(p.book), ", .Cin = ", p.Cin,
              ", .Cout = ", p.Cout, ", .N = ", p.N, ", .M = ", p.M, ", .pairs = ", p.pairs,
              ", .most_pairs = ", p.most_pairs, ", .dtype = DType::", in_code(p.dtype),
              ", .precision = Precision::", name_of(p.precision),
              ", .bias = ", p.bias ? "true" : "false",
              ", .activation = Activation::", name_of(p.activation), "}");
}

std::string in_code(const SparsePoolProblem& p) {
  return text("SparsePoolProblem{.book = ", in_code(p.book), ", .C = ", p.C, ", .N = ", p.N,
              ", .M = ", p.M, ", .pairs = ", p.pairs, "}");
}

std::string in_code(const SparseToDenseProblem& p) {
  return text("SparseToDenseProblem{.grid = ", in_code(p.grid), ", .C = ", p.C, "}");
}

// --- Arrays as C++
// ----------------------------------------------------------------------------------

const char* element_type(DType dtype) {
  constexpr const char* kNames[] = {"float", "std::int32_t", "Half", "BFloat16"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// "std::vector<float>{1, 2}", in the order of the rung's memory. Half types as floats.
std::string in_code(const Array& array, const MemoryOrder& order) {
  const Array laid = in_memory(array, order);
  if (laid.dtype() == DType::i32)
    return text("std::vector<std::int32_t>{", joined(laid.as<std::int32_t>(), ", "), "}");
  const Array numbers = rounded_to(laid, DType::f32);
  return text("std::vector<float>{", joined(numbers.as<float>(), ", "), "}");
}

void print_main(const Rung& rung, const Ladder& ladder, const Problem& problem,
                const Arrays& inputs, const Arrays& outputs) {
  const Signature signature = ladder.signature(problem);
  std::int64_t numbers = 0;
  for (const Arrays* arrays : {&inputs, &outputs}) {
    for (const auto& [name, array] : *arrays) numbers += array.size();
  }
  require(numbers <= kMostNumbers, "numbers", numbers,
          text("too many for a source file, at most ", kMostNumbers, ": take a smaller problem"));
  std::printf("/// %s\nint main() try {\n  using namespace convladder;\n",
              describe(problem).c_str());
  std::printf("  const %s;\n  Example example;\n", std::visit(
                                                       [](const auto& typed) {
                                                         const std::string code = in_code(typed);
                                                         const std::size_t brace = code.find('{');
                                                         return code.substr(0, brace) +
                                                                " problem = " + code.substr(brace);
                                                       },
                                                       problem)
                                                       .c_str());
  for (const ArraySpec& spec : signature.inputs) {
    std::printf("  example.input<%s>(\"%s\", %s);\n", element_type(spec.dtype), spec.name.c_str(),
                in_code(inputs.at(spec.name), spec.order).c_str());
  }
  for (const ArraySpec& spec : signature.outputs) {
    const auto found = outputs.find(spec.name);
    if (found == outputs.end()) continue;  // optional, and this rung leaves it out
    const std::string values = in_code(found->second, spec.order);
    if (spec.dynamic) {
      const bool any_order = spec.name == "pairs";
      std::printf("  example.created_output(\"%s\", %lld, %s);\n", spec.name.c_str(),
                  any_order ? static_cast<long long>(found->second.shape()[1]) : 1LL,
                  values.c_str());
    } else if (spec.initial.empty()) {
      std::printf("  example.output<%s>(\"%s\", %s);\n", element_type(spec.dtype),
                  spec.name.c_str(), values.c_str());
    } else {
      std::printf("  example.output<%s>(\"%s\", %s,\n                  %s);\n",
                  element_type(spec.dtype), spec.name.c_str(), values.c_str(),
                  in_code(inputs.at(spec.initial), spec.order).c_str());
    }
  }
  std::string constant = rung.name;
  for (std::size_t at = 0; (at = constant.find('/', at)) != std::string::npos; at += 2)
    constant.replace(at, 1, "::");
  std::printf(
      "  return example.run(%s%s, problem);\n} catch (const std::exception& error) {\n"
      "  std::printf(\"%%s\\n\", error.what());\n  return 1;\n}\n",
      rung.is_cuda() ? "BACKEND::" : "", constant.c_str());
}

int print_example(std::vector<std::string> arguments) {
  require(!arguments.empty(), "rung", "", "example RUNG [PROBLEM OPTION...]");
  const Ladder* ladder = nullptr;
  const Rung& rung = rung_of(arguments.front(), &ladder);
  arguments.front() = ladder->name;
  arguments.insert(arguments.begin(), "compare");
  const Options options = parse_options(arguments);
  Prepared prepared = prepare(read_tasks(options).front(), Data::integer, options.seed);
  const Problem problem = prepared.task.problem;
  const Arrays inputs = prepared.inputs;
  const Where where = rung.is_cuda() ? Where::emulated : Where::cpu;
  const Report report = run(std::move(prepared), {{&rung, where}}, /*keep_outputs=*/true, {});
  const Outcome& outcome = report.rows.front().outcome;
  if (outcome.status == Status::declined)
    throw BadInput(text("rung = ", rung.name, ": ", outcome.reason));
  if (outcome.status != Status::agrees) throw std::runtime_error(outcome.reason);
  print_main(rung, *ladder, problem, inputs, outcome.outputs);
  return kAllAgree;
}

}  // namespace
}  // namespace convladder::command

int main(int argc, char** argv) {
  return convladder::command::reported([&] {
    return convladder::command::print_example({argv + 1, argv + argc});
  });
}
