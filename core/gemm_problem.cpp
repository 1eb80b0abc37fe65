#include "core/gemm_problem.hpp"

#include "core/array.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder {

GemmProblem validated(GemmProblem p) {
  for (const auto& [name, value] : {std::pair{"m", p.M}, {"n", p.N}, {"k", p.K}}) {
    require(value >= 1, name, value, "must be at least 1");
  }
  return p;
}

std::string describe(const GemmProblem& p) {
  std::string line = text("m ", p.M, ", n ", p.N, ", k ", p.K);
  if (p.map != TileMap::row_major) line += text(", map ", name_of(p.map));
  if (p.precision != Precision::fp32) line += text(", ", name_of(p.precision));
  return line;
}

Signature gemm_signature(const GemmProblem& p) {
  return {{{"a", "mk", {p.M, p.K}, p.dtype}, {"b", "kn", {p.K, p.N}, p.dtype}},
          {{"c", "mn", {p.M, p.N}, p.dtype}}};
}

}  // namespace convladder
