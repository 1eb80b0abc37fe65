#include "check/run.hpp"

#include <cuda_on_cpu/control.hpp>

#include "check/blanks.hpp"
#include "core/text.hpp"

namespace convladder::check {
namespace {

/// Sets max_strided_blocks for as long as it lives.
class FewBlocks {
 public:
  explicit FewBlocks(std::optional<std::int64_t> most) {
    if (most) max_strided_blocks = *most;
  }
  FewBlocks(const FewBlocks&) = delete;
  FewBlocks& operator=(const FewBlocks&) = delete;
  ~FewBlocks() { max_strided_blocks = before_; }

 private:
  std::int64_t before_ = max_strided_blocks;
};

}  // namespace

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::agrees: return "agrees";
    case Ending::differs: return "differs";
    case Ending::declined: return "declined";
    case Ending::not_written: return "not written";
  }
  return "";
}

Where place_of(const Rung& rung) { return rung.is_cuda() ? Where::emulated : Where::cpu; }

Outcome run_once(const Judged& judged, const Trial& trial, RunOptions options) {
  options.misalignment = trial.offset;
  options.spoilt = trial.spoilt;
  const FewBlocks few(trial.most_blocks);
  const Comparison comparison(*judged.ladder, trial.problem, Data::integer, kSeed, trial.given);
  return comparison.run(*judged.rung, place_of(*judged.rung), options);
}

Result try_out(const Judged& judged, const Trial& trial) {
  using cuda_on_cpu::control::ThreadOrder;
  struct Order {
    ThreadOrder order;
    const char* name;
  };
  for (const Order& one :
       {Order{ThreadOrder::forward, "forward"}, Order{ThreadOrder::reverse, "in reverse"},
        Order{ThreadOrder::shuffled, "shuffled"}}) {
    cuda_on_cpu::control::set_thread_order(one.order, kSeed);
    take_reached_blank();
    Outcome outcome;
    try {
      outcome = run_once(judged, trial);
    } catch (const std::exception& error) {
      outcome = {.status = Status::differs, .reason = error.what()};
    }
    if (const std::string blank = take_reached_blank(); !blank.empty())
      return {Ending::not_written, blank + " is not written yet"};
    if (outcome.status == Status::declined) return {Ending::declined, outcome.reason};
    if (outcome.status != Status::agrees) {
      const std::string when = judged.rung->is_cuda() ? text("threads ", one.name, ": ") : "";
      return {Ending::differs, when + outcome.reason};
    }
    if (!judged.rung->is_cuda()) break;  // there is one thread
  }
  return {};
}

}  // namespace convladder::check
