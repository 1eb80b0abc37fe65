#include "core/sparse_pool_problem.hpp"

#include <limits>

#include "core/array.hpp"
#include "core/site_grid.hpp"

namespace convladder {
namespace {

ArraySpec floats_spec(const char* name, const char* axes, std::int64_t rows, int C) {
  return {name, axes, {rows, C}, DType::f32};
}
ArraySpec argmax_spec(const SparsePoolProblem& p) {
  return {"argmax", "mc", {p.M, p.C}, DType::i32};
}

std::string channels(int C) { return text(C, C == 1 ? " channel" : " channels"); }

}  // namespace

SparsePoolProblem validated(SparsePoolProblem p) {
  require(p.C >= 1, "cin", p.C, "must be at least 1");
  require(p.N >= 0 && p.M >= 0, "rows", text(p.N, " and ", p.M), "must be at least 0");
  require(p.pairs >= 0 && p.pairs <= std::numeric_limits<std::int32_t>::max(), "pairs", p.pairs,
          "must be less than 2^31");
  return p;
}

std::string describe(const SparsePoolProblem& p) {
  return text(describe(p.book), ", ", channels(p.C), ", ", p.pairs, " pairs");
}

Signature sparse_max_pool_signature(const SparsePoolProblem& p) {
  return {{floats_spec("features", "nc", p.N, p.C),
           {"pairs", "pc", {p.pairs, kPairColumns}, DType::i32},
           {"nbr", "km", {p.book.KV, p.M}, DType::i32},
           {"mask", "mw", {p.M, mask_words(p.book.KV)}, DType::i32}},
          {floats_spec("y", "mc", p.M, p.C), argmax_spec(p)}};
}

Signature sparse_max_pool_dgrad_signature(const SparsePoolProblem& p) {
  return {{floats_spec("dy", "mc", p.M, p.C),
           argmax_spec(p),
           {"nbr_back", "kn", {p.book.KV, p.N}, DType::i32},
           {"mask_back", "nw", {p.N, mask_words(p.book.KV)}, DType::i32}},
          {floats_spec("dx", "nc", p.N, p.C)}};
}

SparseToDenseProblem validated(SparseToDenseProblem p) {
  require(p.C >= 1, "cin", p.C, "must be at least 1");
  p.grid = validated_site_grid(p.grid);
  checked_product({p.grid.batch, cells_of(p), p.C, 4}, "bytes of the dense tensor");
  return p;
}

std::string describe(const SparseToDenseProblem& p) {
  return describe_site_grid(p.grid) + ", " + channels(p.C);
}

Signature sparse_to_dense_signature(const SparseToDenseProblem& p) {
  Shape dense = {p.grid.batch, p.C};
  for (int axis = 0; axis < p.grid.ndim; ++axis) dense.push_back(p.grid.shape[axis]);
  const std::string axes =
      std::string("tzyx").substr(static_cast<std::size_t>(kMaxAxes - p.grid.ndim));
  return {{floats_spec("features", "nc", p.grid.sites, p.C),
           {"coords", "na", {p.grid.sites, 1 + p.grid.ndim}, DType::i32}},
          {{"x", "nc" + axes, dense, DType::f32}}};
}

}  // namespace convladder
