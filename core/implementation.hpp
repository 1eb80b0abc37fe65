/// @file implementation.hpp
/// @brief What a rung's file speaks: the arrays that it gets, what it declines, what it provides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace convladder {

/// A CUDA call or a kernel failed. The message says which, where, and why.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The arrays of one run, by name, where the rung computes: host memory for a CPU rung, device
/// memory for a CUDA rung. The caller owns them all; inputs must not be written.
class Arguments {
 public:
  /// An array of the run.
  struct Slot {
    std::string name;  ///< As in the ladder's Signature.
    DType dtype;       ///< Of its elements.
    void* data;        ///< Where the rung computes.
  };
  /// Allocates the output `name` with its final shape, and returns its memory.
  using Creator = std::function<void*(const std::string& name, DType dtype, const Shape& shape)>;

  /// @param creator called for dynamic outputs; it need not outlive the run
  Arguments(std::vector<Slot> inputs, std::vector<Slot> outputs, void* workspace, Creator creator)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), workspace_(workspace),
        creator_(std::move(creator)) {}

  /// An input's elements. @throws std::logic_error if there is none of that name and type.
  template <class T>
  const T* in(std::string_view name) const {
    return static_cast<const T*>(find(inputs_, name, dtype_of<T>(), "input"));
  }
  /// An input that not every problem has: null where it has not.
  template <class T>
  const T* in_or_null(std::string_view name) const {
    for (const Slot& slot : inputs_) {
      if (slot.name == name) return in<T>(name);
    }
    return nullptr;
  }
  /// An output's elements. @throws std::logic_error if there is none of that name and type.
  template <class T>
  T* out(std::string_view name) const {
    return static_cast<T*>(find(outputs_, name, dtype_of<T>(), "output"));
  }
  /// Creates an output whose size the rung had to find out first (ArraySpec::dynamic); once a run.
  template <class T>
  T* create(const std::string& name, const Shape& shape) const {
    return static_cast<T*>(creator_(name, dtype_of<T>(), shape));
  }
  /// The memory that workspace_bytes() asked for, aligned to 256 bytes; its content is undefined.
  template <class T>
  T* workspace() const {
    return static_cast<T*>(workspace_);
  }

 private:
  static void* find(const std::vector<Slot>& slots, std::string_view name, DType dtype,
                    const char* kind);

  std::vector<Slot> inputs_, outputs_;
  void* workspace_;
  Creator creator_;
};

/// Rows and columns of the last two output axes that one block computes, for messages.
struct OutputTile {
  int rows = 0, columns = 0;  ///< 0: there is no such tile.
};

/// Why a rung declines a problem; nothing when it takes it.
using Declined = std::optional<std::string>;

/// What a rung's file provides, all functions of its ladder's problem.
template <class P>
struct Implementation {
  /// Nothing, or why this rung cannot take the problem. Null: takes every valid problem.
  Declined (*supports)(const P&) = nullptr;
  /// Scratch memory in bytes. Null: none.
  std::size_t (*workspace_bytes)(const P&) = nullptr;
  /// Computes all outputs. CUDA rungs may return before the device has finished.
  void (*run)(const P&, const Arguments&) = nullptr;
  /// Reads back what `run` left for the host, once the device has finished: a `run` without a wait
  /// can be recorded in a CUDA graph. @throws BadInput for what the kernels flagged. Null: nothing.
  void (*finish)(const P&, const Arguments&) = nullptr;
  /// The tile of outputs that a block computes. Null: the rung has no tiles.
  OutputTile (*tile)(const P&) = nullptr;
  /// What the rung chooses for a problem that it takes: the variant, in a few words. It depends on
  /// the problem alone, not on where arrays begin. Few different texts a rung: no numbers that grow
  /// with the problem. Null: it does the same for all.
  std::string (*choice)(const P&) = nullptr;
};

/// The most blocks along an axis of a grid over which a kernel strides (see blocks_for()). Tests
/// lower it: then a few blocks must do the work of many, as they do where a grid would exceed
/// CUDA's limits.
inline std::int64_t max_strided_blocks = std::numeric_limits<std::int64_t>::max();

}  // namespace convladder
