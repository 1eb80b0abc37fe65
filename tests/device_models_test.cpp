/// @file device_models_test.cpp
/// @brief Rungs on the models of cards: what they decline there, and sampled problems that run.
#include <doctest/doctest.h>

#include <cuda_on_cpu/device_models.hpp>
#include <map>
#include <utility>

#include "core/device.hpp"
#include "core/needs.hpp"
#include "core/problem.hpp"
#include "ladders/ladders.hpp"
#include "oracle/runner.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {
namespace {

using cuda_on_cpu::control::DeviceModel;

struct DefaultDeviceAfterwards {
  ~DefaultDeviceAfterwards() { cuda_on_cpu::control::set_default_device_model(); }
};

/// A form of a small problem of the suite.
struct Form {
  const TestProblem* problem;
  Problem form;
};

std::vector<Form> small_forms(const Ladder& ladder) {
  std::vector<Form> all;
  for (const TestProblem& problem : fixed_problems(ladder.name)) {
    if (problem.size != Size::small || !problem.rungs.empty()) continue;
    for (const std::vector<Problem>& forms : forms_of(problem.problem))
      for (const Problem& form : forms) all.push_back({&problem, form});
  }
  return all;
}

/// What a rung does with a problem on the device as it is now.
struct Plan {
  Declined declined;
  std::string choice;
  friend bool operator==(const Plan&, const Plan&) = default;
};

Plan plan_of(const AnyImplementation& code, const Problem& form) {
  if (Declined why = code.supports(form)) return {std::move(why), {}};
  const OutputTile tile = code.tile(form);
  return {{},
          text(code.choice(form), "; tile ", tile.rows, " x ", tile.columns, "; workspace ",
               code.workspace_bytes(form))};
}

/// Runs and compares. Comparisons are made once for all cards.
void check_on(std::map<const Problem*, Comparison>& made, const Ladder& ladder, const Rung& rung,
              const Form& form) {
  const Data data = exactness_of(form.form) == Exactness::never ? Data::real : Data::integer;
  const auto [comparison, is_new] =
      made.try_emplace(&form.form, ladder, form.form, data, 1, form.problem->given);
  const Outcome outcome = comparison->second.run(rung, Where::emulated);
  INFO(outcome.reason);
  CHECK(outcome.status == Status::agrees);
}

}  // namespace

TEST_SUITE_BEGIN("ladders");

TEST_CASE("on each card a rung agrees, or declines for what the card lacks" *
          doctest::test_suite("all rungs")) {
  const DefaultDeviceAfterwards restored;
  for (const Ladder& ladder : ladders()) {
    const std::vector<Form> forms = small_forms(ladder);
    std::map<const Problem*, Comparison> made;
    for (const Rung& rung : ladder.rungs) {
      if (!rung.is_cuda()) continue;
      CAPTURE(rung.name);
      const AnyImplementation& code = *rung.code_at(Where::emulated);
      cuda_on_cpu::control::set_default_device_model();
      std::vector<Plan> usual;
      for (const Form& form : forms) usual.push_back(plan_of(code, form.form));
      std::size_t card = 0;
      for (const DeviceModel& model : cuda_on_cpu::control::device_models()) {
        ++card;
        CAPTURE(std::string(model.architecture));
        cuda_on_cpu::control::set_device_model(model);
        if (const Declined lacks = rung.why_not_on(model.compute_capability)) {
          CHECK(lacks->find("needs " + rung.needs + ": ") == 0);
          continue;
        }
        // One problem for which the rung chooses otherwise than on the default device, and one
        // more.
        const Form *other = nullptr, *any = nullptr;
        for (std::size_t i = 0; i < forms.size(); ++i) {
          const std::size_t at = (i + 37 * card) % forms.size();
          const Plan plan = plan_of(code, forms[at].form);
          if (plan.declined) {
            const bool for_the_card = plan.declined->find(kOfSharedMemory) != std::string::npos;
            INFO(describe(forms[at].form), ": ", *plan.declined);
            CHECK((for_the_card || usual[at].declined));
          } else if (plan != usual[at]) {
            other = other == nullptr ? &forms[at] : other;
          } else {
            any = any == nullptr ? &forms[at] : any;
          }
        }
        for (const Form* const form : {other, any})
          if (form != nullptr) check_on(made, ladder, rung, *form);
      }
    }
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing
