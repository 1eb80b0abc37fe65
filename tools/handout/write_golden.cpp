/// @file write_golden.cpp
/// @brief Writes the right answers of cases, computed by the project's reference, for handouts in
/// which the reference would be the solution: check/golden.hpp tells the form.
///
///     write_golden <cases.txt >answers.txt
#include <cstdio>
#include <iostream>
#include <set>
#include <sstream>

#include "check/golden.hpp"
#include "check/run.hpp"
#include "check/trial.hpp"
#include "core/error.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder {
namespace oracle {

Definition conv2d_definition();
Definition im2col_definition();
Definition col2im_definition();

const Definition& definition_of(const std::string& ladder) {
  static const std::map<std::string, Definition> definitions = {{"conv2d", conv2d_definition()},
                                                                {"im2col", im2col_definition()},
                                                                {"col2im", col2im_definition()}};
  return definitions.at(ladder);
}

}  // namespace oracle

namespace check {
namespace {

Golden golden_of(const std::string& name, const std::string& ladder, const Trial& trial) {
  const Problem& problem = trial.problem;
  const auto* conv = std::get_if<Conv2dProblem>(&problem);
  const Signature signature = conv ? conv2d_signature(*conv)
                              : ladder == "im2col"
                                  ? im2col_signature(std::get<Im2colProblem>(problem))
                                  : col2im_signature(std::get<Im2colProblem>(problem));
  Golden golden{.name = name,
                .ladder = ladder,
                .problem = describe(problem),
                .longest_sum = longest_sum(ladder, problem)};
  const Arrays inputs = make_inputs(signature, Data::integer, kSeed, golden.longest_sum);
  golden.inputs = sum_of_bytes(inputs);
  Expected output = reference(ladder, problem, inputs).front();
  golden.output = output.spec.name;
  golden.values = std::move(output.values);
  return golden;
}

void write_all() {
  std::set<std::string> problems;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream in(line);
    std::string name, rung, words;
    in >> name >> rung;
    std::getline(in, words);
    const std::size_t begin = rung.find('/') + 1;
    const std::string ladder = rung.substr(begin, rung.rfind('/') - begin);
    const Golden golden = golden_of(name, ladder, read_trial(ladder, split(words)));
    require(problems.insert(ladder + " " + golden.problem).second, "case", name,
            "is told apart from another one by nothing that its description has");
    write_golden(golden, std::cout);
  }
}

}  // namespace
}  // namespace check
}  // namespace convladder

int main() {
  try {
    convladder::check::write_all();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_golden: %s\n", error.what());
    return 2;
  }
}
