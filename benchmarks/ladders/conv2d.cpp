#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {
namespace {

struct NamedConvolution {
  const char* id;
  Conv2dProblem problem;
  const char* teaches;
};

/// The convolutions: extremes of arithmetic, traffic and parallelism, most from well-known
/// networks.
std::vector<NamedConvolution> convolutions() {
  const auto make = [](int N, int C, int H, int W, int K, int R, int S, int pad, int stride,
                       int groups = 1) {
    return validated(Conv2dProblem{.N = N,
                                   .C = C,
                                   .H = H,
                                   .W = W,
                                   .K = K,
                                   .R = R,
                                   .S = S,
                                   .pad = {pad, pad, pad, pad},
                                   .stride = {stride, stride},
                                   .groups = groups});
  };
  return {
      {"B1", make(1, 6, 768, 512, 6, 6, 6, 0, 1), "few channels: direct convolution's own ground"},
      {"B2", make(1, 3, 1920, 2400, 3, 3, 3, 0, 1), "a photograph: nothing but bandwidth"},
      {"B3", make(32, 3, 224, 224, 64, 7, 7, 3, 2), "ResNet's first layer: three channels"},
      {"B4", make(32, 64, 56, 56, 64, 3, 3, 1, 1), "ResNet's 3x3: the everyday layer"},
      {"B5", make(32, 64, 56, 56, 256, 1, 1, 0, 1), "1x1: a GEMM, bound by memory bandwidth"},
      {"B6", make(32, 256, 14, 14, 256, 3, 3, 1, 1), "98 tiles of 128 x 128 for 132 SMs"},
      {"B7", make(32, 512, 7, 7, 512, 3, 3, 1, 1), "52 tiles and long sums: split-k"},
      {"B8", make(32, 256, 56, 56, 512, 1, 1, 0, 2), "1x1 with stride 2: a strided gather"},
      {"B9", make(16, 64, 224, 224, 64, 3, 3, 1, 1), "VGG's second layer: columns of 1.85 GB"},
      {"B10", make(64, 512, 28, 28, 512, 3, 3, 1, 1), "VGG's 4_2: as much arithmetic as it gets"},
      {"B11", make(16, 1, 161, 700, 32, 5, 20, 0, 2), "DeepSpeech: one channel, a wide filter"},
      {"B12", make(32, 512, 14, 14, 512, 3, 3, 1, 1, 512), "MobileNet's depthwise layer"},
      {"B15", make(256, 64, 56, 56, 512, 1, 1, 0, 1), "1x1 with a tall output: the order of tiles"},
      {"B16", make(64, 384, 32, 32, 384, 31, 31, 15, 1, 384),
       "RepLKNet's depthwise 31x31: where transforms pay"},
      {"B17", make(32, 64, 56, 56, 64, 5, 5, 2, 1), "5x5, many channels: transforms once more"},
  };
}

/// The same layer as a network has it: with bias and ReLU.
BenchmarkProblem with_bias_and_relu(const NamedConvolution& layer) {
  Conv2dProblem problem = layer.problem;
  problem.bias = true;
  problem.activation = Activation::relu;
  return {"conv2d",
          text(layer.id, "-relu"),
          "with bias and ReLU: fused, or a pass over y",
          validated(problem),
          "",
          false};
}

}  // namespace

BenchmarkProblems conv2d_problems() {
  BenchmarkProblems all;
  for (const std::string ladder : {"conv2d", "conv2d_dgrad", "conv2d_wgrad"}) {
    for (const NamedConvolution& layer : convolutions()) {
      const std::string id = layer.id;
      // B15 is about its large output, the other two about rungs that conv2d alone has.
      const bool spectra = id == "B16" || id == "B17";
      if ((id == "B15" || spectra) && ladder != "conv2d") continue;
      // Problems with rungs for fp16 and bf16: many channels, or few channels in the forward pass.
      // One small and one large layer show that the two types take the same time.
      const int channels = layer.problem.C / layer.problem.groups;
      const bool many = channels >= 64;
      const bool few = layer.problem.groups == 1 && channels <= 6 && ladder == "conv2d";
      const bool both = many && (id == "B4" || id == "B10");
      all.push_back({.ladder = ladder,
                     .id = id,
                     .teaches = layer.teaches,
                     .problem = layer.problem,
                     .bf16 = (many || few || id == "B12") && !spectra,
                     .fp16 = both,
                     .plain = spectra});
      if (id == "B4" && ladder == "conv2d") all.push_back(with_bias_and_relu(layer));
    }
  }
  return all;
}

BenchmarkProblems column_problems() {
  BenchmarkProblems all;
  for (const char* ladder : {"im2col", "col2im"}) {
    for (const NamedConvolution& layer : convolutions()) {
      const std::string id = layer.id;
      if (id == "B3" || id == "B4" || id == "B9" || id == "B10")
        all.push_back({ladder, id, layer.teaches, columns_of(layer.problem)});
    }
  }
  return all;
}

}  // namespace convladder::benchmarks
