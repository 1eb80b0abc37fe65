/// @file guarded_run.hpp
/// @brief Runs a rung on guarded, poisoned memory. What is right, it does not know.
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

/// How to run a rung.
struct RunOptions {
  /// Each array begins this many bytes after a 256-byte boundary; a multiple of the element size.
  std::size_t misalignment = 0;
  /// By name, the arrays that begin elsewhere: so many bytes after a boundary instead. Names of
  /// arrays that the problem has not mean nothing. The workspace ("the workspace") is aligned, as
  /// Context::workspace promises, unless it is named here.
  std::map<std::string, std::size_t, std::less<>> offsets = {};
  /// Untimed runs before the one that counts (a GPU's first launch loads code).
  int warm_up_runs = 0;
  /// Fills outputs, workspaces and guard bands with NaN first. Off only under a tool that looks for
  /// reads of unwritten memory, which the fill would hide.
  bool poison = true;
  /// On the CPU, an asynchronous copy that reads a guard band is the kernel's error, and in a build
  /// with AddressSanitizer, whatever touches one ends the program: so reads show of which nothing
  /// comes. Not for what strays on purpose.
  bool forbid_guards = false;
  /// Makes some rows of a rulebook's `coords` unusable: then a rung agrees if it refuses them with
  /// the reference's words. (Other ladders take sites for granted that a rulebook has checked.)
  struct Spoilt {
    BadSite kind;        ///< What is wrong with them.
    std::int64_t count;  ///< Of rows, at most.
    std::uint64_t seed;  ///< Of which rows, and how.
  };
  std::optional<Spoilt> spoilt = {};  ///< Likewise.
  CUstream_st* stream = nullptr;      ///< Where a CUDA rung runs; null: the default stream.
  /// Told where each array lies, "the workspace" among them, before the rung runs or as it creates
  /// it. May be empty.
  std::function<void(const std::string& name, const void* data, std::size_t bytes, DType dtype)>
      placed = {};
  /// Seconds that the run may take; 0: as long as it takes. A rung of C++ is not begun if it is
  /// expected to take longer. An emulated kernel is ended as soon as its first blocks show it.
  double limit = 0;
  /// Seconds that a rung of C++ is expected to take on the machine of ladders/best_rung.hpp; empty:
  /// nobody knows.
  std::function<double(const Rung&)> expected_seconds = {};
  /// No other thread uses the device meanwhile, so that memory which the run leaves behind is seen.
  bool alone = true;
};

/// What one run of a rung left behind.
struct RungRun {
  Arrays outputs = {};      ///< By name.
  std::string damage = {};  ///< What the run must not have done to memory; empty: nothing.
  double milliseconds = 0;  ///< The rung's own run, host clock, without copies.
};

/// The arrays fit, but not what a rung needs beside them.
class OutOfMemory : public BadInput {
 public:
  /// @param why "needs a workspace of ..."
  explicit OutOfMemory(const std::string& why) : BadInput("memory: the rung " + why), reason(why) {}

  std::string reason;  ///< As given.
};

/// The run would take longer than RunOptions::limit.
class OverLimit : public std::runtime_error {
 public:
  /// @param seconds what it is estimated to take @param limit see over_limit()
  OverLimit(double seconds, double limit);
};

/// "would take about 199 s, more than the limit of 20 s": why something is not run.
std::string over_limit(double seconds, double limit);

/// How many times slower this machine is than the one of expected_seconds() (below 1: faster): by
/// the time of a short loop, when it is first asked for.
double slowness_of_this_machine();

/// @throws BadInput if a device has less free memory than the arrays of `signature` take, and
/// OutOfMemory if these leave less than a workspace takes.
void require_memory(const Device& device, const Signature& signature, std::size_t workspace_bytes);

/// Runs a rung that supports the problem, on memory where stray accesses show:
/// - outputs and workspace start as NaN, between guard bands that must stay untouched;
/// - inputs must be unchanged afterwards;
/// - on cuda_on_cpu, which counts it, a rung must give back all device memory that it allocates.
///   (Pinned memory of the host is not counted: messages are kept for the next run.)
/// @throws BadInput if the problem does not fit into the memory there, OutOfMemory if the rung's
/// workspace, or whatever else it allocates, does not, OverLimit if it would take too long,
/// DeviceError if a call fails.
RungRun run_guarded(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                    const AnyImplementation& code, Where where, const RunOptions& options = {});

}  // namespace convladder
