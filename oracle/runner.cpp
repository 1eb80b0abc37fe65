#include "oracle/runner.hpp"

#include <algorithm>
#include <chrono>
#include <cuda_on_cpu/control.hpp>
#include <new>
#include <utility>
#include <vector>

#include "oracle/canonical.hpp"
#include "oracle/guarded_memory.hpp"

namespace convladder {
namespace {

/// The device memory of cuda_on_cpu that is in use, to find out who leaves some behind. It knows of
/// what cudaMalloc and its kin gave; other places do not tell.
class AllocationsBefore {
 public:
  /// @param alone nobody else allocates meanwhile; without, all is taken for somebody else's
  AllocationsBefore(Where where, bool alone) : emulated_(where == Where::emulated && alone) {
    if (!emulated_) return;
    const auto alive = cuda_on_cpu::control::live_allocations();
    if (!alive.empty()) last_ = alive.back().number;
  }
  /// Empty, or what has been allocated since then and is still there.
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

/// @throws BadInput if the place has less memory than the problem's arrays take.
void require_memory(const Device& device, const Signature& signature) {
  const double bytes = array_bytes(signature);
  const auto free = static_cast<double>(device.free_bytes());
  require(bytes <= free, "memory", gigabytes(bytes),
          text("the problem needs more than the ", gigabytes(free), " that are free (",
               name_of(device.where()), ")"));
}

/// @throws OutOfMemory if the arrays leave less memory than the workspace takes.
void require_workspace(const Device& device, const Signature& signature,
                       std::size_t workspace_bytes) {
  const auto workspace = static_cast<double>(workspace_bytes);
  const double free = static_cast<double>(device.free_bytes()) - array_bytes(signature);
  if (workspace <= free) return;
  throw OutOfMemory(text("needs a workspace of ", gigabytes(workspace), ", more than the ",
                         gigabytes(free), " that the arrays leave free"));
}

Outcome differs(std::string reason) {
  return {.status = Status::differs, .reason = std::move(reason)};
}

/// Whether the rung refuses inputs in these words.
Outcome refused(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                const std::string& words, const AnyImplementation& code, Where where,
                const RunOptions& options) {
  try {
    run_guarded(ladder, problem, inputs, code, where, options);
  } catch (const OutOfMemory& error) {
    return {.status = Status::declined, .reason = error.reason};
  } catch (const DeviceError& error) {
    return differs(error.what());
  } catch (const BadInput& refusal) {
    if (std::string_view(refusal.what()).starts_with(words)) return {.status = Status::agrees};
    return differs(text("refuses its inputs with '", refusal.what(), "', and not '", words, "'"));
  }
  return differs(text("takes inputs that it must refuse: ", words));
}

}  // namespace

RungRun run_guarded(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                    const AnyImplementation& code, Where where, const RunOptions& options) {
  Device& device = *device_at(where);
  const Signature signature = ladder.signature(problem);
  const std::size_t workspace_bytes = code.workspace_bytes(problem);
  require_memory(device, signature);
  require_workspace(device, signature, workspace_bytes);
  RungRun result;
  const AllocationsBefore before(where, options.alone);
  try {
    // Around the run alone, a host that touches device memory is caught.
    std::optional<cuda_on_cpu::control::KeepMemoryOpen> open(std::in_place);
    RunMemory memory(device, signature, inputs, workspace_bytes, options);
    const Arguments arguments = memory.arguments();
    for (int run = 0; run <= options.warm_up_runs; ++run) {
      memory.reset();
      open.reset();
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
      open.emplace();
    }
    result.damage = memory.damage();
    if (result.damage.empty()) result.outputs = memory.outputs();
  } catch (const std::bad_alloc&) {
    throw BadInput(text("memory: not enough of it (", name_of(where), ") for ", describe(problem)));
  } catch (const BadInput& refusal) {
    if (const std::string left = before.left_behind(); !left.empty())
      throw DeviceError(text(left, ", as it refused its inputs: ", refusal.what()));
    throw;
  }
  if (result.damage.empty()) result.damage = before.left_behind();
  return result;
}

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, std::uint64_t seed,
                       Arrays given)
    : Comparison(ladder, problem, data,
                 make_inputs(ladder.signature(problem), data, seed,
                             longest_sum(ladder.name, problem), std::move(given))) {}

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, Arrays inputs)
    : ladder_(&ladder), problem_(problem), data_(data), inputs_(std::move(inputs)),
      expected_(reference(ladder.name, problem, inputs_)) {}

Outcome Comparison::run(const Rung& rung, Where where, const RunOptions& options) const {
  const auto& code = rung.code_at(where);
  Device* device = device_at(where);
  if (!code || device == nullptr) {
    return {.status = Status::skipped,
            .reason = where == Where::gpu && rung.is_cuda() ? why_no_gpu()
                                                            : "this rung does not run there"};
  }
  if (const Declined declined = code->supports(problem_)) {
    return {.status = Status::declined, .reason = *declined};
  }
  if (const auto* book = std::get_if<RulebookProblem>(&problem_); book && options.spoilt) {
    const auto& [kind, count, seed] = *options.spoilt;
    BadSites bad = bad_sites(*book, inputs_.at("coords"), kind, count, seed);
    if (!bad.refusal.empty()) {
      Arrays inputs = inputs_;
      inputs.insert_or_assign("coords", std::move(bad.coords));
      return refused(*ladder_, problem_, inputs, bad.refusal, *code, where, options);
    }
  }
  Outcome outcome;
  try {
    RungRun run = run_guarded(*ladder_, problem_, inputs_, *code, where, options);
    if (!run.damage.empty()) return differs(std::move(run.damage));
    outcome.outputs = std::move(run.outputs);
    outcome.milliseconds = run.milliseconds;
  } catch (const OutOfMemory& error) {
    return {.status = Status::declined, .reason = error.reason};
  } catch (const DeviceError& error) {
    return differs(error.what());
  }

  outcome.ran = true;
  outcome.status = Status::agrees;
  outcome.exact = true;
  const Arrays found = canonical(problem_, outcome.outputs);
  for (const Expected& expected : expected_) {
    const auto array = found.find(expected.spec.name);
    if (array == found.end()) continue;  // an optional one
    const Verdict verdict = judge(expected, array->second, data_, problem_, code->tile(problem_));
    outcome.exact = outcome.exact && verdict.exact;
    outcome.max_error = std::max(outcome.max_error, verdict.max_error);
    if (!verdict.agrees && outcome.status == Status::agrees) {
      outcome.status = Status::differs;
      outcome.reason = verdict.difference;
    }
  }
  return outcome;
}

}  // namespace convladder
