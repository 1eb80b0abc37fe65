#include "command/ladders/sparse.hpp"

namespace convladder::command {
namespace {

std::string global_pool_in_code(const SparseGlobalPoolProblem& p) {
  return text("SparseGlobalPoolProblem{.grid = ", in_code(p.grid), ", .C = ", p.C,
              ", .reduce = PoolReduction::", name_of(p.reduce), "}");
}

}  // namespace

LadderCommand sparse_global_pool_command() {
  return {.read = sparse_reader(
              {.arrays = {{"features", {"input row", "cin"}}}, .options = {"cin", "reduce"}}),
          .in_code = code_of<SparseGlobalPoolProblem>(global_pool_in_code),
          .set_over_sites = [](Task& task, OverSites& over) {
            task.problem = validated(SparseGlobalPoolProblem{
                .grid = over.book, .C = over.layer.Cin, .reduce = over.reduce});
            task.given.emplace("coords", std::move(over.coords));
          }};
}

}  // namespace convladder::command
