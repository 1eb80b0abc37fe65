/// @file identity_tools.hpp
/// @brief What the identities of all ladders are made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ladders/ladders.hpp"
#include "tests/check.hpp"

namespace convladder::testing {

/// The rung declines a problem that an identity needs.
struct DeclinesProblem {
  std::string reason;
};

/// An identity does not hold, or a run did damage.
struct Broken {
  std::string what;
};

inline std::span<const float> floats(const Array& array) { return array.as<float>(); }

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Up to here a type counts: all smaller integers are numbers of it.
constexpr std::int64_t counts_up_to(DType dtype) {
  switch (dtype) {
    case DType::f16: return std::int64_t{1} << 11;
    case DType::bf16: return std::int64_t{1} << 8;
    case DType::f8: return std::int64_t{1} << 4;
    default: return std::int64_t{1} << 24;
  }
}

/// One rung in one place, as a function from inputs to outputs. To the identities all numbers are
/// floats: a rung that wants others gets them rounded, of integers so small that nothing is lost.
class Subject {
 public:
  Subject(const Ladder& ladder, const Rung& rung, Where where, const CheckOptions& options)
      : ladder_(&ladder), rung_(&rung), where_(where), options_(&options) {}

  /// @throws DeclinesProblem, Broken.
  Arrays operator()(const Problem& problem, const Arrays& inputs) const {
    const AnyImplementation& code = *rung_->code_at(where_);
    const Problem form = accepted_form(code, problem);
    Arrays own;
    for (const ArraySpec& spec : ladder_->signature(form).inputs)
      own.emplace(spec.name, in_type(inputs.at(spec.name), spec.dtype));
    RungRun run = run_guarded(*ladder_, form, own, code, where_, {.poison = options_->poison});
    if (!run.damage.empty()) throw Broken{text(describe(problem), ": ", run.damage)};
    for (auto& [name, array] : run.outputs) {
      array = in_type(array, DType::f32);
      // Of integers such rungs are right after rounding, see Rung::float_spectra.
      if (rung_->float_spectra)
        for (float& value : array.as<float>()) value = std::nearbyint(value);
    }
    return std::move(run.outputs);
  }

  /// The first form of the problem that the rung takes: the identities hold in every layout.
  static Problem accepted_form(const AnyImplementation& code, const Problem& problem) {
    Declined declined;
    for (const std::vector<Problem>& forms : forms_of(problem)) {
      for (const Problem& form : forms) {
        declined = code.supports(form);
        if (!declined) return form;
      }
    }
    throw DeclinesProblem{*declined};
  }

  /// Small integers for all inputs of the problem but those given: sums of several results are
  /// numbers of the outputs' type.
  Arrays inputs(const Problem& problem, std::uint64_t salt = 0, Arrays given = {}) const {
    const Problem form = accepted_form(*rung_->code_at(where_), problem);
    std::int64_t longest = 4 * longest_sum(ladder_->name, problem);
    for (const ArraySpec& output : ladder_->signature(form).outputs) {
      // As if sums were longer by as much as the type counts less far than float. From -1 to 1 they
      // hardly ever grow so large that they would have to be shorter still.
      if (output.dtype != DType::i32) {
        const std::int64_t shorter = counts_up_to(DType::f32) / counts_up_to(output.dtype);
        longest = std::max(longest, std::min(longest * shorter, counts_up_to(DType::f32) / 2));
      }
    }
    return make_inputs(ladder_->signature(problem), Data::integer, options_->seed + salt, longest,
                       std::move(given));
  }
  /// The type of what the rung multiplies.
  DType factors(const Problem& problem) const {
    return dtype_of(accepted_form(*rung_->code_at(where_), problem));
  }
  const Ladder& ladder() const { return *ladder_; }

 private:
  /// Integers as they are.
  static Array in_type(const Array& array, DType dtype) {
    return array.dtype() == DType::i32 ? array : rounded_to(array, dtype);
  }

  const Ladder* ladder_;
  const Rung* rung_;
  Where where_;
  const CheckOptions* options_;
};

/// The first rung of another ladder that runs on the CPU: the other side of an adjoint.
inline Subject first_cpu_rung(const std::string& name, const CheckOptions& options) {
  const Ladder& other = ladder(name);
  for (const Rung& rung : other.rungs) {
    if (rung.code_at(Where::cpu)) return Subject(other, rung, Where::cpu, options);
  }
  throw std::logic_error("no rung of " + name + " runs on the CPU");
}

/// Throws Broken unless both hold the same values.
inline void expect_same(const Array& found, const Array& expected, const std::string& what = "") {
  if (found.shape() != expected.shape()) {
    throw Broken{text(what, " shape ", to_string(found.shape()), " instead of ",
                      to_string(expected.shape()))};
  }
  const auto a = floats(found), b = floats(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) {
      throw Broken{text(what, " element ", i, " of ", to_string(found.shape()), ": ", b[i],
                        " on one side, ", a[i], " on the other")};
    }
  }
}

/// The exact inner product of two arrays of integers.
inline std::int64_t inner(const Array& a, const Array& b) {
  const auto u = floats(a), v = floats(b);
  if (u.size() != v.size()) throw Broken{"arrays of different sizes"};
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    sum += static_cast<std::int64_t>(u[i]) * static_cast<std::int64_t>(v[i]);
  }
  return sum;
}

inline void expect_equal_inner(std::int64_t one, std::int64_t other) {
  if (one != other) throw Broken{text("<A x, y> = ", one, ", but <x, A* y> = ", other)};
}

inline Array sum(const Array& a, const Array& b) {
  Array result = a;
  const auto to = result.as<float>();
  const auto other = floats(b);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += other[i];
  return result;
}

inline Array zeros(const Shape& shape) { return Array(DType::f32, shape); }

/// A permutation of 0 ... count - 1 that is not the identity where it can be another.
inline std::vector<int> permutation(int count, std::uint64_t seed) {
  std::vector<int> order(at(count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 engine(seed);
  for (int i = count - 1; i > 0; --i) {
    std::swap(order[at(i)], order[engine() % static_cast<std::uint64_t>(i)]);  // Sattolo: one cycle
  }
  return order;
}

/// An identity: what it is called, and the check, which throws Broken.
template <class P>
struct Identity {
  std::string name;
  std::function<bool(const P&)> applies;  ///< Null: to every problem.
  std::function<void(const P&)> check;
};

/// Checks each identity on each of the problems that it applies to. On cuda_on_cpu the threads'
/// order changes from problem to problem, so that each identity meets all three of them.
template <class P>
void check_all(const std::vector<Identity<P>>& identities, const std::vector<P>& problems,
               const CheckOptions& options, CheckReport& report) {
  for (std::size_t i = 0; i < identities.size(); ++i) {
    const Identity<P>& identity = identities[i];
    for (std::size_t j = 0; j < problems.size(); ++j) {
      const P& problem = problems[j];
      if (report.failures.size() >= options.max_failures) return;
      if (identity.applies && !identity.applies(problem)) continue;
      const int order = static_cast<int>((i + j) % kThreadOrderCount);
      set_emulated_thread_order(order, options.seed);
      const std::string where = text(identity.name, ": ", describe(problem), ", threads ",
                                     name_of_thread_order(order), ": ");
      try {
        identity.check(problem);
        ++report.problems;
        ++report.comparisons;
      } catch (const DeclinesProblem& declined) {
        ++report.declined[declined.reason];
      } catch (const Broken& broken) {
        report.failures.push_back(where + broken.what);
      } catch (const std::exception& error) {
        report.failures.push_back(text(where, "throws ", error.what()));
      }
    }
  }
}

}  // namespace convladder::testing
