#include "core/gemm_problem.hpp"

#include "core/array.hpp"
#include "core/tile_map_problem.hpp"
#include "core/type_names.hpp"

namespace convladder {

GemmProblem validated(GemmProblem p) {
  for (const auto& [name, value] : {std::pair{"m", p.M}, {"n", p.N}, {"k", p.K}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  require(p.dtype != DType::i32, "dtype", name_of(p.dtype), "must be fp32, tf32, fp16 or bf16");
  return p;
}

const char* dtype_name(const GemmProblem& p) { return dtype_name(p.dtype, p.precision); }

std::string describe(const GemmProblem& p) {
  std::string line = text("m ", p.M, ", n ", p.N, ", k ", p.K);
  if (p.map != TileMap::row_major) line += text(", map ", name_of(p.map));
  if (p.dtype != DType::f32 || p.precision != Precision::fp32) line += text(", ", dtype_name(p));
  return line;
}

Signature gemm_signature(const GemmProblem& p) {
  return {{{"a", "mk", {p.M, p.K}, p.dtype}, {"b", "kn", {p.K, p.N}, p.dtype}},
          {{"c", "mn", {p.M, p.N}, p.dtype}}};
}

}  // namespace convladder
