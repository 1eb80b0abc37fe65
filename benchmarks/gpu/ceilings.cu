#include <algorithm>
#include <vector>

#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/contest.hpp"
#include "benchmarks/gpu/device_objects.hpp"
#include "benchmarks/gpu/graph.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "benchmarks/gpu/quantile.hpp"
#include "core/cuda/launch.hpp"
#include "core/float8.hpp"

namespace convladder::benchmarks {
namespace {

/// The best of some runs of a graph of several launches, in microseconds a launch.
double best_us(int launches, const std::function<void()>& run) {
  const Graph graph([&] {
    for (int i = 0; i < launches; ++i) run();
  });
  const Event start, stop;
  std::vector<double> times;
  for (int i = 0; i < 8; ++i) {
    graph.launch();
    start.record();
    graph.launch();
    stop.record();
    wait();
    times.push_back(stop.since(start) / launches);
  }
  std::sort(times.begin(), times.end());
  return quantile(times, 0.5);
}

}  // namespace

Ceilings measure_ceilings() {
  Ceilings ceilings;
  const auto copy_tb_s = [](std::int64_t bytes) {
    const Buffer from(static_cast<std::size_t>(bytes / 2)), to(static_cast<std::size_t>(bytes / 2));
    return static_cast<double>(bytes) * 1e-6 /
           best_us(10, [&] { launch_copy(to.data(), from.data(), bytes / 2); });
  };
  ceilings.copy_tb_s = copy_tb_s(400'000'000);
  ceilings.copy_l2_tb_s = copy_tb_s(25'000'000 / 32 * 32);
  const Buffer unused(256);
  double operations = 0;
  const double fma_us =
      best_us(5, [&] { operations = launch_fma(static_cast<float*>(unused.data())); });
  ceilings.fma_tflops = operations * 1e-6 / fma_us;

  Contest cube;
  cube.tf32 = true;
  const GemmProblem problem{.M = 8192, .N = 8192, .K = 8192};
  cube.problem = problem;
  const std::vector<Baseline> cublas = cublas_baselines(cube);
  if (!cublas.empty()) {
    const std::size_t bytes = std::size_t{8192} * 8192 * 4;
    const Buffer a(bytes), b(bytes), c(bytes);
    for (const Buffer* array : {&a, &b})
      gpu::check(cudaMemset(array->data(), 0x3c, bytes));  // 0x3c3c3c3c is 0.0115
    const Arguments arrays({{"a", DType::f32, a.data()}, {"b", DType::f32, b.data()}},
                           {{"c", DType::f32, c.data()}}, {}, {});
    cublas.front().run(arrays);
    wait();
    constexpr double kOperations = 2.0 * 8192 * 8192 * 8192;
    ceilings.tf32_tflops = kOperations * 1e-6 / best_us(2, [&] { cublas.front().run(arrays); });
    // As the product of a sparse convolution's pairs, on arrays of its own.
    Contest halves;
    halves.ladder = "sparse_conv";
    halves.problem =
        SparseConvProblem{.Cin = 8192, .Cout = 8192, .pairs = 8192, .dtype = DType::f16};
    const std::vector<Baseline> product = cublas_baselines(halves);
    product.front().run(arrays);
    wait();
    ceilings.fp16_tflops = kOperations * 1e-6 / best_us(2, [&] { product.front().run(arrays); });
    Contest eights;
    GemmProblem of_8_bits = problem;
    of_8_bits.dtype = DType::f8;
    eights.problem = of_8_bits;
    Array numbers(DType::f8, {8192, 8192});
    std::ranges::fill(numbers.as<Float8>(), Float8{0x3c});  // 1.5, as in a
    eights.inputs.emplace("b", std::move(numbers));
    const std::vector<Baseline> of_turned = cublas_baselines(eights);
    const Arguments bytes_of({{"a", DType::f8, a.data()}}, {{"c", DType::f32, c.data()}}, {}, {});
    of_turned.front().run(bytes_of);
    wait();
    ceilings.fp8_tflops = kOperations * 1e-6 / best_us(2, [&] { of_turned.front().run(bytes_of); });
  }
  return ceilings;
}

}  // namespace convladder::benchmarks
