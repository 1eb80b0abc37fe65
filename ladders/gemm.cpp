#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::gemm_ladder() {
  return {"gemm",
          "matrix product: c = a b",
          [](const Problem& problem) {
            return gemm_signature(std::get<GemmProblem>(problem));
          },
          {}};
}
