/// @file sparse_max_pool.cpp
/// @brief Options of sparse_max_pool, sparse_max_pool_dgrad and sparse_avg_pool.
#include "command/ladders/sparse.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

std::string sparse_pool_in_code(const SparsePoolProblem& p) {
  return text("SparsePoolProblem{.book = ", in_code(p.book), ", .C = ", p.C, ", .N = ", p.N,
              ", .M = ", p.M, ", .pairs = ", p.pairs, "}");
}

/// The argmax of the forward pass, computed from the features among `arrays`, which are removed
/// from it, or from made-up features. @param source the name of the features in messages
Array argmax_of(const Rulebook& rulebook, int C, std::uint64_t seed, Arrays& arrays,
                const std::string& source) {
  auto features = arrays.extract("features");
  if (features.empty()) return argmax_of_made_up(rulebook, C, Data::integer, seed);
  const SparsePoolProblem pool = pooling_over(rulebook, C);
  const Array& given = features.mapped();
  const Shape needed = sparse_max_pool_signature(pool).inputs[0].shape;
  if (given.shape() != needed) {
    throw BadInput(text(source, ": does not fit the problem (", describe(pool), "), which needs ",
                        to_string(needed)));
  }
  return argmax_over(rulebook.nbr, given);
}

}  // namespace

LadderCommand sparse_max_pool_command() {
  return {.read = sparse_reader({.arrays = {{"features", {"input row", "cin"}}},
                                 .options = kernel_options_and({"cin"})}),
          .in_code = code_of<SparsePoolProblem>(sparse_pool_in_code),
          .set_over_sites = [](Task& task, OverSites& over) {
            Rulebook rulebook = rulebook_over(over);
            task.problem = pooling_over(rulebook, over.layer.Cin);
            take_rulebook(task, std::move(rulebook));
          }};
}

LadderCommand sparse_avg_pool_command() { return sparse_max_pool_command(); }

LadderCommand sparse_max_pool_dgrad_command() {
  return {.read = sparse_reader(
              {.arrays = {{"features", {"input row", "cin"}}, {"dy", {"output row", "cin"}}},
               .options = kernel_options_and({"cin"})}),
          .in_code = code_of<SparsePoolProblem>(sparse_pool_in_code),
          .set_over_sites = [](Task& task, OverSites& over) {
            Rulebook rulebook = rulebook_over(over);
            task.problem = pooling_over(rulebook, over.layer.Cin);
            Array argmax = argmax_of(rulebook, over.layer.Cin, over.seed, over.arrays,
                                     over.source_of_features);
            take_rulebook(task, std::move(rulebook));
            task.given.emplace("argmax", std::move(argmax));
          }};
}

}  // namespace convladder::command
