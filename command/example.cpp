/// @file example.cpp
/// @brief Prints a main() in C++ that runs a rung on a problem: for ./ladder extract.
///
///     example RUNG [PROBLEM OPTION...]      as of `convladder compare`
///
/// Inputs are small integers, or real numbers where nothing is exact; it writes them out, and what
/// the rung must compute, after the rung was compared with the reference. Exit status: 0; 2 for bad
/// input, or a problem that the rung declines; 4 if it differs from the reference.
#include <cstdio>
#include <string>
#include <vector>

#include "command/ladders/ladder_command.hpp"
#include "command/options.hpp"
#include "command/program.hpp"
#include "command/report.hpp"
#include "command/selection.hpp"
#include "command/task.hpp"
#include "core/error.hpp"
#include "oracle/memory_order.hpp"

namespace convladder::command {
namespace {

constexpr std::int64_t kMostNumbers = 50'000;  ///< Of all arrays: an editor has to open the file.

const char* element_type(DType dtype) {
  constexpr const char* kNames[] = {"float", "std::int32_t", "Half", "BFloat16", "Float8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// "std::vector<float>{1, 2}", in the order of the rung's memory. Shorter types as floats.
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
  const std::string code = command_of(ladder.name).in_code(problem);
  const std::size_t brace = code.find('{');
  std::printf("  const %s problem = %s;\n  Example example;\n", code.substr(0, brace).c_str(),
              code.substr(brace).c_str());
  if (exactness_of(problem) == Exactness::never)
    std::printf("  example.tolerance = 1e-5f;  // roots of unity are irrational\n");
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
  const auto [ladder, rung] = rung_named(arguments.front());
  arguments.front() = ladder->name;
  arguments.insert(arguments.begin(), "compare");
  const Options options = parse_options(arguments);
  Task task = read_tasks(options).front();
  const Problem problem = task.problem;
  const Data data = exactness_of(problem) == Exactness::never ? Data::real : Data::integer;
  Prepared prepared = prepare(std::move(task), data, options.seed);
  const Arrays inputs = prepared.inputs;
  const Where where = rung->is_cuda() ? Where::emulated : Where::cpu;
  const Report report = run(std::move(prepared), {{rung, where}}, /*keep_outputs=*/true, {});
  const Outcome& outcome = report.rows.front().outcome;
  if (outcome.status == Status::declined)
    throw BadInput(text("rung = ", rung->name, ": ", outcome.reason));
  if (outcome.status != Status::agrees) throw std::runtime_error(outcome.reason);
  print_main(*rung, *ladder, problem, inputs, outcome.outputs);
  return kAllAgree;
}

}  // namespace
}  // namespace convladder::command

int main(int argc, char** argv) {
  return convladder::command::reported([&] {
    return convladder::command::print_example({argv + 1, argv + argc});
  });
}
