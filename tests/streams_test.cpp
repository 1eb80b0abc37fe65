/// @file streams_test.cpp
/// @brief Rungs work in the stream that they are given, and in no other: two runs in two streams do
/// not meet.
#include <doctest/doctest.h>

#include <algorithm>
#include <cuda_on_cpu/control.hpp>
#include <functional>
#include <set>
#include <thread>

#include "core/text.hpp"
#include "ladders/conv2d.hpp"
#include "ladders/ladders.hpp"
#include "oracle/runner.hpp"
#include "tests/problems.hpp"

namespace convladder::testing {
namespace {

/// A stream while this object lives.
class Stream {
 public:
  explicit Stream(Where where) : device_(device_at(where)), stream_(device_->make_stream()) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { device_->release_stream(stream_); }

  CUstream_st* get() const { return stream_; }

 private:
  Device* device_;
  CUstream_st* stream_;
};

/// The rung, whose code may not use the default stream; where that can be seen.
Rung confined(Rung rung) {
  auto& code = rung.code[static_cast<std::size_t>(Where::emulated)];
  for (auto* part : {&code->run, &code->finish}) {
    *part = [then = *part](const Problem& problem, const Arguments& arguments) {
      const cuda_on_cpu::control::ForbidDefaultStream forbid;
      then(problem, arguments);
    };
  }
  return rung;
}

/// A problem of the ladder's list, with all that a run needs.
struct Prepared {
  const TestProblem* problem;
  Problem form;
};

constexpr std::size_t kMostProblems = 4;  // of a rung

/// Problems that the rung takes: the first of each choice, and two at least.
std::vector<Prepared> some_problems(const std::vector<TestProblem>& list,
                                    const AnyImplementation& code, const std::string& rung) {
  std::vector<Prepared> found;
  std::set<std::string> choices;
  for (const TestProblem& problem : list) {
    if (problem.size != Size::small || problem.once || !is_for(problem, rung)) continue;
    for (const std::vector<Problem>& forms : forms_of(problem.problem)) {
      const auto form =
          std::ranges::find_if(forms, [&](const Problem& one) { return !code.supports(one); });
      if (form == forms.end()) continue;
      if (choices.insert(code.choice(*form)).second || found.size() < 2)
        found.push_back({&problem, *form});
      if (found.size() == kMostProblems) return found;
    }
  }
  return found;
}

/// Calls body(ladder, rung, where, problems) for every CUDA rung in every place that there is.
void for_each_cuda_rung(const std::function<void(const Ladder&, const Rung&, Where,
                                                 const std::vector<Prepared>&)>& body) {
  for (const Ladder& ladder : ladders()) {
    const std::vector<TestProblem> list = problems_of(ladder.name);
    for (const Rung& rung : ladder.rungs) {
      for (const Where where : {Where::emulated, Where::gpu}) {
        if (!rung.code_at(where) || device_at(where) == nullptr) continue;
        body(ladder, rung, where, some_problems(list, *rung.code_at(where), rung.name));
      }
    }
  }
}

/// Small integers, which are compared exactly, wherever they can be.
Data data_for(const Problem& problem) {
  return exactness_of(problem) == Exactness::never ? Data::real : Data::integer;
}

}  // namespace

TEST_SUITE_BEGIN("streams");

TEST_CASE("every rung stays in the stream that it is given") {
  for_each_cuda_rung([](const Ladder& ladder, const Rung& rung, Where where,
                        const std::vector<Prepared>& problems) {
    CAPTURE(rung.name);
    CHECK(problems.size() >= 2);
    const Stream stream(where);
    const Rung in_stream = where == Where::emulated ? confined(rung) : rung;
    for (const Prepared& prepared : problems) {
      const Comparison comparison(ladder, prepared.form, data_for(prepared.form), 1,
                                  prepared.problem->given);
      const Outcome outcome = comparison.run(in_stream, where, {.stream = stream.get()});
      CAPTURE(describe(prepared.form));
      CAPTURE(outcome.reason);
      CHECK(outcome.status == Status::agrees);
    }
  });
}

TEST_CASE("work in the default stream would be seen") {
  Rung rung;
  for (const Rung& candidate : ladder("im2col").rungs) {
    if (candidate.name == "cuda_naive/im2col/im2col") rung = candidate;
  }
  auto& run = rung.code[static_cast<std::size_t>(Where::emulated)]->run;
  run = [then = run](const Problem& problem, const Arguments& arguments) {
    then(problem, arguments);
    device_at(Where::emulated)->upload(nullptr, nullptr, 0);
  };
  const Comparison comparison(ladder("im2col"), problems_of("im2col").front().problem,
                              Data::integer, 1);
  const Stream stream(Where::emulated);
  const Outcome outcome = comparison.run(confined(rung), Where::emulated, {.stream = stream.get()});
  CHECK(outcome.status == Status::differs);
  CHECK(outcome.reason.find("default stream") != std::string::npos);
}

TEST_CASE("two runs at once, in two streams, do not meet") {
  for_each_cuda_rung([](const Ladder& ladder, const Rung& rung, Where where,
                        const std::vector<Prepared>& problems) {
    CAPTURE(rung.name);
    std::vector<Outcome> outcomes[2];
    const auto run_all = [&](std::size_t which) {
      const Stream stream(where);
      // One thread begins where the other ends, and has other data.
      for (std::size_t i = 0; i < problems.size(); ++i) {
        const Prepared& prepared = problems[which == 0 ? i : problems.size() - 1 - i];
        const Comparison comparison(ladder, prepared.form, data_for(prepared.form), 1 + which,
                                    prepared.problem->given);
        outcomes[which].push_back(
            comparison.run(rung, where, {.stream = stream.get(), .alone = false}));
      }
    };
    std::thread other(run_all, 1);
    run_all(0);
    other.join();
    for (const auto& of_thread : outcomes) {
      for (const Outcome& outcome : of_thread) {
        CAPTURE(outcome.reason);
        CHECK(outcome.status == Status::agrees);
      }
    }
  });
}

TEST_CASE("a rung refuses what it declines, with its reason") {
  const Implementation<Conv2dArrays> rung = {
      .supports = [](const Conv2dProblem&) { return Declined("not today"); },
      .run = [](const Conv2dProblem&, const Conv2dArrays&, const Context&) { FAIL("it ran"); }};
  const float in = 0;
  float out = 0;
  CHECK_THROWS_WITH_AS(rung(validated(Conv2dProblem{}), {.x = &in, .weights = &in, .y = &out}),
                       "not today", UnsupportedProblem);
}

TEST_CASE("a rung that is called runs in the stream of its context, and calls others there") {
  static CUstream_st* seen = nullptr;
  const Implementation<Conv2dArrays> inner = {
      .run = [](const Conv2dProblem&, const Conv2dArrays&, const Context& context) {
        seen = context.stream == current_stream() ? current_stream() : nullptr;
      }};
  static const Implementation<Conv2dArrays>* called = &inner;
  const Implementation<Conv2dArrays> outer = {
      .run = [](const Conv2dProblem& conv, const Conv2dArrays& arrays, const Context&) {
        (*called)(conv, arrays);
      }};
  const Stream stream(Where::emulated);
  const float in = 0;
  float out = 0;
  outer(validated(Conv2dProblem{}), {.x = &in, .weights = &in, .y = &out}, {stream.get()});
  CHECK(seen == stream.get());
  CHECK(current_stream() == nullptr);
}

TEST_SUITE_END();

}  // namespace convladder::testing
