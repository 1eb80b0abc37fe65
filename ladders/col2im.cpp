#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::col2im_ladder() {
  return {"col2im",
          "the adjoint of im2col: columns summed back into the input's shape",
          [](const Problem& problem) {
            return col2im_signature(std::get<Im2colProblem>(problem));
          },
          {}};
}
