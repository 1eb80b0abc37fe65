#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::im2col_ladder() {
  return {"im2col",
          "windows of an input as the columns of a matrix, in 1, 2 or 3 dimensions",
          [](const Problem& problem) {
            return im2col_signature(std::get<Im2colProblem>(problem));
          },
          {}};
}
