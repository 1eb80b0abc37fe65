#include "benchmarks/networks/voxel_backbone.hpp"

#include <map>

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

}  // namespace

BackboneRungs newest_backbone_rungs() {
  return {&rung_named("rulebook", "cuda_optimized/rulebook/fused"),
          &rung_named("rulebook", "cuda_optimized/rulebook/gather"),
          &rung_named("sparse_conv", "cuda_optimized/sparse_conv/implicit_gemm_producers")};
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
    : device_(device), rungs_(rungs), dtype_(dtype), blocks_(device) {
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

SortedTable VoxelBackbone::make_table(const Window& window, const SparseRows& rows) {
  SortedTable table{.problem = validated(RulebookProblem{.mode = window.mode,
                                                         .sites = rows.sites,
                                                         .shape = rows.shape,
                                                         .kernel = window.kernel,
                                                         .stride = window.stride,
                                                         .pad = window.pad,
                                                         .form = RulebookForm::sorted})};
  std::map<std::string, const std::int32_t*> found;
  const auto create = [&](const std::string& name, DType dtype, const Shape& shape) {
    if (name == "out_coords") table.outputs = static_cast<int>(shape[0]);
    void* const memory =
        blocks_.next(static_cast<std::size_t>(element_count(shape)) * size_of(dtype));
    found[name] = static_cast<const std::int32_t*>(memory);
    return memory;
  };
  const bool stay = window.mode == SparseMode::subm;
  run(stay ? *rungs_.submanifold : *rungs_.strided, table.problem,
      {{"coords", DType::i32, const_less(rows.coords)}}, {}, create);
  table.out_coords = found.at("out_coords");
  table.nbr = found.at("nbr");
  table.mask = found.at("mask");
  table.order = found.at("order");
  return table;
}

SparseRows VoxelBackbone::convolve(std::size_t layer, const SortedTable& table,
                                   const SparseRows& rows) {
  // Its pairs are not counted: nobody asks for them who reads a table.
  SparseConvProblem problem = convolution_of(kVoxelBackbone[layer], dtype_);
  problem.book = table.problem;
  problem.N = rows.sites;
  problem.M = table.outputs;
  void* const y = blocks_.next(static_cast<std::size_t>(table.outputs) *
                               static_cast<std::size_t>(problem.Cout) * size_of(dtype_));
  run(*rungs_.convolution, problem,
      {{"features", dtype_, const_less(rows.features)},
       {"weights", dtype_, parameters_[layer][0]},
       {"bias", DType::f32, parameters_[layer][1]},
       {"nbr", DType::i32, const_less(table.nbr)},
       {"mask", DType::i32, const_less(table.mask)},
       {"order", DType::i32, const_less(table.order)}},
      {{"y", dtype_, y}}, {});
  return {.shape = table.problem.out_shape,
          .sites = table.outputs,
          .channels = problem.Cout,
          .coords = table.out_coords,
          .features = y};
}

SparseRows VoxelBackbone::forward(const SparseRows& input, const Watcher& watcher) {
  blocks_.restart();
  SparseRows rows = input;
  SortedTable table;
  bool same_sites = false;  // as those that `table` was made of, submanifold
  for (std::size_t layer = 0; layer < kVoxelBackbone.size(); ++layer) {
    const Window& window = kVoxelBackbone[layer].window;
    const bool stay = window.mode == SparseMode::subm, make = !stay || !same_sites;
    if (make) table = make_table(window, rows);
    rows = convolve(layer, table, rows);
    same_sites = stay;
    if (watcher) watcher(layer, table, make, rows);
  }
  return rows;
}

}  // namespace convladder::benchmarks
