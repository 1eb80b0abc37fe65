#include "tests/check.hpp"

#include <algorithm>
#include <cstring>
#include <cuda_on_cpu/control.hpp>
#include <utility>

#include "core/device.hpp"
#include "tests/ladders/ladder_tests.hpp"

namespace convladder::testing {
namespace {

/// Blocks an axis in the last run of CUDA rungs, so that every loop over a grid goes round (as
/// Caffe's tests do, which launch a half to an eighth of the blocks).
constexpr int kFewBlocks = 3;

/// What tells the runs of a rung on the same data apart.
struct Variation {
  int order;        ///< Of cuda_on_cpu's threads, see set_emulated_thread_order().
  bool few_blocks;  ///< On cuda_on_cpu in the order in which any thread may run on before others.
};

/// The runs of a rung on the same data.
/// @param data real: two runs, whose bits are compared. Exact: where races show, so on cuda_on_cpu
/// in each order, but for the one in which real data run, too
/// @param both_modes whether there are runs on real data
/// @param told_by_bits whether a mistake in the last order shows on real data as well as on
/// integers, since the bits there are compared with those of another order
std::vector<Variation> variations(Where where, Data data, bool both_modes, bool all_orders,
                                  bool told_by_bits) {
  const bool exact = data == Data::integer;
  switch (where) {
    case Where::cpu:
      return exact && both_modes ? std::vector<Variation>{{0, false}}
                                 : std::vector<Variation>{{0, false}, {0, false}};
    case Where::gpu: return {{0, false}, {0, true}};
    case Where::emulated: break;
  }
  if (!exact || !all_orders) return {{0, false}, {2, true}};
  if (told_by_bits) return {{1, false}};
  if (both_modes) return {{1, false}, {2, true}};
  return {{0, false}, {1, false}, {2, true}};
}

std::string name_of(Where where, const Variation& variation, std::size_t run) {
  std::string name = text("run ", run + 1);
  if (where == Where::emulated) name = text("threads ", name_of_thread_order(variation.order));
  if (variation.few_blocks) name += text(", at most ", kFewBlocks, " blocks a strided axis");
  return name;
}

/// Bytes of a workspace that kernels on the CPU can go through in less than a second. A bit for
/// each of 2^31 cells takes them half a minute.
constexpr std::size_t kMostEmulated = std::size_t{128} << 20;

/// Sets max_strided_blocks for as long as it lives.
class StridedBlocks {
 public:
  explicit StridedBlocks(std::int64_t most) { max_strided_blocks = most; }
  StridedBlocks(const StridedBlocks&) = delete;
  StridedBlocks& operator=(const StridedBlocks&) = delete;
  ~StridedBlocks() { max_strided_blocks = old_; }

 private:
  std::int64_t old_ = max_strided_blocks;
};

/// Whether an array may begin where the problem asks, at a multiple of its elements' size. (Arrays
/// of 16 bits can begin where those of 32 cannot.)
bool may_begin_there(const TestProblem& problem, const ArraySpec& spec) {
  return problem.misalignment % size_of(spec.dtype) == 0;
}

/// All arrays of a signature.
std::vector<ArraySpec> arrays_of(const Signature& signature) {
  std::vector<ArraySpec> all = signature.inputs;
  all.insert(all.end(), signature.outputs.begin(), signature.outputs.end());
  return all;
}

/// Whether this is true of any of them: else it is the problem with all arrays aligned.
bool some_may_begin_there(const TestProblem& problem, const Signature& signature) {
  return std::ranges::any_of(arrays_of(signature),
                             [&](const ArraySpec& spec) { return may_begin_there(problem, spec); });
}

/// Where the arrays of one run lie.
struct Placement {
  RunOptions options;
  std::string alone = {};  ///< The one that is misaligned; empty: all are, or none is.
};

/// A problem whose arrays are misaligned runs with all of them so, and with one of them alone,
/// alternating over runs and problems, so that two or three problems suffice for each.
/// @param turn how many placements of one array alone came before
Placement placement(const TestProblem& problem, std::size_t turn, const Signature& signature,
                    const CheckOptions& options, bool all) {
  std::vector<std::string> names;
  auto offsets = problem.offsets;
  for (const ArraySpec& spec : arrays_of(signature)) {
    if (may_begin_there(problem, spec)) {
      names.push_back(spec.name);
    } else {
      offsets.emplace(spec.name, 0);
    }
  }
  if (problem.misalignment == 0 || !problem.offsets.empty() || all)
    return {{.misalignment = problem.misalignment,
             .offsets = std::move(offsets),
             .poison = options.poison,
             .forbid_guards = options.forbid_guards}};
  const std::string& alone = names[turn % names.size()];
  return {{.offsets = {{alone, problem.misalignment}},
           .poison = options.poison,
           .forbid_guards = options.forbid_guards},
          alone};
}

bool same_bits(const Arrays& a, const Arrays& b) {
  for (const auto& [name, array] : a) {
    const Array& other = b.at(name);
    if (array.shape() != other.shape()) return false;
    if (array.size_bytes() != 0 &&
        std::memcmp(array.data(), other.data(), array.size_bytes()) != 0) {
      return false;
    }
  }
  return true;
}

/// Whether the modes differ: not where no input, or only given ones, hold numbers.
bool has_made_up_data(const Ladder& ladder, const TestProblem& problem) {
  const Signature signature = ladder.signature(problem.problem);
  return std::ranges::any_of(
      signature.inputs, [&](const ArraySpec& spec) { return !problem.given.contains(spec.name); });
}

/// Compares the rung with the reference in one mode, in all runs. Returns a line for each failure.
/// @param turn of the problems with misaligned arrays, so many came before
/// @param both_modes whether real data have their turn, too
std::vector<std::string> check_mode(const Comparison& comparison, const Rung& rung, Where where,
                                    Data data, bool both_modes, const TestProblem& problem,
                                    std::size_t turn, const CheckOptions& options,
                                    int& comparisons) {
  const Signature signature = comparison.ladder().signature(comparison.problem());
  Arrays first;
  // Misaligned arrays want more runs, see placement().
  const bool told_by_bits = both_modes && rung.deterministic && problem.misalignment == 0;
  std::vector<Variation> runs =
      variations(where, data, both_modes, options.all_orders, told_by_bits);
  if (problem.once) runs.resize(1);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const Variation& variation = runs[run];
    if (where == Where::emulated) set_emulated_thread_order(variation.order, options.seed);
    const bool few_blocks = variation.few_blocks && problem.size != Size::huge;
    const StridedBlocks strided(few_blocks ? kFewBlocks : max_strided_blocks);
    // Of rounded sums the bits are compared: there all runs take the same path.
    const std::size_t first_alone = both_modes ? 0 : 1;
    const bool all = run < first_alone || data != Data::integer;
    const std::size_t alone_before =
        all ? 0 : turn * (runs.size() - first_alone) + run - first_alone;
    const Placement placed = placement(problem, alone_before, signature, options, all);
    Outcome outcome = comparison.run(rung, where, placed.options);
    const std::string prefix =
        text(name_of(data), " data, ", name_of(where, variation, run),
             placed.alone.empty() ? "" : text(", only ", placed.alone, " misaligned"), ": ");
    if (outcome.status != Status::agrees) return {prefix + outcome.reason};
    if (data == Data::integer && !outcome.exact) return {prefix + "agrees, but is not exact"};
    ++comparisons;
    if (run == 0) {
      first = std::move(outcome.outputs);
    } else if (rung.deterministic && !same_bits(first, outcome.outputs)) {
      return {prefix + "not the bits of the run before, although the rung is deterministic"};
    }
  }
  return {};
}

void add_failure(CheckReport& report, const TestProblem& problem, const std::string& what) {
  report.failures.push_back(text(title_of(problem), ": ", what));
}

/// Compares the rung with the reference on one form of a problem, in all modes.
/// @param turn as check_mode()
void check_form(const Ladder& ladder, const Rung& rung, Where where, const TestProblem& problem,
                std::size_t turn, const Problem& form, const CheckOptions& options,
                CheckReport& report) {
  std::vector<Data> modes = {Data::integer};
  if (options.real_mode && !problem.once && !problem.exact_only &&
      has_made_up_data(ladder, problem))
    modes.push_back(Data::real);
  if (problem.equal_sums) modes = {Data::positive};
  if (exactness_of(form) == Exactness::never) modes = {Data::real};
  if (exactness_of(form) == Exactness::always) modes = {Data::integer};
  for (const Data data : modes) {
    const Comparison comparison(ladder, form, data, options.seed, problem.given);
    const std::vector<std::string> failures =
        check_mode(comparison, rung, where, data, modes.size() > 1, problem, turn, options,
                   report.comparisons);
    for (const std::string& failure : failures) {
      add_failure(report, problem, text("as ", describe(form), ": ", failure));
    }
    if (!failures.empty()) return;
  }
}

}  // namespace

const char* name_of_thread_order(int run) {
  constexpr const char* names[kThreadOrderCount] = {"forward", "reverse", "shuffled"};
  return names[std::min(run, kThreadOrderCount - 1)];
}

void set_emulated_thread_order(int run, std::uint64_t seed) {
  using cuda_on_cpu::control::ThreadOrder;
  constexpr ThreadOrder orders[kThreadOrderCount] = {ThreadOrder::forward, ThreadOrder::reverse,
                                                     ThreadOrder::shuffled};
  cuda_on_cpu::control::set_thread_order(orders[std::min(run, kThreadOrderCount - 1)],
                                         seed + static_cast<std::uint64_t>(run));
}

CheckOptions options_for(const Settings& settings) {
  CheckOptions options{.seed = settings.seed, .poison = settings.poison};
  if (settings.huge) options.largest = Size::huge;
  if (settings.small) {
    // A sanitizer sees the same code in both modes, and in all orders.
    options.largest = Size::small;
    options.random_problems = 4;
    options.real_mode = false;
    options.all_orders = false;
  }
  return options;
}

namespace {

/// What a rung takes of a problem.
struct Accepted {
  std::vector<Problem> forms;  ///< Of each layout, type and so on the first that it takes.
  std::string reasons;         ///< Why it declined others; each once.
  bool gives_reasons = true;   ///< Each time.
};

Accepted accepted_forms(const Problem& problem, const AnyImplementation& code) {
  Accepted accepted;
  for (const std::vector<Problem>& forms : forms_of(problem)) {
    for (const Problem& form : forms) {
      const Declined declined = code.supports(form);
      if (!declined) {
        accepted.forms.push_back(form);
        break;
      }
      accepted.gives_reasons = accepted.gives_reasons && !declined->empty();
      std::string& reasons = accepted.reasons;
      if (reasons.find(*declined) == std::string::npos)
        reasons += (reasons.empty() ? "" : "; ") + *declined;
    }
  }
  return accepted;
}

}  // namespace

std::vector<FixedProblem> taken_of(const std::vector<TestProblem>& problems,
                                   const AnyImplementation& code) {
  std::vector<FixedProblem> list;
  for (const TestProblem& problem : problems) {
    Accepted accepted = accepted_forms(problem.problem, code);
    FixedProblem& fixed = list.emplace_back(
        FixedProblem{problem.id, title_of(problem), {}, std::move(accepted.reasons)});
    for (const Problem& form : accepted.forms) fixed.forms.push_back(name_of_form(form));
  }
  return list;
}

ChoiceCounts choices_of(const std::vector<TestProblem>& problems, const std::string& ladder,
                        const AnyImplementation& code) {
  ChoiceCounts counts;
  const auto add_up = [&](const char* what, std::int64_t number) {
    if (number != 0) counts[text("in all: ", what)] += number;
  };
  const auto count = [&](const Problem& form) {
    const std::string words = code.choice(form);
    if (!words.empty()) ++counts[words];
    add_up("rows of tiles", code.tile(form).rows);
    add_up("columns of tiles", code.tile(form).columns);
  };
  for (const TestProblem& problem : problems) {
    for (const Problem& form : accepted_forms(problem.problem, code).forms) {
      count(form);
      add_up("bytes of workspace", static_cast<std::int64_t>(code.workspace_bytes(form)));
    }
  }
  for (const Problem& limit : tests_of(ladder).limits()) {
    for (const std::vector<Problem>& forms : forms_of(limit)) {
      for (const Problem& form : forms) {
        try {
          code.supports(form) ? void(++counts[kDeclinesLimits]) : count(form);
        } catch (const BadInput&) {  // sizes whose product 64 bits do not hold
        }
      }
    }
  }
  return counts;
}

CheckReport check_rung_on(const std::vector<TestProblem>& problems, const Ladder& ladder,
                          const Rung& rung, Where where, const CheckOptions& options) {
  CheckReport report;
  const auto& code = rung.code_at(where);
  if (!code || device_at(where) == nullptr) {
    report.failures.push_back("does not run there");
    return report;
  }
  std::size_t misaligned = 0;
  for (const TestProblem& problem : problems) {
    const std::size_t turn = problem.misalignment == 0 ? 0 : misaligned++;
    if (report.failures.size() >= options.max_failures) break;
    const auto fail = [&](const std::string& what) { add_failure(report, problem, what); };
    try {
      Accepted accepted = accepted_forms(problem.problem, *code);
      if (!accepted.gives_reasons) fail("declines without a reason");
      const auto aligned_all_the_same = [&](const Problem& form) {
        return !some_may_begin_there(problem, ladder.signature(form));
      };
      if (std::erase_if(accepted.forms, aligned_all_the_same) != 0 && accepted.forms.empty())
        continue;
      if (accepted.forms.empty()) {
        ++report.declined[accepted.reasons];
      } else {
        ++report.problems;
      }
      for (const Problem& form : accepted.forms) {
        if (where == Where::emulated && code->workspace_bytes(form) > kMostEmulated) {
          report.skipped.push_back(
              text(title_of(problem), ": as ", name_of_form(form),
                   " only on a GPU: needs a workspace of ",
                   gigabytes(static_cast<double>(code->workspace_bytes(form)))));
          continue;
        }
        check_form(ladder, rung, where, problem, turn, form, options, report);
      }
    } catch (const BadInput& error) {
      if (problem.size == Size::huge) {
        report.skipped.push_back(text(title_of(problem), ": ", error.what()));
      } else {
        fail(text("throws ", error.what()));
      }
    } catch (const std::exception& error) {
      fail(text("throws ", error.what()));
    }
  }
  return report;
}

CheckReport check_rung(const Ladder& ladder, const Rung& rung, Where where,
                       const CheckOptions& options) {
  std::vector<TestProblem> chosen;
  std::vector<std::string> left_out;
  const std::vector<TestProblem>& fixed = fixed_problems(ladder.name);
  for (const TestProblem& problem : fixed) {
    if (!is_for(problem, rung.name)) continue;
    if (problem.size == Size::huge && (options.largest != Size::huge || where != Where::gpu)) {
      left_out.push_back(title_of(problem) + ": only on a GPU with CONVLADDER_HUGE=1");
    } else if (problem.size <= options.largest) {
      chosen.push_back(problem);
    }
  }
  for (TestProblem& problem : random_problems(ladder.name, options.random_problems, options.seed)) {
    chosen.push_back(std::move(problem));
  }
  CheckReport report = check_rung_on(chosen, ladder, rung, where, options);
  report.skipped.insert(report.skipped.begin(), left_out.begin(), left_out.end());
  if (report.problems == 0 && report.failures.empty()) {
    report.failures.push_back(text("declines all ", chosen.size(), " problems"));
  }
  return report;
}

}  // namespace convladder::testing
