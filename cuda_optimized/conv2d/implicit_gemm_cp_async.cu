#include "cuda_optimized/conv2d/implicit_gemm_pipeline.cuh"
namespace convladder::BACKEND::cuda_optimized::conv2d {
namespace {
using T = PipelineTile<16, 32, 8, 4, 4, 4, 3, 1>;
std::size_t workspace_bytes(const Conv2dProblem& conv) { return packed_floats<T>(planned<T>(forward_product(conv))) * 4 + 16; }
void run(const Conv2dProblem& conv, const Arguments& a) {
  const GatheredProduct product = planned<T>(forward_product(conv));
  float* packed = aligned<float>(a.workspace<void>());
  launch_pack<T>(product, forward_view(conv), a.in<float>("weights"), packed);
  float* y = a.out<float>("y");
  launch_gathered<T>(product, 1, StoreImages{y, a.in_or_null<float>("bias"), product.image_pixels() % 4 == 0 && reinterpret_cast<std::uintptr_t>(y) % 16 == 0}, a.in<float>("x"), packed);
}
}
Implementation<Conv2dProblem> implicit_gemm_cp_async() { return {.supports = why_no_product, .workspace_bytes = workspace_bytes, .run = run}; }
}
