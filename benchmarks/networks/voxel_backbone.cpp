#include "benchmarks/networks/voxel_backbone.hpp"

#include "core/text.hpp"
#include "ladders/ladders.hpp"

namespace convladder::benchmarks {
namespace {

const Rung& rung_named(const std::string& of_ladder, const std::string& name) {
  for (const Rung& rung : ladder(of_ladder).rungs)
    if (rung.name == name) return rung;
  throw std::logic_error("no rung of that name: " + name);
}

void* const_less(const void* data) { return const_cast<void*>(data); }

const GradientSteps& gradient_steps_of(Where where) {
#ifdef CONVLADDER_HAVE_NVCC
  if (where == Where::gpu) return gpu::gradient_steps;
#endif
  if (where == Where::emulated) return emulated::gradient_steps;
  throw std::logic_error("no gradient steps were built for this device");
}

}  // namespace

BackboneRungs newest_backbone_rungs() {
  return {&rung_named("rulebook", "cuda_optimized/rulebook/submanifold/cooperative_launch"),
          &rung_named("rulebook", "cuda_optimized/rulebook/submanifold/brick_lists"),
          &rung_named("rulebook", "cuda_optimized/rulebook/strided/gather"),
          &rung_named("sparse_conv", "cuda_optimized/sparse_conv/implicit_gemm_direct_fragments"),
          &rung_named("sparse_conv", "cuda_optimized/sparse_conv/implicit_gemm_fused_sort"),
          &rung_named("sparse_dgrad", "cuda_optimized/sparse_dgrad/implicit_gemm_fused_sort"),
          &rung_named("sparse_wgrad", "cuda_optimized/sparse_wgrad/split_k_wgmma")};
}

RepeatedBlocks::~RepeatedBlocks() {
  for (const Block& block : blocks_) device_.release(block.memory);
}

void* RepeatedBlocks::next(std::size_t bytes) {
  if (used_ == blocks_.size()) {
    blocks_.push_back({device_.allocate(bytes), bytes});
  } else if (Block& block = blocks_[used_]; block.bytes < bytes) {
    void* const larger = device_.allocate(bytes);
    device_.release(block.memory);
    block = {larger, bytes};
  }
  return blocks_[used_++].memory;
}

VoxelBackbone::VoxelBackbone(Device& device, const BackboneRungs& rungs, DType dtype,
                             const std::vector<std::array<Array, 2>>& parameters)
    : device_(device), steps_(gradient_steps_of(device.where())), rungs_(rungs), dtype_(dtype),
      blocks_(device) {
  for (const std::array<Array, 2>& of_layer : parameters) {
    std::array<void*, 2>& there = parameters_.emplace_back();
    for (std::size_t i = 0; i < of_layer.size(); ++i) {
      there[i] = device.allocate(of_layer[i].size_bytes());
      device.upload(there[i], of_layer[i].data(), of_layer[i].size_bytes());
    }
  }
}

VoxelBackbone::~VoxelBackbone() {
  for (const std::array<void*, 2>& of_layer : parameters_)
    for (void* const memory : of_layer) device_.release(memory);
}

std::size_t VoxelBackbone::bytes_of_rows(int rows, int channels) const {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(channels) * size_of(dtype_);
}

void VoxelBackbone::run(const Rung& rung, const Problem& problem,
                        std::vector<Arguments::Slot> inputs, std::vector<Arguments::Slot> outputs,
                        const Arguments::Creator& creator) {
  const AnyImplementation& code = rung.code_at(device_.where()).value();
  if (const Declined why = code.supports(problem))
    throw UnsupportedProblem(rung.name + ": " + *why);
  const std::size_t bytes = code.workspace_bytes(problem);
  const Context context = {.workspace = bytes == 0 ? nullptr : blocks_.next(bytes)};
  const Arguments arguments(std::move(inputs), std::move(outputs), context, creator);
  code.run(problem, arguments);
  code.finish(problem, arguments);
}

RulebookProblem VoxelBackbone::book_of(const Window& window, const SparseRows& rows,
                                       RulebookForm form) {
  return validated(RulebookProblem{.mode = window.mode,
                                   .sites = rows.sites,
                                   .shape = rows.shape,
                                   .kernel = window.kernel,
                                   .stride = window.stride,
                                   .pad = window.pad,
                                   .form = form});
}

std::map<std::string, VoxelBackbone::FoundArray> VoxelBackbone::make_book(
    const Rung& rung, const RulebookProblem& book, const SparseRows& rows) {
  std::map<std::string, FoundArray> found;
  const auto create = [&](const std::string& name, DType dtype, const Shape& shape) {
    void* const memory =
        blocks_.next(static_cast<std::size_t>(element_count(shape)) * size_of(dtype));
    found[name] = {static_cast<const std::int32_t*>(memory), shape[0]};
    return memory;
  };
  run(rung, book, {{"coords", DType::i32, const_less(rows.coords)}}, {}, create);
  return found;
}

NeighbourTable VoxelBackbone::make_table(const RulebookProblem& book, const SparseRows& rows) {
  const bool stay = book.mode == SparseMode::subm;
  const auto found = make_book(stay ? *rungs_.submanifold : *rungs_.strided, book, rows);
  const FoundArray& sites = found.at("out_coords");
  return {.problem = book,
          .outputs = static_cast<int>(sites.rows),
          .out_coords = sites.data,
          .nbr = found.at("nbr").data,
          .mask = found.at("mask").data};
}

PairList VoxelBackbone::make_pairs(const RulebookProblem& book, const SparseRows& rows) {
  const bool stay = book.mode == SparseMode::subm;
  const auto found = make_book(stay ? *rungs_.submanifold_pairs : *rungs_.strided, book, rows);
  const FoundArray& pairs = found.at("pairs");
  auto* const offsets = static_cast<std::int32_t*>(
      blocks_.next(sizeof(std::int32_t) * static_cast<std::size_t>(book.KV + 1)));
  steps_.find_offsets(pairs.rows, book.KV, pairs.data, offsets);
  return {.count = pairs.rows, .pairs = pairs.data, .offsets = offsets};
}

SparseConvProblem VoxelBackbone::problem_of(std::size_t layer, const NeighbourTable& table,
                                            int inputs) const {
  // Pairs are not counted here: rungs that read a neighbour table do not use the count.
  SparseConvProblem problem = convolution_of(kVoxelBackbone[layer], dtype_);
  problem.book = table.problem;
  problem.N = inputs;
  problem.M = table.outputs;
  return problem;
}

SparseRows VoxelBackbone::convolve(std::size_t layer, const NeighbourTable& table,
                                   const SparseRows& rows) {
  const SparseConvProblem problem = problem_of(layer, table, rows.sites);
  void* const y = blocks_.next(bytes_of_rows(table.outputs, problem.Cout));
  const bool few = problem.Cin >= 16 && problem.Cin <= 32 && problem.Cout <= 32;
  run(few ? *rungs_.few_channels : *rungs_.convolution, problem,
      {{"features", dtype_, const_less(rows.features)},
       {"weights", dtype_, parameters_[layer][0]},
       {"bias", DType::f32, parameters_[layer][1]},
       {"nbr", DType::i32, const_less(table.nbr)},
       {"mask", DType::i32, const_less(table.mask)}},
      {{"y", dtype_, y}}, {});
  return {.shape = table.problem.out_shape,
          .sites = table.outputs,
          .channels = problem.Cout,
          .coords = table.out_coords,
          .features = y};
}

SparseRows VoxelBackbone::forward(const SparseRows& input, const Watcher& watcher) {
  blocks_.restart();
  passes_.clear();
  SparseRows rows = input;
  NeighbourTable table;
  bool same_sites = false;  // as those that `table` was made of, submanifold
  for (std::size_t layer = 0; layer < kVoxelBackbone.size(); ++layer) {
    const Window& window = kVoxelBackbone[layer].window;
    const bool stay = window.mode == SparseMode::subm, make = !stay || !same_sites;
    if (make) table = make_table(book_of(window, rows, RulebookForm::table), rows);
    const SparseRows before = rows;
    rows = convolve(layer, table, rows);
    passes_.push_back({table, before, rows});
    same_sites = stay;
    if (watcher) watcher(layer, table, make, rows);
  }
  return rows;
}

const float* VoxelBackbone::weight_gradient(std::size_t layer, const PairList& list,
                                            const void* dy) {
  const Pass& pass = passes_[layer];
  SparseConvProblem problem = problem_of(layer, pass.table, pass.x.sites);
  problem.pairs = list.count;
  const std::int64_t numbers = std::int64_t{problem.book.KV} * problem.Cin * problem.Cout;
  void* const dw = blocks_.next(sizeof(float) * static_cast<std::size_t>(numbers));
  run(*rungs_.weight_gradient, problem,
      {{"features", dtype_, const_less(pass.x.features)},
       {"dy", dtype_, const_less(dy)},
       {"pairs", DType::i32, const_less(list.pairs)},
       {"offsets", DType::i32, const_less(list.offsets)}},
      {{"dw", DType::f32, dw}}, {});
  return static_cast<const float*>(dw);
}

void* VoxelBackbone::input_gradient(std::size_t layer, const void* dy) {
  const Pass& pass = passes_[layer];
  const SparseConvProblem problem = problem_of(layer, pass.table, pass.x.sites);
  const void* weights = parameters_[layer][0];
  NeighbourTable back = pass.table;
  if (problem.book.mode == SparseMode::subm) {
    const std::int64_t numbers = std::int64_t{problem.Cin} * problem.Cout;
    void* const flipped =
        blocks_.next(static_cast<std::size_t>(problem.book.KV * numbers) * size_of(dtype_));
    steps_.flip_taps(dtype_, problem.book.KV, numbers, weights, flipped);
    weights = flipped;
  } else {
    Window window = kVoxelBackbone[layer].window;
    window.mode = SparseMode::inverse;
    back = make_table(book_of(window, pass.x, RulebookForm::table), pass.x);
  }
  void* const dx = blocks_.next(bytes_of_rows(pass.x.sites, problem.Cin));
  run(*rungs_.input_gradient, problem,
      {{"dy", dtype_, const_less(dy)},
       {"weights", dtype_, const_less(weights)},
       {"nbr_back", DType::i32, const_less(back.nbr)},
       {"mask_back", DType::i32, const_less(back.mask)}},
      {{"dx", dtype_, dx}}, {});
  return dx;
}

void VoxelBackbone::backward(void* dy, const BackwardWatcher& watcher) {
  PairList list;
  const std::int32_t* listed = nullptr;  // the table whose pairs it has
  for (std::size_t layer = passes_.size(); layer-- > 0;) {
    const auto& [table, x, y] = passes_[layer];
    LayerGradients gradients;
    auto* const db =
        static_cast<float*>(blocks_.next(sizeof(float) * static_cast<std::size_t>(y.channels)));
    steps_.through_relu(dtype_, y.sites, y.channels, y.features, dy, db,
                        static_cast<float*>(blocks_.next(steps_.part_bytes(y.sites, y.channels))));
    gradients.bias = db;
    if (table.nbr != listed) {
      RulebookProblem book = table.problem;
      book.form = RulebookForm::pairs;
      list = make_pairs(book, x);
      listed = table.nbr;
    }
    gradients.weights = weight_gradient(layer, list, dy);
    if (layer > 0) gradients.input = dy = input_gradient(layer, dy);
    if (watcher) watcher(layer, gradients);
  }
}

}  // namespace convladder::benchmarks
