/// @file guarded_run.hpp
/// @brief Runs a rung on guarded, poisoned memory. The comparison with the reference is separate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/device.hpp"
#include "core/rung.hpp"
#include "oracle/data.hpp"
#include "oracle/made_up_sites.hpp"

namespace convladder {

/// Options of a run.
struct RunOptions {
  /// Each array begins this many bytes after a 256-byte boundary; a multiple of the element size.
  std::size_t misalignment = 0;
  /// Offsets of individual arrays by name, which override the common one. Names of arrays that the
  /// problem does not have are ignored. The workspace ("the workspace") is aligned as required by
  /// Context::workspace, unless it is named here.
  std::map<std::string, std::size_t, std::less<>> offsets = {};
  /// Untimed runs before the timed one (a GPU's first launch loads code).
  int warm_up_runs = 0;
  /// Fills outputs, workspaces and guard bands with NaN first. It is switched off only under a tool
  /// that detects reads of unwritten memory, which the fill would hide.
  bool poison = true;
  /// On the CPU, an asynchronous copy that reads a guard band is an error of the kernel, and in a
  /// build with AddressSanitizer every access to one ends the program: thus reads are detected that
  /// do not affect the result. Not for tests that access them deliberately.
  bool forbid_guards = false;
  /// Makes some rows of a rulebook's `coords` invalid: a rung then agrees if it rejects them with
  /// the reference's message. (Other ladders assume sites that a rulebook has checked.)
  struct Spoilt {
    BadSite kind;        ///< Kind of error.
    std::int64_t count;  ///< The most rows.
    std::uint64_t seed;  ///< Seed of the rows and values.
  };
  std::optional<Spoilt> spoilt = {};  ///< Likewise.
  CUstream_st* stream = nullptr;      ///< Stream of a CUDA rung; null: the default stream.
  /// Called with the address of each array, including "the workspace", before the rung runs or when
  /// it creates the array. May be empty.
  std::function<void(const std::string& name, const void* data, std::size_t bytes, DType dtype)>
      placed = {};
  /// Time limit of the run in seconds; 0: none. A C++ rung is not started if it is expected to
  /// exceed the limit. An emulated kernel is ended as soon as its first blocks show that it will.
  double limit = 0;
  /// The expected time of a C++ rung in seconds on the machine of ladders/best_rung.hpp; empty:
  /// unknown.
  std::function<double(const Rung&)> expected_seconds = {};
  /// No other thread uses the device meanwhile, so that leaks can be detected.
  bool alone = true;
};

/// The results of one run of a rung.
struct RungRun {
  Arrays outputs = {};      ///< By name.
  std::string damage = {};  ///< A forbidden effect of the run on memory; empty: none.
  double milliseconds = 0;  ///< The time of the rung itself, host clock, without copies.
};

/// The arrays fit into memory, but not the further memory that a rung needs.
class OutOfMemory : public BadInput {
 public:
  /// @param why "needs a workspace of ..."
  explicit OutOfMemory(const std::string& why) : BadInput("memory: the rung " + why), reason(why) {}

  std::string reason;  ///< As given.
};

/// The run would exceed RunOptions::limit.
class OverLimit : public std::runtime_error {
 public:
  /// @param seconds the estimated time @param limit see over_limit()
  OverLimit(double seconds, double limit);
};

/// "would take about 199 s, more than the limit of 20 s": the reason why a rung is not run.
std::string over_limit(double seconds, double limit);

/// The ratio of this machine's time to that of the machine of expected_seconds() (below 1: faster),
/// measured by a short loop at the first call.
double slowness_of_this_machine();

/// @throws BadInput if a device has less free memory than the arrays of `signature` take, and
/// OutOfMemory if the remaining memory is less than the workspace.
void require_memory(const Device& device, const Signature& signature, std::size_t workspace_bytes);

/// Runs a rung that supports the problem, on memory in which invalid accesses are detected:
/// - outputs and workspace start as NaN, between guard bands that must not be changed;
/// - inputs must be unchanged afterwards;
/// - on cuda_on_cpu, which counts allocations, a rung must free all device memory that it
///   allocates.
///   (Pinned memory of the host is not counted: messages are kept for the next run.)
/// @throws BadInput if the problem does not fit into the memory there, OutOfMemory if the rung's
/// workspace or other allocations do not, OverLimit if it would take too long, DeviceError if a
/// call fails.
RungRun run_guarded(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                    const AnyImplementation& code, Where where, const RunOptions& options = {});

}  // namespace convladder
