#include "core/sparse_global_pool_problem.hpp"

#include "core/array.hpp"
#include "core/error.hpp"
#include "core/site_grid.hpp"
#include "core/text.hpp"

namespace convladder {

SparseGlobalPoolProblem validated(SparseGlobalPoolProblem p) {
  require(p.C >= 1, "cin", p.C, "must be at least 1");
  p.grid = validated_site_grid(p.grid);
  return p;
}

std::string describe(const SparseGlobalPoolProblem& p) {
  return text(describe_site_grid(p.grid), ", ", p.C, p.C == 1 ? " channel, " : " channels, ",
              name_of(p.reduce));
}

Signature sparse_global_pool_signature(const SparseGlobalPoolProblem& p) {
  return {{{"features", "nc", {p.grid.sites, p.C}, DType::f32},
           {"coords", "na", {p.grid.sites, 1 + p.grid.ndim}, DType::i32}},
          {{"y", "nc", {p.grid.batch, p.C}, DType::f32}}};
}

}  // namespace convladder
