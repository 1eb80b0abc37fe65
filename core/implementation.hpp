/// @file implementation.hpp
/// @brief What a rung's file speaks: where it computes, what it declines, what it provides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

struct CUstream_st;  // what a cudaStream_t points to

namespace convladder {

/// A CUDA call or a kernel failed. The message says which, where, and why.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rung was called for a problem that it declines.
class UnsupportedProblem : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Where a run computes, beside its arrays.
struct Context {
  CUstream_st* stream = nullptr;  ///< Of a CUDA rung: a cudaStream_t. Null: the default stream.
  void* workspace = nullptr;      ///< As many bytes as the rung asks for, see Implementation; they
                                  ///< begin at a multiple of 256, their content is undefined.

  /// The workspace as elements.
  template <class T>
  T* workspace_as() const {
    return static_cast<T*>(workspace);
  }
};

/// The stream of the run that this thread is in. Whatever a rung launches, copies, allocates or
/// asks of a library goes there, without being told: two runs in two streams do not meet.
CUstream_st* current_stream();

/// Calls body(), and `stream` is the current one meanwhile. Null: the default stream.
void in_stream(CUstream_st* stream, const std::function<void()>& body);

/// Rows and columns of the last two output axes that one block computes, for messages.
struct OutputTile {
  int rows = 0, columns = 0;  ///< 0: there is no such tile.
};

/// @throws BadInput unless the workspace is there, if it must have so many bytes, and is aligned.
void require_workspace(std::size_t bytes, const void* workspace);
/// Why a rung declines a problem; nothing when it takes it.
using Declined = std::optional<std::string>;

/// What a rung's file provides: functions of its ladder's Problem, and of its arrays A. It can be
/// called as if it was the function itself:
///
///     direct/tiled(problem, {x, weights, bias, y}, {stream, workspace});
template <class A>
struct Implementation {
  using Problem = typename A::Problem;  ///< The ladder's.

  /// Nothing, or why this rung cannot take the problem. Null: takes every valid problem.
  Declined (*supports)(const Problem&) = nullptr;
  /// Scratch memory in bytes. Null: none.
  std::size_t (*workspace_bytes)(const Problem&) = nullptr;
  /// Computes all outputs. CUDA rungs may return before the device has finished. The caller owns
  /// all arrays, host memory for a CPU rung, device memory for a CUDA rung; inputs are not written.
  void (*run)(const Problem&, const A&, const Context&) = nullptr;
  /// Reads back what `run` left for the host, once the device has finished: a `run` without a wait
  /// can be recorded in a CUDA graph. @throws BadInput for what the kernels flagged. Null: nothing.
  void (*finish)(const Problem&, const A&, const Context&) = nullptr;
  /// The tile of outputs that a block computes. Null: the rung has no tiles.
  OutputTile (*tile)(const Problem&) = nullptr;
  /// The variant that the rung chooses for a problem that it takes, in one of few texts: by the
  /// problem alone, not by where arrays begin. Null: it does the same for all.
  std::string (*choice)(const Problem&) = nullptr;

  /// Runs the rung in context.stream; without a context, where the caller runs. finish(), where
  /// there is one, is up to the caller.
  /// @throws BadInput if what it needs is missing, UnsupportedProblem if it declines the problem
  void operator()(const Problem& problem, const A& arrays,
                  const Context& context = {current_stream()}) const {
    require_complete(problem, arrays);
    if (const Declined reason = supports ? supports(problem) : Declined{})
      throw UnsupportedProblem(*reason);
    require_workspace(workspace_bytes ? workspace_bytes(problem) : 0, context.workspace);
    in_stream(context.stream, [&] { run(problem, arrays, context); });
  }
};

/// The most blocks along an axis of a grid over which a kernel strides (see blocks_for()). Tests
/// lower it: few blocks do the work of many then, as where a grid would exceed CUDA's limits.
inline std::int64_t max_strided_blocks = std::numeric_limits<std::int64_t>::max();

}  // namespace convladder
