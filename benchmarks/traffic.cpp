/// @file traffic.cpp
/// @brief Rungs under every tile map: what the wave simulator predicts of their traffic, and one
/// run of each for a profiler that counts it. tools/measure_traffic.py puts both together.
///
///     traffic       the runs with their predictions, as JSON, in the order in which they would run
///     traffic run   runs them on the GPU
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "benchmarks/problems.hpp"
#include "core/device.hpp"
#include "core/tile_map_model.hpp"
#include "ladders/ladders.hpp"
#include "provenance/provenance.hpp"

namespace convladder::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMultiprocessors = 132;  // of an H200

/// A rung, and what the simulator must know of its kernel.
struct Kernel {
  const char *ladder, *rung;
  const char* name;             // of the kernel that has the tiles
  TileSize tile;                // with these problems
  int blocks;                   // that an SM runs at once
  std::optional<TileMap> only;  // the only one that it is asked for
  Precision precision = Precision::fp32;
  Layout layout = Layout::nchw;
};

constexpr Kernel kKernels[] = {
    {"gemm", "cuda_optimized/gemm/cp_async", "gemm_cp_async", {128, 128, 16}, 2, {}},
    {"gemm", "cuda_optimized/gemm/split_k", "gemm_split_k", {128, 128, 16}, 2, TileMap::split_k},
    {"gemm", "cuda_optimized/gemm/stream_k", "gemm_stream_k", {128, 128, 16}, 2, TileMap::stream_k},
    {"gemm",
     "cuda_optimized/gemm/tf32/mma",
     "gemm_tf32_mma",
     {128, 128, 32},
     2,
     {},
     Precision::tf32},
    {"conv2d",
     "cuda_optimized/conv2d/implicit_gemm/cp_async",
     "conv2d_implicit_gemm_cp_async",
     {64, 128, 16},
     4,
     {}},
    {"conv2d",
     "cuda_optimized/conv2d/implicit_gemm/wgmma_tf32",
     "conv2d_implicit_gemm_wgmma_tf32",
     {128, 256, 32},
     1,
     {},
     Precision::tf32,
     Layout::nhwc},
};

/// A rung on a problem under a map.
struct Case {
  const Kernel* kernel;
  std::string id;  // of the problem, without the map
  Problem problem;
  TileMap map;
};

/// The benchmark's problem in the kernel's precision and layout, under a map.
Problem under(const Problem& problem, const Kernel& kernel, TileMap map) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) {
    GemmProblem mapped = *gemm;
    mapped.map = map;
    mapped.precision = kernel.precision;
    return mapped;
  }
  Conv2dProblem mapped = std::get<Conv2dProblem>(problem);
  mapped.map = map;
  mapped.precision = kernel.precision;
  mapped.layout = kernel.layout;
  return mapped;
}

const Rung& rung_of(const Kernel& kernel) {
  for (const Rung& rung : ladder(kernel.ladder).rungs) {
    if (rung.name == kernel.rung) return rung;
  }
  throw std::logic_error(text("no rung ", kernel.rung));
}

/// Where cases are asked for, and run: on the GPU, or as far as it goes without one.
const AnyImplementation& code_of(const Kernel& kernel) {
  const Where where = device_at(Where::gpu) != nullptr ? Where::gpu : Where::emulated;
  return rung_of(kernel).code_at(where).value();
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [ladder, name, id] : {std::array{"gemm", "tall-row_major", "tall"},
                                         {"gemm", "cube-4096", "cube-4096"},
                                         {"gemm", "cube-8192", "cube-8192"},
                                         {"conv2d", "B10", "B10"},
                                         {"conv2d", "B15", "B15"}}) {
    for (const BenchmarkProblem& benchmark : benchmark_problems()) {
      if (benchmark.ladder != ladder || benchmark.id != name) continue;
      for (const Kernel& kernel : kKernels) {
        if (benchmark.ladder != kernel.ladder) continue;
        for (const TileMapName& map : kTileMaps) {
          // Where a rung has a map of its own, it is measured under that alone.
          if (kernel.only ? *kernel.only != map.map : map.map == TileMap::split_k) continue;
          const Problem problem = under(benchmark.problem, kernel, map.map);
          if (code_of(kernel).supports(problem)) continue;
          cases.push_back({&kernel, id, problem, map.map});
        }
      }
    }
  }
  return cases;
}

GemmExtents extents_of(const Problem& problem) {
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) return gemm_extents(*gemm);
  return gemm_extents(std::get<Conv2dProblem>(problem), ConvolutionPass::forward);
}

/// The units of work, as the reference of the tile_map ladder gives them.
std::vector<std::int32_t> units_of(const TileMapProblem& tiles) {
  std::vector<std::int32_t> units;
  const Arguments arrays({}, {}, {}, [&](const std::string&, DType, const Shape& shape) -> void* {
    units.resize(static_cast<std::size_t>(shape[0] * shape[1]));
    return units.data();
  });
  ladder("tile_map").rungs.front().code_at(Where::cpu)->run(tiles, arrays);
  return units;
}

/// What the simulator says of a case.
Json predicted(const Case& one) {
  const GemmExtents products = extents_of(one.problem);
  const TileSize& tile = one.kernel->tile;
  const int at_once = kMultiprocessors * one.kernel->blocks;
  TileMapProblem tiles =
      tiles_of(products, tile, one.map, one.map == TileMap::split_k ? kDefaultSplits : 1);
  tiles.blocks = at_once;
  const std::vector<std::int32_t> units = units_of(tiles);
  double dram = 0, steps = 0;
  const std::vector<Wave> waves = simulate_waves(units, at_once, tile);
  for (const Wave& wave : waves) dram += static_cast<double>(wave.bytes);
  for (std::size_t i = 0; i < units.size(); i += kUnitColumns) steps += units[i + 5] - units[i + 4];
  double inputs = 0, output = 0;
  const Signature signature = ladder(one.kernel->ladder).signature(one.problem);
  for (const ArraySpec& spec : signature.inputs)
    inputs += 4.0 * static_cast<double>(element_count(spec.shape));
  for (const ArraySpec& spec : signature.outputs)
    output += 4.0 * static_cast<double>(element_count(spec.shape));
  return {{"waves", waves.size()},
          {"dram_read_bytes", dram},
          {"l2_read_bytes", steps * (tile.m + tile.n) * tile.k * 4.0},
          {"input_bytes", inputs},
          {"output_bytes", output}};
}

Json list(const std::vector<Case>& cases) {
  const Device* gpu = device_at(Where::gpu);
  Json json = {{"gpu", gpu == nullptr ? "none" : gpu->name()},
               {"driver", driver_version()},
               {"toolkit", toolkit_version()},
               {"date", today()},
               {"commit", commit()}};
  Json hashes = Json::object();
  for (const Kernel& kernel : kKernels) {
    hashes[kernel.rung] = built_source_hashes().at(kernel.rung);
  }
  json["source_hashes"] = hashes;
  Json kernels = Json::array();
  for (const Kernel& kernel : kKernels) kernels.push_back(kernel.name);
  json["kernels"] = kernels;
  json["rows"] = Json::array();
  for (const Case& one : cases) {
    json["rows"].push_back({{"ladder", one.kernel->ladder},
                            {"problem", one.id},
                            {"rung", one.kernel->rung},
                            {"kernel", one.kernel->name},
                            {"map", name_of(one.map)},
                            {"predicted", predicted(one)}});
  }
  return json;
}

/// Memory of the GPU.
class Buffer {
 public:
  Buffer(Device& device, std::size_t bytes)
      : device_(device), data_(device.allocate(std::max<std::size_t>(bytes, 1))) {}
  ~Buffer() { device_.release(data_); }
  Buffer(const Buffer&) = delete;
  void* data() const { return data_; }

 private:
  Device& device_;
  void* data_;
};

/// Runs each case once. Neighbours with the same arrays share them.
void run(const std::vector<Case>& cases, Device& device) {
  std::minstd_rand random(1);
  std::vector<float> numbers;
  for (auto first = cases.begin(); first != cases.end();) {
    const auto last =
        std::find_if(first, cases.end(), [&](const Case& one) { return one.id != first->id; });
    const Signature signature = ladder(first->kernel->ladder).signature(first->problem);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Arguments::Slot> inputs, outputs;
    const auto add = [&](const ArraySpec& spec, std::vector<Arguments::Slot>& slots) {
      const auto count = static_cast<std::size_t>(element_count(spec.shape));
      buffers.push_back(std::make_unique<Buffer>(device, count * sizeof(float)));
      slots.push_back({spec.name, spec.dtype, buffers.back()->data()});
      return count;
    };
    for (const ArraySpec& spec : signature.inputs) {
      numbers.resize(add(spec, inputs));
      for (float& number : numbers) number = static_cast<float>(random()) * 0x1p-30f - 1.0f;
      device.upload(inputs.back().data, numbers.data(), numbers.size() * sizeof(float));
    }
    for (const ArraySpec& spec : signature.outputs) add(spec, outputs);
    for (; first != last; ++first) {
      const AnyImplementation& code = code_of(*first->kernel);
      const Buffer workspace(device, code.workspace_bytes(first->problem));
      code.run(first->problem, Arguments(inputs, outputs, {.workspace = workspace.data()}, {}));
      device.synchronize();
    }
  }
}

int traffic(const std::vector<std::string>& words) {
  const std::vector<Case> cases = all_cases();
  if (words.empty()) {
    std::cout << list(cases).dump(1) << "\n";
    return 0;
  }
  Device* gpu = device_at(Where::gpu);
  if (words != std::vector<std::string>{"run"} || gpu == nullptr) {
    std::cerr << "usage: traffic [run]; to run takes a GPU\n";
    return 2;
  }
  run(cases, *gpu);
  return 0;
}

}  // namespace
}  // namespace convladder::benchmarks

int main(int count, char** words) {
  try {
    return convladder::benchmarks::traffic({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "traffic: %s\n", error.what());
    return 4;
  }
}
