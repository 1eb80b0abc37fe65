/// @file program.cpp
/// @brief Checks the network of voxel_backbone.hpp, and times it on a GPU.
///
///     voxel_backbone check           on some hundred sites, wherever kernels run
///     voxel_backbone check sweep     on the GPU, on the whole sweep
///     voxel_backbone time OUT.json   on the GPU, on the whole sweep, by the host's clock
///
/// time_spconv.py times the same network of spconv, and adds its times to OUT.json.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "benchmarks/networks/voxel_backbone.hpp"
#include "core/text.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/made_up_sites.hpp"
#include "oracle/reference.hpp"
#include "oracle/rulebook.hpp"
#include "provenance/provenance.hpp"

namespace convladder::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Parameters = std::vector<std::array<Array, 2>>;

constexpr DType kType = DType::f16;
constexpr int kChannels = 4;                        ///< Of a voxel: x, y, z and intensity.
constexpr int kSmallCheck = 300;                    ///< Sites.
constexpr PerAxis kSmallShape = {{32, 24, 24, 0}};  ///< Their grid: conv_out just fits.
constexpr int kWarmUp = 20, kRuns = 200;            ///< Of what is timed.

Array floats(Shape shape) { return {DType::f32, std::move(shape)}; }

/// Of all layers: fill(layer, weights [KV][Cin][Cout], bias [Cout]) sets floats, which are 0.
template <class Fill>
Parameters parameters_by(const Fill& fill) {
  Parameters all;
  for (const BackboneLayer& layer : kVoxelBackbone) {
    Array weights = floats({taps_of(layer), layer.Cin, layer.Cout}), bias = floats({layer.Cout});
    fill(layer, weights.as<float>(), bias.as<float>());
    all.push_back({rounded_to(weights, kType), std::move(bias)});
  }
  return all;
}

/// Whole numbers that stay whole, and small enough for 16 bits, through all layers: an output is
/// the sum of one or, in every other layer, two of its inputs, each times 1 or -1, and of 0 or 1.
Parameters whole_parameters() {
  std::mt19937 engine(1);
  int layers = 0;  // that came before
  return parameters_by([&](const BackboneLayer& layer, std::span<float> weights,
                           std::span<float> bias) {
    const int taps = taps_of(layer);
    const auto set = [&](int tap, int co, float value) {
      const int ci = static_cast<int>(engine() % static_cast<unsigned>(layer.Cin));
      weights[static_cast<std::size_t>((tap * layer.Cin + ci) * layer.Cout + co)] = value;
    };
    for (int co = 0; co < layer.Cout; ++co) {
      // Most inputs have themselves as neighbours alone.
      if (layers % 2 == 0) set(taps / 2, co, 1);
      set(static_cast<int>(engine() % static_cast<unsigned>(taps)), co, engine() % 4 == 0 ? -1 : 1);
      bias[static_cast<std::size_t>(co)] = static_cast<float>(engine() % 2);
    }
    ++layers;
  });
}

/// As a trained network has them: numbers around 0, such that rows neither grow nor die out.
Parameters real_parameters() {
  std::mt19937 engine(1);
  return parameters_by([&](const BackboneLayer& layer, std::span<float> weights,
                           std::span<float> bias) {
    std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(4 * layer.Cin)));
    for (float& weight : weights) weight = normal(engine);
    for (float& of_channel : bias) of_channel = normal(engine);
  });
}

/// Whole numbers from -4 to 4.
Array whole_features(std::int64_t sites) {
  std::mt19937 engine(2);
  Array features = floats({sites, kChannels});
  for (float& number : features.as<float>()) number = static_cast<float>(engine() % 9) - 4;
  return rounded_to(features, kType);
}

/// An array's copy on a device, for as long as it lives.
class Uploaded {
 public:
  Uploaded(Device& device, const Array& array)
      : device_(device), memory_(device.allocate(array.size_bytes())) {
    device.upload(memory_, array.data(), array.size_bytes());
  }
  Uploaded(const Uploaded&) = delete;
  Uploaded& operator=(const Uploaded&) = delete;
  ~Uploaded() { device_.release(memory_); }
  const void* memory() const { return memory_; }

 private:
  Device& device_;
  void* memory_;
};

/// What the device holds, on the host.
Array downloaded(Device& device, DType dtype, Shape shape, const void* from) {
  Array array(dtype, std::move(shape));
  device.download(array.data(), from, array.size_bytes());
  return array;
}

bool same_bits(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// The layer by the definition: rows of whole numbers, exact.
Array reference_rows(const BackboneLayer& layer, const Rulebook& book, const Array& features,
                     const std::array<Array, 2>& parameters) {
  const SparseConvProblem problem = convolution_over(book, convolution_of(layer, kType));
  Arrays inputs = rulebook_inputs(book, sparse_conv_signature(problem));
  inputs.insert_or_assign("features", features);
  inputs.insert_or_assign("weights", parameters[0]);
  inputs.insert_or_assign("bias", parameters[1]);
  const Expected expected = reference("sparse_conv", problem, inputs)[0];
  Array rows = floats(expected.spec.shape);
  std::ranges::transform(expected.values, rows.as<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return rounded_to(rows, kType);
}

/// Runs all layers, and compares sites and rows of each with the definition, bit for bit.
/// @throws std::runtime_error for the first that differs
void check(Device& device, const Array& coords, const PerAxis& shape) {
  const Parameters parameters = whole_parameters();
  const auto sites = static_cast<int>(coords.shape()[0]);
  Array features = whole_features(sites), at = coords;
  const Uploaded given(device, coords), rows_given(device, features);
  VoxelBackbone network(device, newest_backbone_rungs(), kType, parameters);
  Rulebook book;
  std::int64_t zeros = 0, numbers = 0;
  const auto compare = [&](std::size_t i, const SortedTable& table, bool made,
                           const SparseRows& rows) {
    const BackboneLayer& layer = kVoxelBackbone[i];
    if (made) book = make_rulebook(table.problem, at);
    const Array found = downloaded(device, DType::i32, {rows.sites, 4}, rows.coords);
    if (!same_bits(found, book.out_coords))
      throw std::runtime_error(text(layer.name, ": not the sites of the definition"));
    features = reference_rows(layer, book, features, parameters[i]);
    const Array y = downloaded(device, kType, {rows.sites, rows.channels}, rows.features);
    if (!same_bits(y, features))
      throw std::runtime_error(text(layer.name, ": not the rows of the definition"));
    at = book.out_coords;
    numbers += y.size();
    zeros += std::ranges::count(rounded_to(y, DType::f32).as<float>(), 0.0f);
  };
  network.forward({.shape = shape,
                   .sites = sites,
                   .channels = kChannels,
                   .coords = static_cast<const std::int32_t*>(given.memory()),
                   .features = rows_given.memory()},
                  compare);
  std::printf(
      "%s: %zu layers, %d to %lld sites: all bits are those of the definition (%.0f %% zeros)\n",
      name_of(device.where()), kVoxelBackbone.size(), sites, static_cast<long long>(at.shape()[0]),
      100.0 * static_cast<double>(zeros) / static_cast<double>(numbers));
}

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// "median" and the quartiles, rounded to tenths.
Json distribution(std::vector<double> times) {
  std::ranges::sort(times);
  const auto at = [&](std::size_t quarter) {
    return std::round(times[(times.size() - 1) * quarter / 4] * 10) / 10;
  };
  return {{"median_us", at(2)}, {"quartiles_us", {at(1), at(3)}}};
}

/// A window's numbers along its axes.
Json along_axes(const PerAxis& numbers) { return {numbers[0], numbers[1], numbers[2]}; }

/// On the whole sweep: the time of a call, and of each layer where the host waits for it.
Json timed(Device& device) {
  const Array coords = lidar_sweep(site_sources().at("sweep").count, 1);
  const auto sites = static_cast<int>(coords.shape()[0]);
  const Uploaded given(device, coords), features(device, whole_features(sites));
  const BackboneRungs rungs = newest_backbone_rungs();
  VoxelBackbone network(device, rungs, kType, real_parameters());
  const SparseRows input{.shape = kLidarShape,
                         .sites = sites,
                         .channels = kChannels,
                         .coords = static_cast<const std::int32_t*>(given.memory()),
                         .features = features.memory()};
  std::vector<double> calls;
  for (int i = 0; i < kWarmUp + kRuns; ++i) {
    const auto begin = Clock::now();
    network.forward(input);
    device.synchronize();
    if (i >= kWarmUp) calls.push_back(microseconds(Clock::now() - begin));
  }
  std::vector<std::vector<double>> of_layer(kVoxelBackbone.size());
  std::vector<int> outputs(kVoxelBackbone.size());
  std::vector<PerAxis> pads(kVoxelBackbone.size());  // also what a submanifold layer implies
  for (int i = 0; i < kRuns; ++i) {
    auto begin = Clock::now();
    network.forward(input,
                    [&](std::size_t layer, const SortedTable& table, bool, const SparseRows& rows) {
                      device.synchronize();
                      const auto end = Clock::now();
                      of_layer[layer].push_back(microseconds(end - begin));
                      outputs[layer] = rows.sites;
                      pads[layer] = table.problem.pad;
                      begin = end;
                    });
  }
  Json json = {{"gpu", device.name()},
               {"driver", driver_version()},
               {"toolkit", toolkit_version()},
               {"date", today()},
               {"commit", commit()},
               {"network", "VoxelBackBone8x, forward"},
               {"sites", sites},
               {"shape", along_axes(kLidarShape)},
               {"dtype", "fp16"},
               {"rungs", Json::object()}};
  for (const Rung* rung : {rungs.submanifold, rungs.strided, rungs.convolution})
    json["rungs"][rung->name] = built_source_hashes().at(rung->name);
  json["convladder"] = distribution(calls);
  for (std::size_t i = 0; i < kVoxelBackbone.size(); ++i) {
    const auto& [name, window, Cin, Cout] = kVoxelBackbone[i];
    // time_spconv.py makes the network of this.
    Json row = {{"layer", name},
                {"submanifold", window.mode == SparseMode::subm},
                {"channels", {Cin, Cout}},
                {"kernel", along_axes(window.kernel)},
                {"stride", along_axes(window.stride)},
                {"pad", along_axes(pads[i])},
                {"outputs", outputs[i]}};
    row.update(distribution(of_layer[i]));
    json["layers"].push_back(row);
  }
  return json;
}

int run(const std::vector<std::string>& words) {
  Device* const gpu = device_at(Where::gpu);
  if (words == std::vector<std::string>{"check"}) {
    const RulebookProblem grid =
        validated(RulebookProblem{.sites = kSmallCheck, .shape = kSmallShape});
    const Array coords = random_sites(grid, kSmallCheck, 1);
    check(*device_at(Where::emulated), coords, kSmallShape);
    if (gpu != nullptr) check(*gpu, coords, kSmallShape);
    return 0;
  }
  const bool on_sweep = words == std::vector<std::string>{"check", "sweep"};
  if (!on_sweep && (words.size() != 2 || words[0] != "time")) {
    std::fputs("usage: voxel_backbone check [sweep] | time OUT.json\n", stderr);
    return 2;
  }
  if (gpu == nullptr) {
    std::fprintf(stderr, "voxel_backbone: %s\n", why_no_gpu().c_str());
    return 2;
  }
  if (on_sweep) {
    check(*gpu, lidar_sweep(site_sources().at("sweep").count, 1), kLidarShape);
    return 0;
  }
  const Json json = timed(*gpu);
  std::ofstream out(words[1]);
  if (!(out << json.dump(1) << "\n")) throw std::runtime_error("cannot write " + words[1]);
  return 0;
}

}  // namespace
}  // namespace convladder::benchmarks

int main(int count, char** words) {
  try {
    return convladder::benchmarks::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "voxel_backbone: %s\n", error.what());
    return 4;
  }
}
