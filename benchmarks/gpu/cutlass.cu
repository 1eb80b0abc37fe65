/// @file cutlass.cu
/// @brief GEMM and convolution by CUTLASS, with some of its stock tiles: an open-source baseline.
#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"

#ifdef CONVLADDER_HAVE_CUTLASS
#include <cutlass/conv/conv2d_problem_size.h>
#include <cutlass/conv/device/implicit_gemm_convolution.h>
#include <cutlass/conv/kernel/default_conv2d_fprop.h>
#include <cutlass/gemm/device/gemm.h>

namespace convladder::benchmarks {
namespace {

using cutlass::gemm::GemmShape;
using Row = cutlass::layout::RowMajor;
using Identity = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>;

/// A product of row-major matrices in one tile.
template <class OpClass, class Block, class Warp, class Instruction, int kStages, int kPerAccess>
struct Product {
  using Epilogue = cutlass::epilogue::thread::LinearCombination<
      float, std::is_same_v<OpClass, cutlass::arch::OpClassSimt> ? 1 : 4, float, float>;
  using Gemm = cutlass::gemm::device::Gemm<float, Row, float, Row, float, Row, float, OpClass,
                                           cutlass::arch::Sm80, Block, Warp, Instruction, Epilogue,
                                           Identity, kStages, kPerAccess, kPerAccess>;

  static Baseline baseline(const std::string& name, const GemmProblem& p) {
    return {"cutlass " + name, [p](const Arguments& arrays) {
              float* c = arrays.out<float>("c");
              Gemm gemm;
              const cutlass::Status status = gemm({{p.M, p.N, p.K},
                                                   {arrays.in<float>("a"), p.K},
                                                   {arrays.in<float>("b"), p.N},
                                                   {c, p.N},
                                                   {c, p.N},
                                                   {1.0f, 0.0f}},
                                                  nullptr, rung_stream());
              if (status != cutlass::Status::kSuccess)
                throw std::runtime_error(cutlassGetStatusString(status));
            }};
  }
};

/// In fp32, on the ordinary cores.
template <class Block, class Warp, int kStages>
using Simt = Product<cutlass::arch::OpClassSimt, Block, Warp, GemmShape<1, 1, 1>, kStages, 1>;
/// On the tensor cores, by the instruction that every GPU since Ampere has.
template <class Block, class Warp, int kStages>
using Tf32 = Product<cutlass::arch::OpClassTensorOp, Block, Warp, GemmShape<16, 8, 8>, kStages, 4>;

/// A forward convolution in NHWC as an implicit product, in one tile.
template <class OpClass, class Block, class Warp, class Instruction, int kStages>
struct Convolution {
  using Nhwc = cutlass::layout::TensorNHWC;
  using Epilogue = cutlass::epilogue::thread::LinearCombination<
      float, std::is_same_v<OpClass, cutlass::arch::OpClassSimt> ? 1 : 4, float, float>;
  using Kernel = typename cutlass::conv::kernel::DefaultConv2dFprop<
      float, Nhwc, float, Nhwc, float, Nhwc, float, OpClass, cutlass::arch::Sm80, Block, Warp,
      Instruction, Epilogue, cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<4>, kStages,
      cutlass::arch::OpMultiplyAdd, cutlass::conv::IteratorAlgorithm::kOptimized>::Kernel;
  using Implicit = cutlass::conv::device::ImplicitGemmConvolution<Kernel>;

  static Baseline baseline(const std::string& name, const Conv2dProblem& p) {
    return {"cutlass " + name, [p](const Arguments& arrays) {
              const cutlass::conv::Conv2dProblemSize size(
                  p.N, p.H, p.W, p.C, p.K, p.R, p.S, p.P, p.Q, p.pad.top, p.pad.left, p.stride.h,
                  p.stride.w, p.dilation.h, p.dilation.w, cutlass::conv::Mode::kCrossCorrelation);
              // It takes inputs as if it would write them.
              auto* x = const_cast<float*>(arrays.in<float>("x"));
              auto* weights = const_cast<float*>(arrays.in<float>("weights"));
              float* y = arrays.out<float>("y");
              const Nhwc of_y = Nhwc::packed({p.N, p.P, p.Q, p.K});
              Implicit convolution;
              const cutlass::Status status =
                  convolution({size,
                               {x, Nhwc::packed({p.N, p.H, p.W, p.C})},
                               {weights, Nhwc::packed({p.K, p.R, p.S, p.C})},
                               {y, of_y},
                               {y, of_y},
                               {1.0f, 0.0f}},
                              nullptr, rung_stream());
              if (status != cutlass::Status::kSuccess)
                throw std::runtime_error(cutlassGetStatusString(status));
            }};
  }
};

std::vector<Baseline> convolutions(const Contest& contest, const Conv2dProblem& p) {
  if (contest.ladder != "conv2d" || !contest.nhwc || p.groups != 1 || p.bias ||
      p.activation != Activation::none || p.pad.top != p.pad.bottom || p.pad.left != p.pad.right) {
    return {};
  }
  if (!contest.tf32) {
    using Block = GemmShape<128, 128, 8>;
    using Warp = GemmShape<32, 64, 8>;
    return {Convolution<cutlass::arch::OpClassSimt, Block, Warp, GemmShape<1, 1, 1>, 4>::baseline(
        "128x128x8", p)};
  }
  if (p.C % 4 != 0 || p.K % 4 != 0) return {};
  using Instruction = GemmShape<16, 8, 8>;
  using Tensor = cutlass::arch::OpClassTensorOp;
  return {
      Convolution<Tensor, GemmShape<128, 128, 16>, GemmShape<64, 64, 16>, Instruction, 4>::baseline(
          "128x128x16", p),
      Convolution<Tensor, GemmShape<128, 64, 16>, GemmShape<64, 32, 16>, Instruction, 4>::baseline(
          "128x64x16", p)};
}

}  // namespace

std::vector<Baseline> cutlass_baselines(const Contest& contest) {
  if (dtype_of(contest.problem) != DType::f32) return {};
  if (const auto* conv = std::get_if<Conv2dProblem>(&contest.problem))
    return convolutions(contest, *conv);
  const auto* p = std::get_if<GemmProblem>(&contest.problem);
  if (p == nullptr || p->bias || p->activation != Activation::none) return {};
  if (contest.tf32) {
    if (p->N % 4 != 0 || p->K % 4 != 0) return {};
    return {Tf32<GemmShape<128, 128, 32>, GemmShape<64, 64, 32>, 3>::baseline("128x128x32", *p),
            Tf32<GemmShape<256, 128, 16>, GemmShape<64, 64, 16>, 3>::baseline("256x128x16", *p)};
  }
  return {Simt<GemmShape<128, 128, 8>, GemmShape<32, 64, 8>, 4>::baseline("128x128x8", *p),
          Simt<GemmShape<256, 128, 8>, GemmShape<64, 64, 8>, 4>::baseline("256x128x8", *p),
          Simt<GemmShape<128, 64, 8>, GemmShape<64, 32, 8>, 5>::baseline("128x64x8", *p)};
}

}  // namespace convladder::benchmarks

#else

namespace convladder::benchmarks {
std::vector<Baseline> cutlass_baselines(const Contest&) { return {}; }
}  // namespace convladder::benchmarks

#endif
