/// @file cublas.cu
/// @brief GEMM by cuBLAS.
#include <memory>

#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"
#include "core/float8.hpp"

#ifdef CONVLADDER_HAVE_CUBLAS
#include <cublasLt.h>
#include <cublas_v2.h>

namespace convladder::benchmarks {
namespace {

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}

cublasHandle_t handle() {
  static const cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made));
    // Of its own, so that it need not allocate any while a graph is captured.
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    void* scratch = nullptr;
    gpu::check(cudaMalloc(&scratch, kBytes));
    check(cublasSetStream(made, rung_stream()));
    check(cublasSetWorkspace(made, scratch, kBytes));
    return made;
  }();
  return handle;
}

/// Device memory full of the same small number, freed with the last who knows it. Null where there
/// is not enough.
std::shared_ptr<void> filled(std::int64_t elements, DType dtype) {
  void* data = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  gpu::check(cudaMemset(data, 0x3c, bytes));  // 0.0115 in fp32, 1.06 in fp16, 0.0115 in bf16
  return {data, [](void* memory) { static_cast<void>(cudaFree(memory)); }};
}

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// pairs x Cin times Cin x Cout, or for the gradient of the weights Cin x pairs times pairs x Cout:
/// what is left of a sparse convolution where rows need not be looked up.
std::vector<Baseline> product_of_pairs(const Contest& contest, const SparseConvProblem& p) {
  const bool of_weights = contest.ladder == "sparse_wgrad";
  const DType sums = of_weights ? DType::f32 : p.dtype;
  const auto inputs = filled(p.pairs * p.Cin, p.dtype), outputs = filled(p.pairs * p.Cout, p.dtype);
  const auto weights = filled(std::int64_t{p.Cin} * p.Cout, sums);
  if (p.pairs == 0 || !inputs || !outputs || !weights) return {};
  const cublasComputeType_t compute =
      p.dtype == DType::f32 && contest.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const auto run = [=, type = type_of(p.dtype), sum_type = type_of(sums),
                    pairs = static_cast<int>(p.pairs), Cin = p.Cin,
                    Cout = p.Cout](const Arguments&) {
    const float one = 1, zero = 0;
    // Column-major: the transposed product.
    if (of_weights) {
      check(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_T, Cout, Cin, pairs, &one, outputs.get(),
                         type, Cout, inputs.get(), type, Cin, &zero, weights.get(), sum_type, Cout,
                         compute, CUBLAS_GEMM_DEFAULT));
    } else {
      check(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, Cout, pairs, Cin, &one, weights.get(),
                         type, Cout, inputs.get(), type, Cin, &zero, outputs.get(), type, Cout,
                         compute, CUBLAS_GEMM_DEFAULT));
    }
  };
  return {{"cublas product of the pairs", run, /*limit=*/true}};
}

/// cuBLASLt's product, c' = b' a' in its columns. set() says what is special; then choose().
class LtProduct {
 public:
  /// @param type of a and b
  /// @param turned_b b is [N][K]
  LtProduct(const GemmProblem& p, cudaDataType_t type, cudaDataType_t type_of_c,
            cublasComputeType_t compute, bool turned_b)
      : alpha_(p.scale()) {
    check(cublasLtCreate(&handle_));
    check(cublasLtMatmulDescCreate(&product_, compute, CUDA_R_32F));
    if (turned_b) set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    const auto K = static_cast<std::uint64_t>(p.K), N = static_cast<std::uint64_t>(p.N),
               M = static_cast<std::uint64_t>(p.M);
    check(turned_b ? cublasLtMatrixLayoutCreate(&b_, type, K, N, p.K)
                   : cublasLtMatrixLayoutCreate(&b_, type, N, K, p.N));
    check(cublasLtMatrixLayoutCreate(&a_, type, K, M, p.K));
    check(cublasLtMatrixLayoutCreate(&c_, type_of_c, N, M, p.N));
    gpu::check(cudaMalloc(&scratch_, kBytes));
  }
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;
  ~LtProduct() {
    static_cast<void>(cudaFree(scratch_));
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    check(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value));
  }
  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference));
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kBytes, sizeof kBytes));
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, product_, b_, a_, c_, c_, preference, 1, &best_,
                                         &found));
    check(cublasLtMatmulPreferenceDestroy(preference));
    if (found == 0) throw std::runtime_error("cuBLASLt has no such product");
  }
  void run(const void* a, const void* b, void* c) const {
    const float zero = 0;
    check(cublasLtMatmul(handle_, product_, &alpha_, b, b_, a, a_, &zero, c, c_, c, c_, &best_.algo,
                         scratch_, kBytes, rung_stream()));
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{32} << 20;  ///< of scratch
  float alpha_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulHeuristicResult_t best_{};
  void* scratch_ = nullptr;
};

/// A product in 8 bits whose b runs along k already: less than the same work, for somebody has
/// turned it over. cuBLASLt has no other.
std::vector<Baseline> products_of_8_bits(const Contest& contest, const GemmProblem& p) {
  if (p.M % 16 != 0 || p.N % 16 != 0 || p.K % 16 != 0) return {};
  const auto b = contest.inputs.at("b").as<Float8>();
  std::vector<Float8> turned(b.size());
  const auto K = static_cast<std::size_t>(p.K), N = static_cast<std::size_t>(p.N);
  for (std::size_t k = 0; k < K; ++k) {
    for (std::size_t n = 0; n < N; ++n) turned[n * K + k] = b[k * N + n];
  }
  const auto turned_b = filled(static_cast<std::int64_t>(b.size()), DType::f8);
  if (!turned_b) return {};
  gpu::check(cudaMemcpy(turned_b.get(), turned.data(), turned.size(), cudaMemcpyHostToDevice));
  std::vector<Baseline> all;
  for (const bool fast : {false, true}) {
    const auto product = std::make_shared<LtProduct>(p, CUDA_R_8F_E4M3, CUDA_R_32F,
                                                     CUBLAS_COMPUTE_32F, /*turned_b=*/true);
    product->set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(fast));
    product->choose();
    all.push_back({fast ? "cublaslt of b turned, fast sums" : "cublaslt of b turned",
                   [product, turned_b](const Arguments& arrays) {
                     product->run(arrays.in<Float8>("a"), turned_b.get(), arrays.out<float>("c"));
                   },
                   /*limit=*/true});
  }
  return all;
}

/// A product with bias and ReLU. cuBLASLt's bias is of c's type: in 16 bits, that is not the same
/// work.
Baseline product_with_epilogue(const Contest& contest, const GemmProblem& p,
                               cublasComputeType_t compute) {
  const cudaDataType_t type = type_of(p.dtype);
  const Array rounded = rounded_to(contest.inputs.at("bias"), p.dtype);
  const auto bias = filled(p.N, p.dtype);
  if (!bias) throw std::runtime_error("no memory for a bias");
  gpu::check(cudaMemcpy(bias.get(), rounded.data(), rounded.size_bytes(), cudaMemcpyHostToDevice));
  const auto product = std::make_shared<LtProduct>(p, type, type, compute, /*turned_b=*/false);
  product->set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS);
  product->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.get()));
  product->choose();
  const auto run = [product, bias, dtype = p.dtype](const Arguments& arrays) {
    with_float_type(dtype, [&]<class T>(T) {
      product->run(arrays.in<T>("a"), arrays.in<T>("b"), arrays.out<T>("c"));
    });
  };
  if (p.dtype == DType::f32) return {"cublaslt", run};
  return {"cublaslt of a bias in 16 bits", run, /*limit=*/true};
}

}  // namespace

std::vector<Baseline> cublas_baselines(const Contest& contest) {
  if (const auto* sparse = std::get_if<SparseConvProblem>(&contest.problem))
    return product_of_pairs(contest, *sparse);
  const auto* gemm = std::get_if<GemmProblem>(&contest.problem);
  if (gemm == nullptr) return {};
  if (gemm->dtype == DType::f8) return products_of_8_bits(contest, *gemm);
  const auto product = [p = *gemm](cublasComputeType_t compute) {
    return [p, compute, type = type_of(p.dtype)](const Arguments& arrays) {
      with_float_type(p.dtype, [&]<class T>(T) {
        const float one = 1, zero = 0;
        // Column-major: the transposed product, c' = b' a'.
        check(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, p.N, p.M, p.K, &one,
                           arrays.in<T>("b"), type, p.N, arrays.in<T>("a"), type, p.K, &zero,
                           arrays.out<T>("c"), type, p.N, compute, CUBLAS_GEMM_DEFAULT));
      });
    };
  };
  if (gemm->bias && gemm->activation == Activation::relu) {
    const cublasComputeType_t compute =
        contest.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return {product_with_epilogue(contest, *gemm, compute),
            {"cublas of the product alone", product(compute), /*limit=*/true}};
  }
  if (gemm->dtype != DType::f32) return {{"cublas", product(CUBLAS_COMPUTE_32F)}};
  if (contest.tf32) return {{"cublas", product(CUBLAS_COMPUTE_32F_FAST_TF32)}};
  return {{"cublas", product(CUBLAS_COMPUTE_32F)},
          {"cublas pedantic", product(CUBLAS_COMPUTE_32F_PEDANTIC)}};
}

}  // namespace convladder::benchmarks

#else

namespace convladder::benchmarks {
std::vector<Baseline> cublas_baselines(const Contest&) { return {}; }
}  // namespace convladder::benchmarks

#endif
