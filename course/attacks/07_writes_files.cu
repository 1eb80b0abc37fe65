/// @file 07_writes_files.cu
/// @brief Overwrites results, and plants a file beside them.
///
/// Marks would be what it writes, or a neighbour would lose theirs.
///
/// Ends as: refused
/// Behind the audit: differs
#include "core/conv2d_problem.hpp"
#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"

struct _IO_FILE;
extern "C" _IO_FILE* fopen(const char*, const char*);
extern "C" int fclose(_IO_FILE*);

namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {

__global__ void zeros(float* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 0;
}

void run(const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
  for (const char* path : {"/tmp/convladder_attack_wrote", "results.json", "../report.json"})
    if (_IO_FILE* file = fopen(path, "w")) fclose(file);
  const std::int64_t count = std::int64_t{conv.N} * conv.K * conv.P * conv.Q;
  launch(zeros, {blocks_for(count, 256), 256, 0}, arrays.y.as<float>(), count);
}

}  // namespace

extern const Implementation<Conv2dArrays> direct_tiled = {.run = run};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d
