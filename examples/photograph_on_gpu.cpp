/// @file photograph_on_gpu.cpp
/// @brief Sharpens a photograph: the same convolution by a CUDA rung, in a stream of its own. PLACE
/// is the namespace of the rungs: gpu, or emulated, where cuda_runtime.h is that of cuda_on_cpu.
#include <cuda_runtime.h>

#include <cstdio>
#include <exception>

#include "sharpening.hpp"

/// A copy of the floats on the device.
float* on_device(const std::vector<float>& floats, cudaStream_t stream) {
  float* memory = nullptr;
  const std::size_t bytes = floats.size() * sizeof(float);
  if (cudaMallocAsync(&memory, bytes, stream) != cudaSuccess) throw std::bad_alloc();
  cudaMemcpyAsync(memory, floats.data(), bytes, cudaMemcpyHostToDevice, stream);
  return memory;
}

int main(int count, char** words) try {
  if (count != 3) return std::puts("photograph_on_gpu FROM.png TO.png"), 2;
  Photograph picture = read_png(words[1]);
  const convladder::Conv2dProblem problem = sharpening(picture);
  const std::vector<float> weights = sharpening_weights();

  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  float* const x = on_device(picture.planes, stream);
  float* const y = on_device(picture.planes, stream);
  convladder::PLACE::cuda_optimized::conv2d::depthwise_nchw(
      problem, {.x = x, .weights = on_device(weights, stream), .y = y}, {.stream = stream});
  cudaMemcpyAsync(picture.planes.data(), y, picture.planes.size() * sizeof(float),
                  cudaMemcpyDeviceToHost, stream);
  if (const cudaError_t error = cudaStreamSynchronize(stream); error != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(error));
  write_png(words[2], picture);
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
