/// @file example.cpp
/// @brief Prints, as JSON, a problem in C++ and the numbers of its arrays, for ./ladder extract.
///
///     example RUNG [PROBLEM OPTION...]      with the options of `convladder compare`
///
/// Inputs are small integers, or real numbers if the problem has no exact results. The program
/// compares the rung with the reference, then prints the inputs and the expected outputs. Exit
/// status: 0; 2 for bad input or a problem that the rung does not support; 4 if the rung differs
/// from the reference.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
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

constexpr std::int64_t kMostNumbers = 50'000;  ///< Elements of all arrays: a text editor must be
                                               ///< able to open the file.

const char* element_type(DType dtype) {
  constexpr const char* kNames[] = {"float", "std::int32_t", "Half", "BFloat16", "Float8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// "1, 2", with enough digits to read back the same numbers.
template <class T>
std::string listed(std::span<const T> numbers) {
  std::string list;
  for (const T number : numbers) list += text(list.empty() ? "" : ", ", number);
  return list;
}

/// The same, in the order of the rung's memory. Shorter types are written as floats.
std::string numbers_of(const Array& array, const MemoryOrder& order) {
  const Array laid = in_memory(array, order);
  if (laid.dtype() == DType::i32) return listed<std::int32_t>(laid.as<std::int32_t>());
  const Array numbers = rounded_to(laid, DType::f32);
  return listed<float>(numbers.as<float>());
}

void print_json(const Rung& rung, const Ladder& ladder, const Problem& problem,
                const Arrays& inputs, const Arrays& outputs) {
  const Signature signature = ladder.signature(problem);
  std::int64_t numbers = 0;
  for (const Arrays* arrays : {&inputs, &outputs}) {
    for (const auto& [name, array] : *arrays) numbers += array.size();
  }
  require(numbers <= kMostNumbers, "numbers", numbers,
          text("too many numbers for a source file; the most are ", kMostNumbers,
               ": take a smaller problem"));
  using Json = nlohmann::ordered_json;
  Json example = {{"description", describe(problem)},
                  {"problem", command_of(ladder.name).in_code(problem)},
                  {"exact", exactness_of(problem) != Exactness::never && !rung.float_spectra},
                  {"inputs", Json::array()},
                  {"outputs", Json::array()}};
  for (const ArraySpec& spec : signature.inputs) {
    example["inputs"].push_back({{"name", spec.name},
                                 {"type", element_type(spec.dtype)},
                                 {"numbers", numbers_of(inputs.at(spec.name), spec.order)}});
  }
  for (const ArraySpec& spec : signature.outputs) {
    const auto found = outputs.find(spec.name);
    if (found == outputs.end()) continue;  // optional, and this rung omits it
    const Array& expected = found->second;
    Json output = {{"name", spec.name},
                   {"type", element_type(spec.dtype)},
                   {"count", expected.size()},
                   {"numbers", numbers_of(expected, spec.order)},
                   {"created", spec.dynamic}};
    if (spec.dynamic && spec.name == "pairs") output["rows_in_any_order"] = expected.shape()[1];
    if (!spec.initial.empty()) output["initial"] = numbers_of(inputs.at(spec.initial), spec.order);
    example["outputs"].push_back(std::move(output));
  }
  std::printf("%s\n", example.dump().c_str());
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
  print_json(*rung, *ladder, problem, inputs, outcome.outputs);
  return kAllAgree;
}

}  // namespace
}  // namespace convladder::command

int main(int argc, char** argv) {
  return convladder::command::reported([&] {
    return convladder::command::print_example({argv + 1, argv + argc});
  });
}
