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
#include "ladders/ladders.hpp"
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

/// Integer weights with which all activations and gradients are integers that fp16 and bf16
/// represent: most weights are 0, and those of one or two input channels are 1 or -1.
Parameters whole_parameters() {
  std::mt19937 engine(1);
  int layers = 0;  // that came before
  return parameters_by([&](const BackboneLayer& layer, std::span<float> weights,
                           std::span<float> bias) {
    const int taps = taps_of(layer);
    const auto sign = [&] { return engine() % 2 == 0 ? -1.0f : 1.0f; };
    for (int co = 0; co < layer.Cout; ++co) {
      const auto set = [&](int tap, int ci, float value) {
        weights[static_cast<std::size_t>((tap * layer.Cin + ci) * layer.Cout + co)] = value;
      };
      bias[static_cast<std::size_t>(co)] = static_cast<float>(engine() % 2);
      if (layer.window.mode != SparseMode::subm) {  // at one tap alone, few inputs have an output
        for (int tap = 0; tap < taps; ++tap) set(tap, co % layer.Cin, sign());
        continue;
      }
      // Most inputs have themselves as neighbours alone.
      if (layers % 2 == 0) set(taps / 2, co % layer.Cin, 1);
      const int ci = static_cast<int>(engine() % static_cast<unsigned>(layer.Cin));
      set(static_cast<int>(engine() % static_cast<unsigned>(taps)), ci, sign());
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

/// Integers from -largest to largest, of kType.
Array whole_numbers(Shape shape, unsigned seed, unsigned largest) {
  std::mt19937 engine(seed);
  Array numbers = floats(std::move(shape));
  for (float& number : numbers.as<float>())
    number = static_cast<float>(engine() % (2 * largest + 1)) - static_cast<float>(largest);
  return rounded_to(numbers, kType);
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
  void* memory() const { return memory_; }

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

/// A layer of a call by the definition.
struct DefinedLayer {
  Rulebook book;
  Array x, y;  ///< Of kType.
};

/// The only output of a ladder over a layer's rulebook by the definition, exact, in float.
Array by_definition(const std::string& name, const Rulebook& book, const SparseConvProblem& layer,
                    Arrays arrays) {
  const SparseConvProblem problem = convolution_over(book, layer);
  Arrays inputs = rulebook_inputs(book, ladder(name).signature(problem));
  inputs.merge(arrays);
  const Expected expected = reference(name, problem, inputs)[0];
  Array values = floats(expected.spec.shape);
  std::ranges::transform(expected.values, values.as<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return values;
}

/// @throws std::runtime_error that names the layer and what is not the definition's
void expect_same_bits(std::size_t layer, const char* what, const Array& found,
                      const Array& defined) {
  if (!same_bits(found, defined))
    throw std::runtime_error(
        text(kVoxelBackbone[layer].name, ": not the ", what, " of the definition"));
}

/// What forward() computes, each layer compared with the definition. @throws std::runtime_error for
/// the first that differs
std::vector<DefinedLayer> check_forward(Device& device, VoxelBackbone& network,
                                        const SparseRows& input, const Array& coords,
                                        const Array& features, const Parameters& parameters) {
  std::vector<DefinedLayer> layers;
  network.forward(
      input, [&](std::size_t i, const NeighbourTable& table, bool made, const SparseRows& rows) {
        const Array& at = i == 0 ? coords : layers.back().book.out_coords;
        const Array& x = i == 0 ? features : layers.back().y;
        Rulebook book = made ? make_rulebook(table.problem, at) : layers.back().book;
        expect_same_bits(i, "sites", downloaded(device, DType::i32, {rows.sites, 4}, rows.coords),
                         book.out_coords);
        const auto& [weights, bias] = parameters[i];
        const Array y =
            rounded_to(by_definition("sparse_conv", book, convolution_of(kVoxelBackbone[i], kType),
                                     {{"features", x}, {"weights", weights}, {"bias", bias}}),
                       kType);
        expect_same_bits(i, "rows",
                         downloaded(device, kType, {rows.sites, rows.channels}, rows.features), y);
        layers.push_back({std::move(book), x, y});
      });
  return layers;
}

/// Those of dy that belong to numbers above 0 of y, and 0 for the others.
Array through_relu(const Array& y, const Array& dy) {
  const Array of_y = rounded_to(y, DType::f32);
  Array kept = rounded_to(dy, DType::f32);
  for (std::size_t i = 0; i < kept.as<float>().size(); ++i)
    if (of_y.as<float>()[i] <= 0) kept.as<float>()[i] = 0;
  return rounded_to(kept, kType);
}

/// The sum of all rows [rows][channels], in float.
Array sum_of_rows(const Array& rows) {
  const auto channels = static_cast<std::size_t>(rows.shape()[1]);
  const Array numbers = rounded_to(rows, DType::f32);
  Array sums = floats({rows.shape()[1]});
  for (std::size_t i = 0; i < numbers.as<float>().size(); ++i)
    sums.as<float>()[i % channels] += numbers.as<float>()[i];
  return sums;
}

/// Compares all gradients with the definition. @throws std::runtime_error for the first that
/// differs
void check_backward(Device& device, VoxelBackbone& network, const Parameters& parameters,
                    const std::vector<DefinedLayer>& layers) {
  Array dy = whole_numbers(layers.back().y.shape(), 3, 1);
  Uploaded there(device, dy);
  network.backward(there.memory(), [&](std::size_t i, const LayerGradients& found) {
    const auto& [book, x, y] = layers[i];
    const Array& weights = parameters[i][0];
    const BackboneLayer& of = kVoxelBackbone[i];
    const SparseConvProblem layer = {.Cin = of.Cin, .Cout = of.Cout, .dtype = kType};
    dy = through_relu(y, dy);
    expect_same_bits(i, "bias' gradient", downloaded(device, DType::f32, {of.Cout}, found.bias),
                     sum_of_rows(dy));
    expect_same_bits(i, "weights' gradient",
                     downloaded(device, DType::f32, weights.shape(), found.weights),
                     by_definition("sparse_wgrad", book, layer, {{"features", x}, {"dy", dy}}));
    if (i == 0) return;
    dy = rounded_to(by_definition("sparse_dgrad", book, layer, {{"dy", dy}, {"weights", weights}}),
                    kType);
    expect_same_bits(i, "input's gradient", downloaded(device, kType, x.shape(), found.input), dy);
  });
}

/// Runs all layers, there and back, and compares sites, rows and gradients of each with the
/// definition, bit for bit. @throws std::runtime_error for the first that differs
void check(Device& device, const Array& coords, const PerAxis& shape) {
  const Parameters parameters = whole_parameters();
  const auto sites = static_cast<int>(coords.shape()[0]);
  const Array features = whole_numbers({sites, kChannels}, 2, 4);
  const Uploaded given(device, coords), rows_given(device, features);
  VoxelBackbone network(device, newest_backbone_rungs(), kType, parameters);
  const std::vector<DefinedLayer> layers =
      check_forward(device, network,
                    {.shape = shape,
                     .sites = sites,
                     .channels = kChannels,
                     .coords = static_cast<const std::int32_t*>(given.memory()),
                     .features = rows_given.memory()},
                    coords, features, parameters);
  check_backward(device, network, parameters, layers);
  std::int64_t zeros = 0, numbers = 0;
  for (const DefinedLayer& layer : layers) {
    numbers += layer.y.size();
    zeros += std::ranges::count(rounded_to(layer.y, DType::f32).as<float>(), 0.0f);
  }
  std::printf(
      "%s: %zu layers, %d to %d sites: all bits, there and back, are those of the definition (%.0f"
      " %% zeros)\n",
      name_of(device.where()), layers.size(), sites, layers.back().book.M,
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

/// The time of a call that may return before the device has finished, by the host's clock.
Json times_of(Device& device, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < kWarmUp + kRuns; ++i) {
    const auto begin = Clock::now();
    call();
    device.synchronize();
    if (i >= kWarmUp) times.push_back(microseconds(Clock::now() - begin));
  }
  return distribution(times);
}

/// A window's numbers along its axes.
Json along_axes(const PerAxis& numbers) { return {numbers[0], numbers[1], numbers[2]}; }

/// On the whole sweep: the time of a call, of one there and back, and of each layer where the host
/// waits for it.
Json timed(Device& device) {
  const Array coords = lidar_sweep(site_sources().at("sweep").count, 1);
  const auto sites = static_cast<int>(coords.shape()[0]);
  const Uploaded given(device, coords), features(device, whole_numbers({sites, kChannels}, 2, 4));
  const BackboneRungs rungs = newest_backbone_rungs();
  VoxelBackbone network(device, rungs, kType, real_parameters());
  const SparseRows input{.shape = kLidarShape,
                         .sites = sites,
                         .channels = kChannels,
                         .coords = static_cast<const std::int32_t*>(given.memory()),
                         .features = features.memory()};
  const Json forward = times_of(device, [&] { network.forward(input); });
  const SparseRows y = network.forward(input);
  const Uploaded dy(device, whole_numbers({y.sites, y.channels}, 3, 1));
  const Json both = times_of(device, [&] {
    network.forward(input);
    network.backward(dy.memory());
  });
  std::vector<std::vector<double>> of_layer(kVoxelBackbone.size());
  std::vector<int> outputs(kVoxelBackbone.size());
  std::vector<PerAxis> pads(kVoxelBackbone.size());  // also what a submanifold layer implies
  for (int i = 0; i < kRuns; ++i) {
    auto begin = Clock::now();
    network.forward(
        input, [&](std::size_t layer, const NeighbourTable& table, bool, const SparseRows& rows) {
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
               {"network", "VoxelBackBone8x"},
               {"sites", sites},
               {"shape", along_axes(kLidarShape)},
               {"dtype", "fp16"},
               {"rungs", Json::object()}};
  for (const Rung* rung :
       {rungs.submanifold, rungs.submanifold_pairs, rungs.strided, rungs.few_channels,
        rungs.convolution, rungs.input_gradient, rungs.weight_gradient})
    json["rungs"][rung->name] = built_source_hashes().at(rung->name);
  json["convladder"] = forward;
  json["forward and backward"]["convladder"] = both;
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
