#include "command/ladders/sparse.hpp"

namespace convladder::command {
namespace {

std::string to_dense_in_code(const SparseToDenseProblem& p) {
  return text("SparseToDenseProblem{.grid = ", in_code(p.grid), ", .C = ", p.C, "}");
}

}  // namespace

LadderCommand sparse_to_dense_command() {
  return {
      .read = sparse_reader({.arrays = {{"features", {"input row", "cin"}}}, .options = {"cin"}}),
      .in_code = code_of<SparseToDenseProblem>(to_dense_in_code),
      .set_over_sites = [](Task& task, OverSites& over) {
        task.problem = validated(SparseToDenseProblem{.grid = over.book, .C = over.layer.Cin});
        task.given.emplace("coords", std::move(over.coords));
      }};
}

}  // namespace convladder::command
