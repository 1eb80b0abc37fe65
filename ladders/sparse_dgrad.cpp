#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(SparseConvProblem, cpu_reference, sparse_dgrad, direct)

convladder::Ladder convladder::sparse_dgrad_ladder() {
  return {"sparse_dgrad",
          "gradient of a sparse convolution with respect to its features",
          [](const Problem& problem) {
            return sparse_dgrad_signature(std::get<SparseConvProblem>(problem));
          },
          {
              CPU_ROW(cpu_reference, sparse_dgrad, direct, "",
                      "pair after pair, as the rulebook lists them"),
          }};
}
