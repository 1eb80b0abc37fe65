#include "core/sparse_avg_pool.hpp"

#include "core/array.hpp"

convladder::Signature convladder::sparse_avg_pool_signature(const SparsePoolProblem& p) {
  return {{{"features", "nc", {p.N, p.C}, DType::f32}, {"nbr", "km", {p.book.KV, p.M}, DType::i32}},
          {{"y", "mc", {p.M, p.C}, DType::f32}}};
}
