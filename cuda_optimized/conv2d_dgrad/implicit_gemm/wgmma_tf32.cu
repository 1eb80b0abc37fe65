/// @file wgmma_tf32.cu
/// @brief conv2d_dgrad with wgmma: a forward pass over dy for each residue of the stride.
///
/// - Before: mma.cu
/// - After: warp_specialized.cu
/// - The same maths: cpu_reference/conv2d_dgrad/direct.cpp
///
/// **The idea.** dx[h] gets a product from tap r if h = p * stride - pad + r * dilation for some p.
/// With stride 1 every tap reaches every pixel: a forward pass over dy with the taps in reverse
/// order. With a stride, which taps reach h depends on its residue alone; so the pixels of one
/// residue are a forward pass of their own, with stride 1 and some of the taps:
///
///     stride 2, 3 taps, pad 1   h  0   1   2   3   4   5
///     even h: tap 1 alone          1       1       1        dx[2i]     = w1 dy[i]
///     odd h:  taps 0 and 2            0 2     0 2     0 2   dx[2i + 1] = w2 dy[i] + w0 dy[i + 1]
///
/// No product is by a zero that the stride put in, and no two blocks add to the same pixel. The
/// kernel is that of \ref rung_cuda_optimized_conv2d_implicit_gemm_wgmma_tf32 "the forward pass"; a
/// small one first copies the weights of each residue as [c][taps][k].
///
/// **Expect.** The forward pass's times, and 3 to 8 us for the weights: B4 45 us, B10 590 us. The
/// limits are the forward pass's, too: shared memory for B4 and B9, the tensor cores for B10,
/// memory for B5 and B8, and few tiles for B6 and B7.
/// @expect on --n 1 --c 32 --h 16 --w 16 --k 64 --r 3 --s 3 --pad 1 --layout nhwc --dtype tf32
/// @expect requests.shared.async 2 * 18 * 2 = 72, two tiles, 18 steps, two boxes
/// @expect lanes_per_request.shared.async 1, one thread asks for a box
/// @expect loads_per_output.weights 9 * 64 * 32 / 8192 = 2.25, transposed once
/// @expect loads_per_output.global 2.25, nothing else is loaded by threads
/// **Costs.** As the forward pass; two launches for each pair of residues that has taps. Pixels
/// that no tap reaches (B8: three of four) are zeroed by a memset of all of dx. Declined: fp32
/// problems, filters of over 1024 taps, and GPUs other than compute capability 9.0.
/// **Try.** For stride 3, dilation 2 and 4 taps, write down the taps of each residue. When do all
/// residues have the same number of taps?
#include <type_traits>

#include "core/conv2d_gradients.hpp"
#include "core/cuda/device_attribute.hpp"
#include "core/cuda/ptx.hpp"
#include "core/cuda/workspace_cutter.hpp"
#include "core/implementation.hpp"
#include "core/text.hpp"
#include "cuda_optimized/conv2d/shared/implicit_gemm/sum_splits.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/wgmma_windows.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_packing.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_pixels.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_plan.cuh"
#include "cuda_optimized/conv2d/shared/wgmma/window_sources.cuh"
#include "cuda_optimized/conv2d_dgrad/shared/window_classes.cuh"
#include "cuda_optimized/tile_map/tile_map.cuh"

namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad {
namespace {

using conv2d::kWgmmaStep;
using conv2d::Large;
using conv2d::Medium;
using conv2d::Narrow;
using conv2d::Pixels;
using conv2d::Tall;
using conv2d::WgmmaItem;
using conv2d::WgmmaWork;
using conv2d::WindowArrays;
using conv2d::WindowPlan;

/// Sums over windows: one warp, the producer, brings the steps' pixels and filters from `source`;
/// the others, two warpgroups of consumers, multiply them and store the sums in `result`. Source:
/// Im2colSource or GatheredSource. Grid: <= places.count; block gemm::kWgmmaThreads.
template <class Shape, class Source, Layout kLayout>
__global__ void __launch_bounds__(gemm::kWgmmaThreads, Shape::kBlocks)
    conv2d_dgrad_implicit_gemm_wgmma_tf32(const __grid_constant__ Source source, WgmmaWork work,
                                          gemm::WgmmaPlaces places, Pixels<Shape, kLayout> result) {
  // full: the stage has arrived; empty: all eight consumer warps have read it.
  __shared__ std::uint64_t full[Shape::kStages], empty[Shape::kStages];
  char* stages = dynamic_shared<char>();
  stages += (gemm::kAtom - ptx::shared_address(stages) % gemm::kAtom) % gemm::kAtom;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  if (thread == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], gemm::kConsumerThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // separates the initialisation from all use of the barriers

  int stage = 0;
  unsigned round = 0;  // of the ring of stages, modulo 2
  if (thread >= gemm::kConsumerThreads) {
    // The producer. It runs ahead of the consumers by as many stages as there are, also into the
    // next tile, while they store the last one.
    if (lane != 0 && !Source::kWholeWarp) return;
    for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
      WgmmaItem item;
      if (!gemm::item_at(work, places, index, &item)) continue;
      auto cursor = source.at(item);
      for (int step = item.first; step < item.last; ++step) {
        // Until the consumers have read what the stage held a round ago; at once in round 0.
        ptx::mbarrier_wait(&empty[stage], round ^ 1);
        char* a = stages + stage * Shape::kStageBytes;
        source.load(cursor, reinterpret_cast<float*>(a),
                    reinterpret_cast<float*>(a + Shape::kBytesA), &full[stage]);
        source.advance(cursor);
        if (++stage == Shape::kStages) {
          stage = 0;
          round ^= 1;
        }
      }
    }
    return;
  }

  const int consumer = thread / 128, warp = thread % 128 / 32;
  constexpr int kRows = Shape::M / gemm::kConsumers;  // of a consumer
  for (std::int64_t index = blockIdx.x; index < places.count; index += gridDim.x) {
    WgmmaItem item;
    if (!gemm::item_at(work, places, index, &item)) continue;
    float sums[Shape::kRowTiles][Shape::N / 2];
#pragma unroll
    for (int i = 0; i < Shape::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[i][j] = 0.0f;
    }
    int last_stage = -1;
    for (int step = item.first; step < item.last; ++step) {
      ptx::mbarrier_wait(&full[stage], round);
      const char* a = stages + stage * Shape::kStageBytes;
      const std::uint64_t a_at = ptx::wgmma_descriptor(a + consumer * kRows * kWgmmaStep * 4);
      const std::uint64_t b_at = ptx::wgmma_descriptor(a + Shape::kBytesA);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < kWgmmaStep; k += 8) {
#pragma unroll
        for (int i = 0; i < Shape::kRowTiles; ++i) {
          // Descriptors count in units of 16 bytes.
          ptx::wgmma_m64k8_tf32<Shape::N>(sums[i], a_at + (i * 64 * kWgmmaStep + k) / 4,
                                          b_at + k / 4, true);
        }
      }
      ptx::wgmma_commit_group();
      // All but this step's products are done: the stage before may be overwritten.
      ptx::wgmma_wait_group<1>();
      if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);
      last_stage = stage;
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    ptx::wgmma_wait_group<0>();
    if (last_stage >= 0 && lane == 0) ptx::mbarrier_arrive(&empty[last_stage]);

    result.store_tile(item, consumer * kRows + warp * 16 + lane / 4, sums);
  }
}

Declined supports(const Conv2dProblem& conv) {
  if (conv.dtype != DType::f32) return "float32 only";
  if (conv.precision == Precision::fp32) {
    return "rounds its factors to TF32, and the problem asks for fp32";
  }
  if (const Declined why = conv2d::why_no_windows(conv)) return why;
  return gemm::why_no_wgmma();
}

/// The workspace, front to back.
struct Workspace {
  float *weights, *dy;  ///< Packed.
  float* parts;         ///< Of sums.
  std::size_t bytes;    ///< Of all.
};

/// @param begin  the workspace, or null to learn its size
Workspace workspace_at(const ClassesPlan& plan, std::byte* begin) {
  Workspace work{};
  WorkspaceCutter cutter(begin);
  work.weights = cutter.take<float>(plan.weights);
  work.dy = cutter.take<float>(plan.dy);
  work.parts = cutter.take<float>(plan.parts);
  work.bytes = cutter.bytes();
  return work;
}

std::size_t workspace_bytes(const Conv2dProblem& conv) {
  return workspace_at(plan_of(conv), nullptr).bytes;
}

/// As many blocks as run at the same time, if there is so much work: each takes one item after the
/// other.
template <class Shape, Layout kLayout, class Source>
void launch_product(const Source& source, const WgmmaWork& work,
                    const Pixels<Shape, kLayout>& result) {
  const std::int64_t resident = std::int64_t{multiprocessors()} * Shape::kBlocks;
  const gemm::WgmmaPlaces places(work);
  launch(
      conv2d_dgrad_implicit_gemm_wgmma_tf32<Shape, Source, kLayout>,
      {dim3(blocks_for(places.count, 1, resident)), dim3(gemm::kWgmmaThreads), Shape::kSharedBytes},
      source, work, places, result);
}

/// Computes out, of kLayout, with tiles of Shape and sums in `splits` parts; with Narrow ones where
/// TMA cannot read the arrays. Returns without waiting.
template <class Shape, Layout kLayout>
void launch_with(const Windows& windows, int splits, const WindowArrays& arrays) {
  const WgmmaWork work = conv2d::work_of<Shape>(windows, splits);
  const auto result = conv2d::pixels_of<Shape, kLayout>(windows, splits, arrays);
  if (by_the_copy_engine(windows, arrays)) {
    launch_product(conv2d::im2col_source<Shape>(windows, arrays.source, arrays.weights), work,
                   result);
  } else if constexpr (std::is_same_v<Shape, Narrow>) {
    launch_product(conv2d::gathered_source<Shape>(windows, arrays), work, result);
  } else {
    launch_with<Narrow, kLayout>(windows, splits, arrays);
    return;  // parts are added up there
  }
  if (splits > 1) {
    conv2d::launch_sum_splits(arrays.parts, splits, windows.out_size(), nullptr, windows.plane(),
                              windows.K, Activation::none, arrays.out);
  }
}

/// Computes out; returns without waiting.
void launch_windows(const Windows& windows, const WindowArrays& arrays) {
  if (windows.pixels() == 0) return;
  const auto [shape, splits] = plan_of(windows);
  const auto with = [&]<class Shape>(Shape) {
    if (windows.layout == Layout::nchw) {
      launch_with<Shape, Layout::nchw>(windows, splits, arrays);
    } else {
      launch_with<Shape, Layout::nhwc>(windows, splits, arrays);
    }
  };
  switch (shape) {
    case WindowPlan::narrow: with(Narrow{}); break;
    case WindowPlan::tall: with(Tall{}); break;
    case WindowPlan::medium: with(Medium{}); break;
    case WindowPlan::large: with(Large{}); break;
  }
}

void run(const Conv2dProblem& conv, const Conv2dDgradArrays& arrays, const Context& context) {
  const ClassesPlan plan = plan_of(conv);
  const std::int64_t size = std::int64_t{conv.N} * conv.C * conv.H * conv.W;
  if (size == 0) return;
  const int group_k = conv.K / conv.groups;
  const float *dy = arrays.dy, *weights = arrays.weights;
  float* dx = arrays.dx;
  const Workspace work = workspace_at(plan, context.workspace_as<std::byte>());
  if (!plan.all_pixels) {
    check(cudaMemsetAsync(dx, 0, static_cast<std::size_t>(size) * sizeof(float), current_stream()));
  }
  if (plan.packs) conv2d::pack_source(plan.classes.front().windows, dy, work.dy);
  for (const WindowClass& part : plan.classes) {
    Windows windows = part.windows;
    // If dy is read as it is, the weights have its number of channels; if it is copied, both are
    // padded.
    const int padded = plan.packs ? conv2d::padded_channels(group_k) : group_k;
    windows.group_c = padded;
    pack_weights(conv, part, padded, weights, work.weights + part.weights);
    launch_windows(windows, {.source = plan.packs ? work.dy : dy,
                             .weights = work.weights + part.weights,
                             .bias = nullptr,
                             .source_layout = plan.packs ? Layout::nhwc : conv.layout,
                             .weights_layout = Layout::nhwc,
                             .out = dx,
                             .parts = work.parts});
  }
}

std::string choice_in_words(const Conv2dProblem& conv) {
  const ClassesPlan plan = plan_of(conv);
  if (plan.classes.empty()) return "zeros";
  std::string first;
  bool all_alike = true;
  for (const WindowClass& part : plan.classes) {
    Windows windows = part.windows;
    if (plan.packs) windows.group_c = conv2d::padded_channels(windows.group_c);
    const std::string words =
        in_words(windows, plan.packs ? Layout::nhwc : conv.layout, Layout::nhwc);
    if (first.empty()) first = words;
    all_alike = all_alike && words == first;
  }
  return text(plan.packs ? "repacked, " : "", first, all_alike ? "" : ", classes differ",
              plan.classes.size() == 1 ? ", one class" : ", several classes",
              plan.all_pixels ? "" : ", zeros between them");
}

}  // namespace

extern const Implementation<Conv2dDgradArrays> implicit_gemm_wgmma_tf32 = {
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .run = run,
    .choice = choice_in_words,
};

}  // namespace convladder::BACKEND::cuda_optimized::conv2d_dgrad
