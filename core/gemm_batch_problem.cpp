#include "core/gemm_batch_problem.hpp"

#include <utility>

#include "core/array.hpp"

namespace convladder {

GemmBatchProblem validated(GemmBatchProblem p) {
  p.product = validated(p.product);
  require(p.batch >= 0, "batch", p.batch, "must be at least 1");
  const Signature arrays = gemm_signature(p);
  for (const auto* specs : {&arrays.inputs, &arrays.outputs}) {
    for (const ArraySpec& spec : *specs) element_count(spec.shape);
  }
  return p;
}

std::string describe(const GemmBatchProblem& p) {
  std::string line = describe(p.product);
  if (p.batch > 0) line += text(", batch ", p.batch);
  if (p.transpose_a || p.transpose_b)
    line += text(", transpose ", p.transpose_a ? "a" : "", p.transpose_b ? "b" : "");
  return line;
}

Signature gemm_signature(const GemmBatchProblem& p) {
  Signature signature = gemm_signature(p.product);
  const auto transpose = [](ArraySpec& spec) {
    std::swap(spec.shape[0], spec.shape[1]);
    std::swap(spec.axes[0], spec.axes[1]);
  };
  if (p.transpose_a) transpose(signature.inputs[0]);
  if (p.transpose_b) transpose(signature.inputs[1]);
  if (p.batch == 0) return signature;
  for (ArraySpec* spec : {&signature.inputs[0], &signature.inputs[1], &signature.outputs[0]}) {
    spec->shape.insert(spec->shape.begin(), p.batch);
    spec->axes.insert(0, "i");
  }
  return signature;
}

}  // namespace convladder
