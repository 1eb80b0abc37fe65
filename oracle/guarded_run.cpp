#include "oracle/guarded_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/watchdog.hpp>
#include <new>
#include <optional>
#include <utility>

#include "oracle/guarded_memory.hpp"

namespace convladder {
namespace {

/// The device memory of cuda_on_cpu in use, to detect leaks. It covers allocations by cudaMalloc
/// and similar functions; other places do not report their use.
class AllocationsBefore {
 public:
  /// @param alone no other thread allocates meanwhile; otherwise all allocations are attributed to
  /// others
  AllocationsBefore(Where where, bool alone) : emulated_(where == Where::emulated && alone) {
    if (!emulated_) return;
    const auto alive = cuda_on_cpu::control::live_allocations();
    if (!alive.empty()) last_ = alive.back().number;
  }
  /// Empty, or the allocations since then that still exist.
  std::string left_behind() const {
    if (!emulated_) return "";
    std::size_t count = 0, bytes = 0;
    for (const auto& allocation : cuda_on_cpu::control::live_allocations()) {
      if (allocation.number <= last_) continue;
      ++count;
      bytes += allocation.bytes;
    }
    return count == 0 ? ""
                      : text("left device memory behind: ", bytes, " bytes in ", count,
                             count == 1 ? " allocation" : " allocations");
  }

 private:
  bool emulated_;
  std::uint64_t last_ = 0;
};

double array_bytes(const Signature& signature) {
  double bytes = 0;
  for (const auto* specs : {&signature.inputs, &signature.outputs}) {
    for (const ArraySpec& spec : *specs) {
      bytes +=
          static_cast<double>(element_count(spec.shape)) * static_cast<double>(size_of(spec.dtype));
    }
  }
  return bytes;
}

}  // namespace

OverLimit::OverLimit(double seconds, double limit)
    : std::runtime_error(over_limit(seconds, limit)) {}

std::string over_limit(double seconds, double limit) {
  return text("would take about ", std::ceil(seconds), " s, more than the limit of ", limit, " s");
}

double slowness_of_this_machine() {
  static const double slowness = [] {
    // A chain of dependent additions: 4 cycles of a core each.
    constexpr int kAdditions = 200'000;
    constexpr double kExpected = 1.1e-9;  // seconds of one, on that machine
    double least = 1;
    for (int run = 0; run < 5; ++run) {  // the least of several: other programs run, too
      const auto start = std::chrono::steady_clock::now();
      volatile float addend = 1;
      float sum = 0;
      for (int i = 0; i < kAdditions; ++i) sum += addend;
      addend = sum;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      least = std::min(least, time.count());
    }
    return least / (kAdditions * kExpected);
  }();
  return slowness;
}

void require_memory(const Device& device, const Signature& signature, std::size_t workspace_bytes) {
  const double bytes = array_bytes(signature);
  const auto workspace = static_cast<double>(workspace_bytes);
  const auto free = static_cast<double>(device.free_bytes());
  require(bytes <= free, "memory", gigabytes(bytes),
          text("the problem needs more memory than the ", gigabytes(free), " available (",
               name_of(device.where()), ")"));
  if (workspace <= free - bytes) return;
  throw OutOfMemory(text("needs a workspace of ", gigabytes(workspace), ", more than the ",
                         gigabytes(free - bytes), " that the arrays leave free"));
}

RungRun run_guarded(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                    const AnyImplementation& code, Where where, const RunOptions& options) {
  Device& device = *device_at(where);
  const Signature signature = ladder.signature(problem);
  const std::size_t workspace_bytes = code.workspace_bytes(problem);
  require_memory(device, signature, workspace_bytes);
  RungRun result;
  const AllocationsBefore before(where, options.alone);
  std::optional<cuda_on_cpu::control::Watchdog> watchdog;
  if (where == Where::emulated && options.limit > 0)
    watchdog.emplace(std::chrono::duration<double>(options.limit));
  try {
    // Around the run alone, so that host accesses to device memory are detected.
    std::optional<cuda_on_cpu::control::KeepMemoryOpen> open(std::in_place);
    RunMemory memory(device, signature, inputs, workspace_bytes, options);
    const Arguments arguments = memory.arguments();
    for (int run = 0; run <= options.warm_up_runs; ++run) {
      memory.reset();
      open.reset();
      std::optional<RunMemory::GuardsForbidden> forbidden(memory);
      device.synchronize();
      const auto start = std::chrono::steady_clock::now();
      try {
        code.run(problem, arguments);
      } catch (const std::bad_alloc&) {
        throw OutOfMemory("asks for more memory, while it runs, than is free");
      }
      device.synchronize();
      code.finish(problem, arguments);
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - start;
      result.milliseconds = time.count();
      forbidden.reset();
      open.emplace();
    }
    result.damage = memory.damage();
    if (result.damage.empty()) result.outputs = memory.outputs();
  } catch (const std::bad_alloc&) {
    throw BadInput(text("memory: not enough of it (", name_of(where), ") for ", describe(problem)));
  } catch (const DeviceError&) {
    const double estimate = watchdog ? watchdog->estimate().count() : 0;
    if (estimate > 0) throw OverLimit(estimate, options.limit);
    throw;
  } catch (const BadInput& refusal) {
    if (const std::string left = before.left_behind(); !left.empty())
      throw DeviceError(text(left, ", as it refused its inputs: ", refusal.what()));
    throw;
  }
  if (result.damage.empty()) result.damage = before.left_behind();
  return result;
}

}  // namespace convladder
