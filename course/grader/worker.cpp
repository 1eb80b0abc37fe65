/// @file worker.cpp
/// @brief Runs one rung, written by a student, on one problem. It knows no right result.
///
/// What it needs lies in descriptors (message.hpp). They are closed, and what they held is taken
/// over, before any code of the student's runs: also before the initialisers of its statics.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_on_cpu/control.hpp>
#include <new>
#include <optional>
#include <stdexcept>

#include "check/assignment.hpp"
#include "check/blanks.hpp"
#include "check/trial.hpp"
#include "core/error.hpp"
#include "course/grader/message.hpp"
#include "course/grader/own_symbols.hpp"
#include "course/grader/worker_counters.hpp"
#include "oracle/guarded_run.hpp"

namespace convladder::grader {
namespace {

struct Memory {
  std::span<std::byte> problem;  ///< Read-only.
  std::span<std::byte> result;
};

std::span<std::byte> take(int file, int protection) {
  const auto bytes = static_cast<std::size_t>(lseek(file, 0, SEEK_END));
  const int sharing = (protection & PROT_WRITE) != 0 ? MAP_SHARED : MAP_PRIVATE;
  void* const memory = mmap(nullptr, bytes, protection, sharing, file, 0);
  if (memory == MAP_FAILED) _exit(124);
  close(file);
  return {static_cast<std::byte*>(memory), bytes};
}

/// The only ones with a priority: the student's file may not have any.
Memory& memory() {
  static Memory both;
  return both;
}
__attribute__((constructor(101))) void take_all() {
  memory() = {take(kCaseFile, PROT_READ), take(kResultFile, PROT_READ | PROT_WRITE)};
  take_symbols(kSymbolFile);
  close(kSymbolFile);
}

/// Sets max_strided_blocks, the threads and their order.
void set_up(const check::Trial& trial, std::uint32_t order, std::uint64_t seed) {
  if (trial.most_blocks) max_strided_blocks = *trial.most_blocks;
  cuda_on_cpu::control::set_worker_threads(1);
  cuda_on_cpu::control::set_thread_order(static_cast<cuda_on_cpu::control::ThreadOrder>(order),
                                         seed);
}

Outcome run(const check::Judged& judged, const check::Trial& trial, const Arrays& inputs,
            RunOptions options) {
  const Where where = judged.rung->is_cuda() ? Where::emulated : Where::cpu;
  const AnyImplementation& code = *judged.rung->code_at(where);
  options.misalignment = trial.offset;
  Outcome outcome;
  if (const Declined declined = code.supports(trial.problem)) {
    outcome.status = Status::declined;
    outcome.reason = *declined;
    return outcome;
  }
  RungRun ended = run_guarded(*judged.ladder, trial.problem, inputs, code, where, options);
  outcome.status = ended.damage.empty() ? Status::agrees : Status::differs;
  outcome.reason = ended.damage;
  outcome.outputs = std::move(ended.outputs);
  return outcome;
}

void answer(Reader& problem, Writer& result) {
  const std::string words = problem.string();
  const auto order = problem.value<std::uint32_t>();
  const auto seed = problem.value<std::uint64_t>();
  const std::string wanted = problem.string();  // counters, with blanks between them
  const check::Judged judged{&check::ladders().front(), &check::ladders().front().rungs.front()};
  const check::Trial trial = check::read_trial(judged.ladder->name, check::split(words));
  Arrays inputs;
  for (const ArraySpec& spec : judged.ladder->signature(trial.problem).inputs)
    inputs.emplace(spec.name, problem.array());
  set_up(trial, order, seed);

  const auto say = [&](Ending ending, const std::string& reason) {
    result.value(ending);
    result.string(reason);
  };
  Outcome outcome;
  std::optional<Counted> counted;
  try {
    const auto once = [&](const RunOptions& options) {
      return run(judged, trial, inputs, options);
    };
    if (wanted.empty()) {
      outcome = once({});
    } else {
      counted = count(judged, trial, wanted, [&](const RunOptions& options) {
        outcome = once(options);
        return outcome;
      });
    }
  } catch (const OutOfMemory& error) {
    return say(Ending::memory, error.reason);
  } catch (const BadInput& refusal) {
    return say(Ending::refused, refusal.what());
  } catch (const std::bad_alloc&) {
    return say(Ending::memory, "asks for more memory than it may have");
  } catch (const std::exception& error) {
    outcome.status = Status::differs;
    outcome.reason = error.what();
  }
  if (const std::string blank = check::take_reached_blank(); !blank.empty())
    return say(Ending::not_written, blank);
  if (outcome.status == Status::declined) return say(Ending::declined, outcome.reason);
  if (outcome.status != Status::agrees) return say(Ending::damaged, outcome.reason);
  say(Ending::ran, "");
  result.value(static_cast<std::uint32_t>(outcome.outputs.size()));
  for (const auto& [name, array] : outcome.outputs) {
    result.string(name);
    result.array(array);
  }
  if (!counted) return;
  const auto numbers = [&](const std::map<std::string, double>& named) {
    result.value(static_cast<std::uint32_t>(named.size()));
    for (const auto& [name, value] : named) result.string(name), result.value(value);
  };
  numbers(counted->counters);
  numbers(counted->footprint);
  for (const auto* sentences : {&counted->races, &counted->unwritten}) {
    result.value(static_cast<std::uint32_t>(sentences->size()));
    for (const std::string& sentence : *sentences) result.string(sentence);
  }
}

int work() {
  Reader problem(memory().problem);
  const auto nonce = problem.value<Nonce>();
  Writer result(memory().result);
  result.value(Nonce{});  // its place
  try {
    answer(problem, result);
  } catch (const std::length_error&) {  // of the rung's outputs
    result = Writer(memory().result);
    result.value(Nonce{});
    result.value(Ending::damaged);
    result.string("its outputs are larger than they can be");
  }
  std::fflush(nullptr);
  Writer(memory().result).value(nonce);
  return 0;
}

}  // namespace
}  // namespace convladder::grader

int main() {
  // Nothing behind it: what the student's file registered for the end has nothing to say.
  _exit(convladder::grader::work());
}
