/// @file cublas.cu
/// @brief cuBLAS's matrix product.
#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"

#ifdef CONVLADDER_HAVE_CUBLAS
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

}  // namespace

std::vector<Baseline> cublas_baselines(const Contest& contest) {
  const auto* gemm = std::get_if<GemmProblem>(&contest.problem);
  if (gemm == nullptr) return {};
  const auto product = [p = *gemm](cublasComputeType_t type) {
    return [p, type](const Arguments& arrays) {
      const float one = 1, zero = 0;
      // Column-major: the transposed product, c' = b' a'.
      check(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, p.N, p.M, p.K, &one,
                         arrays.in<float>("b"), CUDA_R_32F, p.N, arrays.in<float>("a"), CUDA_R_32F,
                         p.K, &zero, arrays.out<float>("c"), CUDA_R_32F, p.N, type,
                         CUBLAS_GEMM_DEFAULT));
    };
  };
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
