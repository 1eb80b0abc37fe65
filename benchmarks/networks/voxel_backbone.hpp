/// @file voxel_backbone.hpp
/// @brief A sparse network that detectors of today run on a LiDAR sweep, made of rungs.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/networks/gradient_steps.hpp"
#include "benchmarks/sites.hpp"
#include "core/device.hpp"
#include "core/rung.hpp"

namespace convladder::benchmarks {

/// A convolution with bias and ReLU. All that have Window kSubm3 and lie side by side have the same
/// sites, so that one rulebook serves them.
struct BackboneLayer {
  const char* name;       ///< As in OpenPCDet.
  Window window;          ///< Where its outputs lie.
  int Cin = 0, Cout = 0;  ///< Channels.
};

/// Of its kernel.
inline int taps_of(const BackboneLayer& layer) {
  const PerAxis& kernel = layer.window.kernel;
  return kernel[0] * kernel[1] * kernel[2];
}

/// Its channels, with bias and ReLU; over which rulebook is open.
inline SparseConvProblem convolution_of(const BackboneLayer& layer, DType dtype) {
  return {.Cin = layer.Cin,
          .Cout = layer.Cout,
          .dtype = dtype,
          .bias = true,
          .activation = Activation::relu};
}

/// VoxelBackBone8x of OpenPCDet (pcdet/models/backbones_3d/spconv_backbone.py), in which each
/// batch normalisation has become part of weights and bias, as for inference.
inline const std::array<BackboneLayer, 12> kVoxelBackbone = {{
    {"conv_input", kSubm3, 4, 16},
    {"conv1", kSubm3, 16, 16},
    {"conv2.0", kK3s2, 16, 32},
    {"conv2.1", kSubm3, 32, 32},
    {"conv2.2", kSubm3, 32, 32},
    {"conv3.0", kK3s2, 32, 64},
    {"conv3.1", kSubm3, 64, 64},
    {"conv3.2", kSubm3, 64, 64},
    {"conv4.0", kFlat, 64, 64},
    {"conv4.1", kSubm3, 64, 64},
    {"conv4.2", kSubm3, 64, 64},
    {"conv_out", kTop, 64, 128},
}};

/// The rungs that compute. Those of sparse_conv and sparse_dgrad must read the rulebook as a table
/// without an order of its rows, that of sparse_wgrad as pairs.
struct BackboneRungs {
  const Rung* submanifold;        ///< Of rulebooks whose sites stay, as tables.
  const Rung* submanifold_pairs;  ///< Of the same as pairs.
  const Rung* strided;            ///< Of those that find new sites, in both forms, and of their
                                  ///< inverse.
  const Rung* few_channels;       ///< Of sparse_conv, of 16 to 32 channels.
  const Rung* convolution;        ///< Of sparse_conv, of all others.
  const Rung* input_gradient;     ///< Of sparse_dgrad.
  const Rung* weight_gradient;    ///< Of sparse_wgrad.
};

/// The newest of each. @throws std::logic_error if a table of rungs has no such row
BackboneRungs newest_backbone_rungs();

/// Rows at sites, where the rungs compute.
struct SparseRows {
  PerAxis shape = every_axis(1);         ///< Of the grid of the sites.
  int sites = 0, channels = 0;           ///< How many rows, and how long they are.
  const std::int32_t* coords = nullptr;  ///< [sites][4]
  const void* features = nullptr;        ///< [sites][channels]
};

/// A rulebook where the rungs compute: as RulebookForm::table has it.
struct NeighbourTable {
  RulebookProblem problem;  ///< Its parameters.
  int outputs = 0;          ///< M.
  const std::int32_t *out_coords = nullptr, *nbr = nullptr, *mask = nullptr;
};

/// The same rulebook, as RulebookForm::pairs has it.
struct PairList {
  std::int64_t count = 0;
  const std::int32_t *pairs = nullptr, *offsets = nullptr;
};

/// What a loss changes by, where the rungs compute.
struct LayerGradients {
  const float *weights = nullptr, *bias = nullptr;  ///< [KV][Cin][Cout], [Cout]
  const void* input = nullptr;                      ///< [rows][Cin]; null for the first layer
};

/// Memory that calls repeat: the nth block that is asked for is the nth of the last time, if it is
/// large enough. So a network that runs again on as many sites allocates nothing.
class RepeatedBlocks {
 public:
  explicit RepeatedBlocks(Device& device) : device_(device) {}
  RepeatedBlocks(const RepeatedBlocks&) = delete;
  RepeatedBlocks& operator=(const RepeatedBlocks&) = delete;
  ~RepeatedBlocks();
  /// From the first block on again. What blocks hold stays until somebody overwrites it.
  void restart() { used_ = 0; }
  /// Of at least so many bytes.
  void* next(std::size_t bytes);

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  Device& device_;
  std::vector<Block> blocks_;
  std::size_t used_ = 0;
};

/// The network on a device, with its weights there.
class VoxelBackbone {
 public:
  /// What looks on: called after each layer with the rulebook that it used, whether this layer made
  /// it, and its rows.
  using Watcher = std::function<void(std::size_t layer, const NeighbourTable& table, bool made,
                                     const SparseRows& rows)>;

  /// @param parameters by layer: weights [KV][Cin][Cout] of dtype, bias [Cout] of float
  VoxelBackbone(Device& device, const BackboneRungs& rungs, DType dtype,
                const std::vector<std::array<Array, 2>>& parameters);
  VoxelBackbone(const VoxelBackbone&) = delete;
  VoxelBackbone& operator=(const VoxelBackbone&) = delete;
  ~VoxelBackbone();

  /// All layers, rulebooks included. May return before the device has finished. What it returns
  /// stands in memory of the network's, until the next call.
  /// @throws BadInput for sites outside of the grid, and for duplicates; UnsupportedProblem
  SparseRows forward(const SparseRows& input, const Watcher& watcher = {});

  /// What looks on at the way back: called after each layer, the last one first.
  using BackwardWatcher = std::function<void(std::size_t layer, const LayerGradients& gradients)>;

  /// The gradients of all weights and biases, and of all rows but the input's, after forward(); the
  /// rulebooks' other forms included. May return before the device has finished.
  /// @param dy [rows][channels] of what forward() returned; overwritten
  void backward(void* dy, const BackwardWatcher& watcher = {});

 private:
  /// What forward() leaves of a layer.
  struct Pass {
    NeighbourTable table;
    SparseRows x, y;
  };

  /// What a rung has found of a rulebook.
  struct FoundArray {
    const std::int32_t* data;
    std::int64_t rows;  ///< The first extent of its shape.
  };

  std::map<std::string, FoundArray> make_book(const Rung& rung, const RulebookProblem& book,
                                              const SparseRows& rows);
  static RulebookProblem book_of(const Window& window, const SparseRows& rows, RulebookForm form);
  NeighbourTable make_table(const RulebookProblem& book, const SparseRows& rows);
  PairList make_pairs(const RulebookProblem& book, const SparseRows& rows);
  SparseConvProblem problem_of(std::size_t layer, const NeighbourTable& table, int inputs) const;
  SparseRows convolve(std::size_t layer, const NeighbourTable& table, const SparseRows& rows);
  const float* weight_gradient(std::size_t layer, const PairList& list, const void* dy);
  void* input_gradient(std::size_t layer, const void* dy);
  std::size_t bytes_of_rows(int rows, int channels) const;
  void run(const Rung& rung, const Problem& problem, std::vector<Arguments::Slot> inputs,
           std::vector<Arguments::Slot> outputs, const Arguments::Creator& creator);

  Device& device_;
  const GradientSteps& steps_;
  BackboneRungs rungs_;
  DType dtype_;
  std::vector<std::array<void*, 2>> parameters_;  ///< By layer: weights, bias.
  RepeatedBlocks blocks_;
  std::vector<Pass> passes_;  ///< Of the last forward(), by layer.
};

}  // namespace convladder::benchmarks
