/// @file implementation.hpp
/// @brief The interface that every rung implements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

struct CUstream_st;  // the type that a cudaStream_t points to

namespace convladder {

/// A CUDA call or a kernel failed. The message names the call, its location and the reason.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rung was called for a problem that it does not support.
class UnsupportedProblem : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The context of a run beside its arrays.
struct Context {
  CUstream_st* stream = nullptr;  ///< CUDA rungs: a cudaStream_t. Null: the default stream.
  void* workspace = nullptr;      ///< The number of bytes that the rung requires, see
                                  ///< Implementation; aligned to 256 bytes, with undefined content.

  /// The workspace as elements of type T.
  template <class T>
  T* workspace_as() const {
    return static_cast<T*>(workspace);
  }
};

/// The stream of the run on this thread. All launches, copies, allocations and library calls of a
/// rung use it implicitly: runs in different streams do not interfere.
CUstream_st* current_stream();

/// Calls body() with `stream` as the current stream. Null: the default stream.
void in_stream(CUstream_st* stream, const std::function<void()>& body);

/// Rows and columns of the last two output axes that one block computes, for messages.
struct OutputTile {
  int rows = 0, columns = 0;  ///< 0: there is no such tile.
};

/// @throws BadInput unless the workspace is present if bytes are required, and is aligned.
void require_workspace(std::size_t bytes, const void* workspace);
/// The reason why a rung does not support a problem; empty if it does.
using Declined = std::optional<std::string>;

/// The implementation of a rung: functions of its ladder's Problem and of its arrays A. It can be
/// called like a function:
///
///     direct/tiled(problem, {x, weights, bias, y}, {stream, workspace});
template <class A>
struct Implementation {
  using Problem = typename A::Problem;  ///< The problem type of the ladder.

  /// Empty, or the reason why a problem is not supported. Null: all valid problems are supported.
  Declined (*supports)(const Problem&) = nullptr;
  /// Workspace in bytes. Null: none.
  std::size_t (*workspace_bytes)(const Problem&) = nullptr;
  /// Computes all outputs. CUDA rungs may return before the device has finished. The caller owns
  /// all arrays: host memory for a CPU rung, device memory for a CUDA rung. Inputs are not changed.
  void (*run)(const Problem&, const A&, const Context&) = nullptr;
  /// Reads back the errors that kernels have found, after the device has finished: a `run` without
  /// a wait can be recorded in a CUDA graph. @throws BadInput for an error. Null: nothing to read.
  void (*finish)(const Problem&, const A&, const Context&) = nullptr;
  /// The tile of outputs that a block computes. Null: the rung has no tiles.
  OutputTile (*tile)(const Problem&) = nullptr;
  /// The variant that the rung selects for a supported problem, as one of a few texts. It depends
  /// on the problem only, not on the alignment of arrays. Null: there is one variant.
  std::string (*choice)(const Problem&) = nullptr;

  /// Runs the rung in context.stream, by default the caller's stream. The caller calls finish().
  /// @throws BadInput if an array is missing, UnsupportedProblem if the problem is not supported
  void operator()(const Problem& problem, const A& arrays,
                  const Context& context = {current_stream()}) const {
    require_complete(problem, arrays);
    if (const Declined reason = supports ? supports(problem) : Declined{})
      throw UnsupportedProblem(*reason);
    require_workspace(workspace_bytes ? workspace_bytes(problem) : 0, context.workspace);
    in_stream(context.stream, [&] { run(problem, arrays, context); });
  }
};

/// The most blocks along an axis of the grid of a kernel with a grid-stride loop (blocks_for()).
/// Tests lower it, so that few blocks do the work of many.
inline std::int64_t max_strided_blocks = std::numeric_limits<std::int64_t>::max();

}  // namespace convladder
