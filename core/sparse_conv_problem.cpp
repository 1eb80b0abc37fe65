#include "core/sparse_conv_problem.hpp"

#include <limits>

namespace convladder {
namespace {

ArraySpec features_spec(const SparseConvProblem& p, const char* name) {
  return {name, "nc", {p.N, p.Cin}, p.dtype};
}
ArraySpec y_spec(const SparseConvProblem& p, const char* name) {
  return {name, "md", {p.M, p.Cout}, p.dtype};
}
ArraySpec weights_spec(const SparseConvProblem& p, const char* name) {
  return {name, "kcd", {p.book.KV, p.Cin, p.Cout}, p.dtype};
}
ArraySpec pairs_spec(const SparseConvProblem& p) {
  return {"pairs", "pc", {p.pairs, kPairColumns}, DType::i32};
}
ArraySpec offsets_spec(const SparseConvProblem& p) {
  return {"offsets", "k", {std::int64_t{p.book.KV} + 1}, DType::i32};
}

}  // namespace

SparseConvProblem validated(SparseConvProblem p) {
  require(p.Cin >= 1, "cin", p.Cin, "must be at least 1");
  require(p.Cout >= 1, "cout", p.Cout, "must be at least 1");
  require(p.N >= 0 && p.M >= 0, "rows", text(p.N, " and ", p.M), "must be at least 0");
  require(p.pairs >= 0 && p.pairs <= std::numeric_limits<std::int32_t>::max(), "pairs", p.pairs,
          "must be less than 2^31");
  for (const ArraySpec& spec :
       {features_spec(p, "features"), y_spec(p, "y"), weights_spec(p, "weights"), pairs_spec(p)}) {
    element_count(spec.shape);
  }
  return p;
}

std::string describe(const SparseConvProblem& p) {
  return text(describe(p.book), ", ", p.Cin, " to ", p.Cout, " channels, ", p.pairs, " pairs");
}

Signature sparse_conv_signature(const SparseConvProblem& p) {
  return {{features_spec(p, "features"),
           weights_spec(p, "weights"),
           pairs_spec(p),
           offsets_spec(p),
           {"nbr", "km", {p.book.KV, p.M}, DType::i32}},
          {y_spec(p, "y")}};
}

Signature sparse_dgrad_signature(const SparseConvProblem& p) {
  return {{y_spec(p, "dy"),
           weights_spec(p, "weights"),
           pairs_spec(p),
           offsets_spec(p),
           {"nbr_back", "kn", {p.book.KV, p.N}, DType::i32}},
          {features_spec(p, "dx")}};
}

Signature sparse_wgrad_signature(const SparseConvProblem& p) {
  return {{features_spec(p, "features"), y_spec(p, "dy"), pairs_spec(p), offsets_spec(p)},
          {weights_spec(p, "dw")}};
}

}  // namespace convladder
