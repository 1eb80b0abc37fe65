#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(SparseConvProblem, cpu_reference, sparse_conv, direct)

convladder::Ladder convladder::sparse_conv_ladder() {
  return {"sparse_conv",
          "a sparse convolution over a rulebook: y[out] += features[in] * weights[k]",
          [](const Problem& problem) {
            return sparse_conv_signature(std::get<SparseConvProblem>(problem));
          },
          {
              CPU_ROW(cpu_reference, sparse_conv, direct, "",
                      "pair after pair, as the rulebook lists them"),
          }};
}
