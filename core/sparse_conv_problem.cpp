#include "core/sparse_conv_problem.hpp"

#include <limits>

#include "core/array.hpp"
#include "core/type_names.hpp"

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
/// An array of the rulebook.
ArraySpec int_spec(const char* name, const char* axes, Shape shape) {
  return {name, axes, std::move(shape), DType::i32};
}
ArraySpec pairs_spec(const SparseConvProblem& p) {
  return int_spec("pairs", "pc", {p.pairs, kPairColumns});
}
ArraySpec offsets_spec(const SparseConvProblem& p) {
  return int_spec("offsets", "k", {std::int64_t{p.book.KV} + 1});
}

/// The output-stationary forms, for `rows` rows, with `suffix` appended to their names.
std::vector<ArraySpec> table_specs(const SparseConvProblem& p, std::int64_t rows,
                                   const std::string& suffix) {
  std::vector<ArraySpec> specs = {int_spec("nbr", "km", {p.book.KV, rows}),
                                  int_spec("mask", "mw", {rows, mask_words(p.book.KV)}),
                                  int_spec("order", "m", {rows}),
                                  int_spec("split_order", "om", {2, rows})};
  for (ArraySpec& spec : specs) spec.name += suffix;
  return specs;
}

void append(std::vector<ArraySpec>& to, const std::vector<ArraySpec>& specs) {
  to.insert(to.end(), specs.begin(), specs.end());
}

}  // namespace

SparseConvProblem validated(SparseConvProblem p) {
  require(p.Cin >= 1, "cin", p.Cin, "must be at least 1");
  require(p.Cout >= 1, "cout", p.Cout, "must be at least 1");
  require(p.N >= 0 && p.M >= 0, "rows", text(p.N, " and ", p.M), "must be at least 0");
  require(p.pairs >= 0 && p.pairs <= std::numeric_limits<std::int32_t>::max(), "pairs", p.pairs,
          "must be less than 2^31");
  require(p.dtype != DType::i32, "dtype", name_of(p.dtype), "must be fp32, tf32, fp16 or bf16");
  for (const ArraySpec& spec :
       {features_spec(p, "features"), y_spec(p, "y"), weights_spec(p, "weights"), pairs_spec(p)}) {
    element_count(spec.shape);
  }
  return p;
}

const char* dtype_name(const SparseConvProblem& p) { return dtype_name(p.dtype, p.precision); }

std::string describe(const SparseConvProblem& p) {
  std::string line =
      text(describe(p.book), ", ", p.Cin, " to ", p.Cout, " channels, ", p.pairs, " pairs");
  if (p.bias) line += ", bias";
  if (p.activation != Activation::none) line += text(", ", name_of(p.activation));
  if (p.dtype != DType::f32 || p.precision != Precision::fp32) line += text(", ", dtype_name(p));
  return line;
}

Signature sparse_conv_signature(const SparseConvProblem& p) {
  Signature signature{{features_spec(p, "features"), weights_spec(p, "weights")}, {y_spec(p, "y")}};
  if (p.bias) signature.inputs.push_back({"bias", "d", {p.Cout}, DType::f32});
  append(signature.inputs, {pairs_spec(p), offsets_spec(p)});
  append(signature.inputs, table_specs(p, p.M, ""));
  return signature;
}

Signature sparse_dgrad_signature(const SparseConvProblem& p) {
  Signature signature{{y_spec(p, "dy"), weights_spec(p, "weights"), pairs_spec(p), offsets_spec(p)},
                      {features_spec(p, "dx")}};
  append(signature.inputs, table_specs(p, p.M, ""));
  append(signature.inputs, table_specs(p, p.N, "_back"));
  return signature;
}

Signature sparse_wgrad_signature(const SparseConvProblem& p) {
  ArraySpec dw = weights_spec(p, "dw");
  dw.dtype = DType::f32;
  Signature signature{
      {features_spec(p, "features"), y_spec(p, "dy"), pairs_spec(p), offsets_spec(p)}, {dw}};
  append(signature.inputs, table_specs(p, p.M, ""));
  return signature;
}

}  // namespace convladder
