#include "core/gemm_problem.hpp"

#include "core/array.hpp"
#include "core/tile_map_problem.hpp"
#include "core/type_names.hpp"

namespace convladder {

GemmProblem validated(GemmProblem p) {
  for (const auto& [name, value] : {std::pair{"m", p.M}, {"n", p.N}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  require(p.K >= 0, "k", p.K, "must be at least 0");
  require(p.dtype != DType::i32, "dtype", name_of(p.dtype),
          "must be fp32, tf32, fp16, bf16 or fp8");
  // So that no sum of products overflows to infinity or is subnormal in float.
  constexpr float kMostScale = 0x1p32f, kLeastScale = 0x1p-32f;
  for (const auto& [name, value] : {std::pair{"scale-a", p.scale_a}, {"scale-b", p.scale_b}}) {
    require(p.dtype == DType::f8 || value == 1, name, value, "only with --dtype fp8");
    require(value >= kLeastScale && value <= kMostScale, name, value, "must be from 2^-32 to 2^32");
  }
  return p;
}

const char* dtype_name(const GemmProblem& p) { return dtype_name(p.dtype, p.precision); }

std::string describe(const GemmProblem& p) {
  std::string line = text("m ", p.M, ", n ", p.N, ", k ", p.K);
  if (p.bias) line += ", bias";
  if (p.activation != Activation::none) line += text(", ", name_of(p.activation));
  if (p.map != TileMap::row_major) line += text(", map ", name_of(p.map));
  if (p.dtype != DType::f32 || p.precision != Precision::fp32) line += text(", ", dtype_name(p));
  if (p.scale_a != 1) line += text(", scale-a ", p.scale_a);
  if (p.scale_b != 1) line += text(", scale-b ", p.scale_b);
  return line;
}

Signature gemm_signature(const GemmProblem& p) {
  Signature signature{{{"a", "mk", {p.M, p.K}, p.dtype}, {"b", "kn", {p.K, p.N}, p.dtype}},
                      {{"c", "mn", {p.M, p.N}, p.dtype == DType::f8 ? DType::f32 : p.dtype}}};
  if (p.bias) signature.inputs.push_back({"bias", "n", {p.N}, DType::f32});
  return signature;
}

}  // namespace convladder
