/// @file cudnn.cu
/// @brief cuDNN's convolution and its gradients: every algorithm that takes the problem, by name.
#include "benchmarks/gpu/baselines.hpp"

#ifdef CONVLADDER_HAVE_CUDNN
#include <array>
#include <memory>

#include "benchmarks/gpu/cudnn.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {
namespace {

/// The problem as cuDNN takes it.
class Convolution {
 public:
  Convolution(const Conv2dProblem& p, bool nhwc, bool tf32) {
    const cudnnTensorFormat_t format = nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    check(cudnnCreateTensorDescriptor(&x));
    check(cudnnCreateTensorDescriptor(&y));
    check(cudnnCreateTensorDescriptor(&db));
    check(cudnnCreateFilterDescriptor(&w));
    check(cudnnCreateConvolutionDescriptor(&convolution));
    check(cudnnSetTensor4dDescriptor(x, format, CUDNN_DATA_FLOAT, p.N, p.C, p.H, p.W));
    check(cudnnSetTensor4dDescriptor(y, format, CUDNN_DATA_FLOAT, p.N, p.K, p.P, p.Q));
    check(cudnnSetTensor4dDescriptor(db, format, CUDNN_DATA_FLOAT, 1, p.K, 1, 1));
    check(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, format, p.K, p.C / p.groups, p.R, p.S));
    check(cudnnSetConvolution2dDescriptor(convolution, p.pad.top, p.pad.left, p.stride.h,
                                          p.stride.w, p.dilation.h, p.dilation.w,
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check(cudnnSetConvolutionGroupCount(convolution, p.groups));
    check(cudnnSetConvolutionMathType(convolution, tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH));
    check(cudnnCreateActivationDescriptor(&relu));
    check(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;
  ~Convolution() {
    cudnnDestroyActivationDescriptor(relu);
    cudnnDestroyConvolutionDescriptor(convolution);
    cudnnDestroyFilterDescriptor(w);
    for (auto* tensor : {x, y, db}) cudnnDestroyTensorDescriptor(tensor);
  }

  cudnnTensorDescriptor_t x = nullptr, y = nullptr, db = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnActivationDescriptor_t relu = nullptr;
};

constexpr float kOne = 1, kZero = 0;

template <class Algorithm>
struct Named {
  Algorithm algorithm;
  const char* name;
};

constexpr std::array<Named<cudnnConvolutionFwdAlgo_t>, 8> kForward = {
    {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, "implicit_gemm"},
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, "implicit_precomp"},
     {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, "gemm"},
     {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, "direct"},
     {CUDNN_CONVOLUTION_FWD_ALGO_FFT, "fft"},
     {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, "fft_tiling"},
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, "winograd"},
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, "winograd_nonfused"}}};
constexpr std::array<Named<cudnnConvolutionBwdDataAlgo_t>, 6> kInputGradient = {
    {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, "algo0"},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, "algo1"},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, "fft"},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, "fft_tiling"},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, "winograd"},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, "winograd_nonfused"}}};
constexpr std::array<Named<cudnnConvolutionBwdFilterAlgo_t>, 7> kWeightGradient = {
    {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, "algo0"},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, "algo1"},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, "fft"},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, "algo3"},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, "winograd"},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, "winograd_nonfused"},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, "fft_tiling"}}};

}  // namespace

std::function<void(const Arguments&)> with_bias_gradient(
    const Conv2dProblem& p, bool nhwc, std::function<void(const Arguments&)> weights) {
  const auto c = std::make_shared<Convolution>(p, nhwc, false);
  return [c, weights = std::move(weights)](const Arguments& arrays) {
    weights(arrays);
    check(cudnnConvolutionBackwardBias(cudnn_handle(), &kOne, c->y, arrays.in<float>("dy"), &kZero,
                                       c->db, arrays.out<float>("db")));
  };
}

std::vector<Baseline> cudnn_baselines(const Contest& contest, const Scratch& scratch) {
  const auto* p = std::get_if<Conv2dProblem>(&contest.problem);
  // cuDNN pads both sides alike. In 16 bits its graph interface has all that this one has.
  if (p == nullptr || p->dtype != DType::f32 || p->pad.top != p->pad.bottom ||
      p->pad.left != p->pad.right)
    return {};
  const auto c = std::make_shared<Convolution>(*p, contest.nhwc, contest.tf32);
  std::vector<Baseline> baselines;
  std::size_t bytes = 0;
  const auto takes = [&](cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS && bytes <= scratch.bytes;
  };
  if (contest.ladder == "conv2d") {
    for (const auto& [algorithm, name] : kForward) {
      if (!takes(cudnnGetConvolutionForwardWorkspaceSize(cudnn_handle(), c->x, c->w, c->convolution,
                                                         c->y, algorithm, &bytes))) {
        continue;
      }
      if (p->activation == Activation::relu) {
        if (!p->bias) continue;  // the fused call wants one
        baselines.push_back({text("cudnn ", name), [=](const Arguments& arrays) {
                               check(cudnnConvolutionBiasActivationForward(
                                   cudnn_handle(), &kOne, c->x, arrays.in<float>("x"), c->w,
                                   arrays.in<float>("weights"), c->convolution, algorithm,
                                   scratch.data, scratch.bytes, &kZero, c->y,
                                   arrays.out<float>("y"), c->db, arrays.in<float>("bias"), c->relu,
                                   c->y, arrays.out<float>("y")));
                             }});
        continue;
      }
      baselines.push_back(
          {text("cudnn ", name), [=](const Arguments& arrays) {
             check(cudnnConvolutionForward(cudnn_handle(), &kOne, c->x, arrays.in<float>("x"), c->w,
                                           arrays.in<float>("weights"), c->convolution, algorithm,
                                           scratch.data, scratch.bytes, &kZero, c->y,
                                           arrays.out<float>("y")));
           }});
    }
  } else if (contest.ladder == "conv2d_dgrad") {
    for (const auto& [algorithm, name] : kInputGradient) {
      if (!takes(cudnnGetConvolutionBackwardDataWorkspaceSize(
              cudnn_handle(), c->w, c->y, c->convolution, c->x, algorithm, &bytes))) {
        continue;
      }
      baselines.push_back({text("cudnn ", name), [=](const Arguments& arrays) {
                             check(cudnnConvolutionBackwardData(
                                 cudnn_handle(), &kOne, c->w, arrays.in<float>("weights"), c->y,
                                 arrays.in<float>("dy"), c->convolution, algorithm, scratch.data,
                                 scratch.bytes, &kZero, c->x, arrays.out<float>("dx")));
                           }});
    }
  } else if (contest.ladder == "conv2d_wgrad") {
    for (const auto& [algorithm, name] : kWeightGradient) {
      if (!takes(cudnnGetConvolutionBackwardFilterWorkspaceSize(
              cudnn_handle(), c->x, c->y, c->convolution, c->w, algorithm, &bytes))) {
        continue;
      }
      const auto weights = [=](const Arguments& arrays) {
        check(cudnnConvolutionBackwardFilter(cudnn_handle(), &kOne, c->x, arrays.in<float>("x"),
                                             c->y, arrays.in<float>("dy"), c->convolution,
                                             algorithm, scratch.data, scratch.bytes, &kZero, c->w,
                                             arrays.out<float>("dw")));
      };
      baselines.push_back({text("cudnn ", name), with_bias_gradient(*p, contest.nhwc, weights)});
      // Only half of the work, but what most people time.
      baselines.push_back({text("cudnn ", name, ", dw alone"), weights, true});
    }
  }
  return baselines;
}

std::string cudnn_version() {
  const std::size_t v = cudnnGetVersion();
  return text(v / 10000, ".", v / 100 % 100, ".", v % 100);
}

}  // namespace convladder::benchmarks

#else

namespace convladder::benchmarks {
std::vector<Baseline> cudnn_baselines(const Contest&, const Scratch&) { return {}; }
std::string cudnn_version() { return ""; }
}  // namespace convladder::benchmarks

#endif
