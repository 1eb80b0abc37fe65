/// @file sparse_conv.cpp
/// @brief Options of sparse_conv, sparse_dgrad and sparse_wgrad.
#include "command/ladders/sparse.hpp"

namespace convladder::command {
namespace {

const SparseArray kFeatures = {"features", {"input row", "cin"}};
const SparseArray kWeights = {"weights", {"taps", "cin", "cout"}};
const SparseArray kBias = {"bias", {"cout"}};
const SparseArray kGradient = {"dy", {"output row", "cout"}};

std::string sparse_conv_in_code(const SparseConvProblem& p) {
  return text("SparseConvProblem{.book = ", in_code(p.book), ", .Cin = ", p.Cin,
              ", .Cout = ", p.Cout, ", .N = ", p.N, ", .M = ", p.M, ", .pairs = ", p.pairs,
              ", .most_pairs = ", p.most_pairs, ", .dtype = DType::", in_code(p.dtype),
              ", .precision = Precision::", name_of(p.precision),
              ", .bias = ", p.bias ? "true" : "false",
              ", .activation = Activation::", name_of(p.activation), "}");
}

LadderCommand convolution_command(SparseParameters own,
                                  std::vector<std::vector<std::string>> terms) {
  return {.read = sparse_reader(std::move(own)),
          .in_code = code_of<SparseConvProblem>(sparse_conv_in_code),
          .terms = std::move(terms),
          .set_over_sites = [](Task& task, OverSites& over) {
            Rulebook rulebook = rulebook_over(over);
            task.problem = convolution_over(rulebook, over.layer);
            take_rulebook(task, std::move(rulebook));
          }};
}

}  // namespace

LadderCommand sparse_conv_command() {
  return convolution_command(
      {{kFeatures, kWeights, kBias}, kernel_options_and({"cin", "cout", "dtype", "activation"})},
      {{"features", "weights"}, {"bias"}});
}

LadderCommand sparse_dgrad_command() {
  return convolution_command({{kWeights, kGradient}, kernel_options_and({"cin", "cout", "dtype"})},
                             {{"dy", "weights"}});
}

LadderCommand sparse_wgrad_command() {
  return convolution_command({{kFeatures, kGradient}, kernel_options_and({"cin", "cout", "dtype"})},
                             {{"features", "dy"}});
}

}  // namespace convladder::command
