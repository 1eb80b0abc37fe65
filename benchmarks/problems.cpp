#include "benchmarks/problems.hpp"

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
      {"B5", make(32, 64, 56, 56, 256, 1, 1, 0, 1), "1x1: a matrix product, bound by memory"},
      {"B6", make(32, 256, 14, 14, 256, 3, 3, 1, 1), "98 tiles of 128 x 128 for 132 SMs"},
      {"B7", make(32, 512, 7, 7, 512, 3, 3, 1, 1), "52 tiles and long sums: split-k"},
      {"B8", make(32, 256, 56, 56, 512, 1, 1, 0, 2), "1x1 with stride 2: a strided gather"},
      {"B9", make(16, 64, 224, 224, 64, 3, 3, 1, 1), "VGG's second layer: columns of 1.85 GB"},
      {"B10", make(64, 512, 28, 28, 512, 3, 3, 1, 1), "VGG's 4_2: as much arithmetic as it gets"},
      {"B11", make(16, 1, 161, 700, 32, 5, 20, 0, 2), "DeepSpeech: one channel, a wide filter"},
      {"B12", make(32, 512, 14, 14, 512, 3, 3, 1, 1, 512), "MobileNet's depthwise layer"},
      {"B15", make(256, 64, 56, 56, 512, 1, 1, 0, 1), "1x1 with a tall output: the order of tiles"},
  };
}

/// The same layer as a network has it: with bias and ReLU.
BenchmarkProblem with_bias_and_relu(const NamedConvolution& layer) {
  Conv2dProblem problem = layer.problem;
  problem.bias = true;
  problem.activation = Activation::relu;
  return {"conv2d", text(layer.id, "-relu"), "with bias and ReLU: fused, or a pass over y",
          validated(problem)};
}

std::vector<BenchmarkProblem> make_problems() {
  std::vector<BenchmarkProblem> all;
  const std::vector<NamedConvolution> named = convolutions();
  for (const char* ladder : {"conv2d", "conv2d_dgrad", "conv2d_wgrad"}) {
    for (const auto& [id, problem, teaches] : named) {
      // B15 is about its large output.
      if (std::string(id) == "B15" && std::string(ladder) != "conv2d") continue;
      all.push_back({ladder, id, teaches, problem});
      if (std::string(id) == "B4" && std::string(ladder) == "conv2d")
        all.push_back(with_bias_and_relu({id, problem, teaches}));
    }
  }
  for (const char* ladder : {"im2col", "col2im"}) {
    for (const auto& [id, problem, teaches] : named) {
      const std::string name = id;
      if (name == "B3" || name == "B4" || name == "B9" || name == "B10")
        all.push_back({ladder, id, teaches, columns_of(problem)});
    }
  }
  for (const int size : {1024, 2048, 4096, 8192}) {
    all.push_back({"gemm", text("cube-", size), "square matrices",
                   validated(GemmProblem{.M = size, .N = size, .K = size})});
  }
  // B15 as a product: c is 1.6 GB, so that the order of its tiles decides how often a is read.
  for (const TileMap map : {TileMap::row_major, TileMap::identity1, TileMap::identity8,
                            TileMap::grouped, TileMap::hilbert}) {
    all.push_back({"gemm", text("tall-", name_of(map)), "a tall product under a tile map",
                   validated(GemmProblem{.M = 256 * 56 * 56, .N = 512, .K = 64, .map = map})});
  }
  return all;
}

}  // namespace

const std::vector<BenchmarkProblem>& benchmark_problems() {
  static const std::vector<BenchmarkProblem> all = make_problems();
  return all;
}

double operations(const Problem& problem) {
  if (const auto* p = std::get_if<Conv2dProblem>(&problem)) {
    const int channels = p->C / p->groups;
    return 2.0 * p->N * p->K * p->P * p->Q * channels * p->R * p->S;
  }
  if (const auto* p = std::get_if<GemmProblem>(&problem)) return 2.0 * p->M * p->N * p->K;
  return 0;
}

}  // namespace convladder::benchmarks
