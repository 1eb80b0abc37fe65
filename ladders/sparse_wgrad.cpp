#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(SparseConvProblem, cpu_reference, sparse_wgrad, direct)

convladder::Ladder convladder::sparse_wgrad_ladder() {
  return {"sparse_wgrad",
          "gradient of a sparse convolution with respect to its weights",
          [](const Problem& problem) {
            return sparse_wgrad_signature(std::get<SparseConvProblem>(problem));
          },
          {
              CPU_ROW(cpu_reference, sparse_wgrad, direct, "",
                      "pair after pair, as the rulebook lists them"),
          }};
}
