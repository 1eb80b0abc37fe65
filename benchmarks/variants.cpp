#include "benchmarks/variants.hpp"

#include <utility>

namespace convladder::benchmarks {
namespace {

/// The types of a product or a sparse convolution, the strictest first.
template <class P>
std::vector<Variant> variants_of(const P& problem, const char* layout, bool fp16, bool bf16,
                                 bool fp8 = false) {
  std::vector<Variant> variants;
  for (const auto& [dtype, precision] : {std::pair{DType::f32, Precision::fp32},
                                         {DType::f32, Precision::tf32},
                                         {DType::f16, Precision::fp32},
                                         {DType::bf16, Precision::fp32},
                                         {DType::f8, Precision::fp32}}) {
    if ((dtype == DType::f16 && !fp16) || (dtype == DType::bf16 && !bf16) ||
        (dtype == DType::f8 && !fp8))
      continue;
    P variant = problem;
    variant.dtype = dtype;
    variant.precision = precision;
    variants.push_back({variant, dtype_name(variant), layout});
  }
  return variants;
}

/// The precisions of a convolution in both layouts, and the short types where channels are
/// innermost, unless one group has too few for a vector.
std::vector<Variant> variants_of(const Conv2dProblem& problem, bool fp16, bool bf16) {
  std::vector<Variant> variants;
  Conv2dProblem variant = problem;
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    variant.precision = precision;
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      variant.layout = layout;
      variants.push_back({variant, name_of(precision), name_of(layout)});
    }
  }
  variant.precision = Precision::fp32;
  variant.layout = problem.groups == 1 && problem.C < 8 ? Layout::nchw : Layout::nhwc;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    if (!(dtype == DType::f16 ? fp16 : bf16)) continue;
    variant.dtype = dtype;
    variants.push_back({variant, dtype_name(dtype, Precision::fp32), name_of(variant.layout)});
  }
  return variants;
}

}  // namespace

std::vector<Variant> variants_of(const BenchmarkProblem& benchmark) {
  const Problem& problem = benchmark.problem;
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem))
    return variants_of(*conv, "rows", true, benchmark.bf16);
  if (const auto* gemm = std::get_if<GemmProblem>(&problem))
    return variants_of(*gemm, "row_major", benchmark.bf16, benchmark.bf16, benchmark.fp8);
  if (std::holds_alternative<RulebookProblem>(problem)) return {{problem, "int32", "rows"}};
  if (const auto* fft = std::get_if<FftProblem>(&problem))
    return {{problem, "fp32", fft->has_planes() ? "planes" : "lines"}};
  if (pools_or_copies(problem) || std::holds_alternative<VoxelizeProblem>(problem))
    return {{problem, "fp32", "rows"}};
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    if (benchmark.plain) return {{problem, "fp32", "nchw"}};
    return variants_of(*conv, benchmark.fp16, benchmark.bf16);
  }
  const auto* columns = std::get_if<Im2colProblem>(&problem);
  if (columns == nullptr) return {{problem, "fp32", "nchw"}};
  std::vector<Variant> variants;  // copies and plain sums
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    Im2colProblem variant = *columns;
    variant.layout = layout;
    variants.push_back({variant, "fp32", name_of(layout)});
  }
  return variants;
}

bool pools_or_copies(const Problem& problem) {
  return std::holds_alternative<SparsePoolProblem>(problem) ||
         std::holds_alternative<SparseGlobalPoolProblem>(problem) ||
         std::holds_alternative<SparseToDenseProblem>(problem);
}

}  // namespace convladder::benchmarks
