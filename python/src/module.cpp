/// @file module.cpp
/// @brief convladder._core: ladders, rungs, and running one. The package around it infers sizes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "host_run.hpp"
#include "in_place.hpp"
#include "interruptible.hpp"
#include "ladders/best_rung.hpp"
#include "ladders/earlier_rungs.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
#include "oracle/input_values.hpp"
#include "oracle/rulebook.hpp"
#include "oracle/runner.hpp"
#include "problems.hpp"
#include "table.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace convladder::python {
namespace {

nb::list rungs() {
  nb::list all;
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      nb::list places;
      for (const Where where : kEverywhere)
        if (rung.code_at(where) && device_at(where) != nullptr) places.append(name_of(where));
      nb::dict row;
      row["ladder"] = ladder.name;
      row["name"] = rung.name;
      row["kind"] = name_of(rung.kind());
      row["level"] = name_of(rung.level);
      row["needs"] = rung.needs;
      row["idea"] = rung.idea;
      row["transforms"] = rung.transforms();
      row["where"] = places;
      all.append(row);
    }
  }
  return all;
}

/// The places: (place, the processor's or GPU's name, "") or, if it is not available, (place, "",
/// reason).
nb::list places() {
  nb::list all;
  for (const Where where : kEverywhere) {
    const Device* const device = device_at(where);
    all.append(nb::make_tuple(name_of(where), device == nullptr ? "" : device->name(),
                              device == nullptr ? why_no_gpu() : ""));
  }
  return all;
}

/// The reason why a rung declines a problem there; None if it supports it.
nb::object declines(const std::string& ladder_name, const std::string& rung_name,
                    const std::string& place, const Problem& problem) {
  const Rung& rung = rung_named(ladder(ladder_name), rung_name);
  const Declined why = code_of(rung, where_named(place)).supports(problem);
  return why ? nb::cast(*why) : nb::none();
}

/// The names of the rungs that support the problem on the CPU, the fastest first: see
/// ranked_rungs().
std::vector<std::string> ranked_names(const std::string& ladder_name, const Problem& problem,
                                      bool allow_transforms) {
  std::vector<std::string> names;
  for (const RankedRung& ranked : ranked_rungs(ladder(ladder_name), problem, allow_transforms))
    names.push_back(ranked.rung->name);
  return names;
}

/// The given inputs of a run, and those of the rulebook, unless it is null; checked. @throws
/// BadInput
Arrays inputs_of(const Ladder& of, const Problem& problem, const Given& given,
                 const Rulebook* book) {
  const Signature signature = of.signature(problem);
  Arrays inputs;
  for (const ArraySpec& spec : signature.inputs) {
    if (const auto found = given.find(spec.name); found != given.end())
      inputs.emplace(spec.name,
                     as_input(spec, from_caller(spec, copy_of(spec.name, found->second))));
  }
  const nb::gil_scoped_release others_run;
  if (book != nullptr) inputs.merge(rulebook_inputs(*book, signature));
  require_valid_values(of, problem, inputs);
  return inputs;
}

/// Runs a rung, and returns its outputs by name. @param book of a sparse problem; otherwise null
std::pair<nb::dict, double> run(const std::string& ladder_name, const std::string& rung_name,
                                const std::string& place, const Problem& problem,
                                const Given& given, const Rulebook* book) {
  const Ladder& of = ladder(ladder_name);
  const Rung& rung = rung_named(of, rung_name);
  const Where where = where_named(place);
  const AnyImplementation& code = code_of(rung, where);
  if (Signature signature = of.signature(problem); where == Where::cpu && runs_on_host(signature))
    return run_on_host(of, rung, problem, std::move(signature), given, book);
  const Arrays inputs = inputs_of(of, problem, given, book);
  std::ranges::for_each(of.signature(problem).outputs, require_possible);
  RungRun done;
  {
    const nb::gil_scoped_release others_run;
    if (const Declined why = code.supports(problem)) throw UnsupportedProblem(*why);
    for (const ArraySpec& spec : of.signature(problem).inputs)
      if (!inputs.contains(spec.name)) throw BadInput(text(spec.name, ": it is missing"));
    done = interruptible([&of, &code, where, problem, inputs = std::move(inputs)] {
      return run_guarded(of, problem, inputs, code, where, {.alone = false});
    });
    if (!done.damage.empty()) throw DeviceError(done.damage);
    done.outputs = canonical(problem, std::move(done.outputs));
  }
  nb::dict outputs;
  for (const ArraySpec& spec : of.signature(problem).outputs) {
    if (const auto found = done.outputs.find(spec.name); found != done.outputs.end())
      outputs[spec.name.c_str()] = to_numpy(to_caller(spec, std::move(found->second)));
  }
  return {outputs, done.milliseconds};
}

/// Arrays of a caller with the reference result, with which any number of rungs are compared.
class Comparing {
 public:
  /// @param book of a sparse problem; otherwise null
  Comparing(const std::string& ladder_name, const Problem& problem, const Given& given,
            const Rulebook* book) {
    const Ladder& of = ladder(ladder_name);
    Arrays inputs = inputs_of(of, problem, given, book);
    std::ranges::for_each(of.signature(problem).outputs, require_possible);
    const nb::gil_scoped_release others_run;
    comparison_ = interruptible([&of, problem, inputs = std::move(inputs)]() mutable {
      return std::make_shared<const Comparison>(of, problem, Data::real, std::move(inputs),
                                                Roundings::any);
    });
    require_float_range(*comparison_);
  }

  /// The result of a rung: a dictionary of Outcome's members.
  nb::dict run(const std::string& rung_name, const std::string& place) const {
    const Rung& rung = rung_named(comparison_->ladder(), rung_name);
    const Where where = where_named(place);
    code_of(rung, where);
    Outcome outcome;
    {
      const nb::gil_scoped_release others_run;
      outcome = interruptible([&rung, where, comparison = comparison_] {
        return comparison->run(rung, where, {.alone = false});
      });
    }
    nb::dict row;
    row["status"] = name_of(outcome.status);
    row["reason"] = outcome.reason;
    row["remark"] = outcome.remark;
    row["ran"] = outcome.ran;
    row["max_error"] = outcome.max_error;
    row["milliseconds"] = outcome.milliseconds;
    return row;
  }

 private:
  std::shared_ptr<const Comparison> comparison_;
};

}  // namespace
}  // namespace convladder::python

NB_MODULE(_core, module) {
  using namespace convladder;
  nb::exception<BadInput>(module, "BadInput", PyExc_ValueError);
  nb::exception<UnsupportedProblem>(module, "UnsupportedProblem", PyExc_ValueError);
  nb::exception<DeviceError>(module, "DeviceError", PyExc_RuntimeError);
  python::add_problems(module);
  python::add_in_place(module);
  module.attr("__version__") = CONVLADDER_VERSION;
  module.def("rungs", &python::rungs, R"(The table of rungs, in the order of reading: dictionaries.

ladder: the operation, as its function is called; name: of the rung, as for `rung=`;
kind: "start", "step" or "branch"; level: "spine", "alternative" or "advanced"; idea: in a line;
needs: "cpu", or the least architecture of a GPU that runs it, such as "sm_80";
transforms: whether it takes `allow_transforms=True` to be chosen without `rung=`;
where: where it runs on this computer, of "cpu", "emulated" and "gpu".)");
  module.def(
      "renamed_rungs",
      [] {
        std::map<std::string, std::string> all;
        for (const RenamedRung& renamed : renamed_rungs()) all.emplace(renamed.name, renamed.now);
        return all;
      },
      "The earlier names of rungs: a dictionary from earlier to present names.");
  module.def("places", &python::places);
  module.def("declines", &python::declines, "ladder"_a, "rung"_a, "where"_a, "problem"_a);
  module.def(
      "restricted_inputs",
      [](const std::string& name, const Problem& problem) {
        return restricted_inputs(ladder(name), problem);
      },
      "ladder"_a, "problem"_a);
  module.def(
      "require_valid_values",
      [](const std::string& name, const Problem& problem, const python::Given& given,
         const Rulebook* book) { python::inputs_of(ladder(name), problem, given, book); },
      "ladder"_a, "problem"_a, "arrays"_a, "rulebook"_a.none());
  module.def("ranked_rungs", &python::ranked_names, "ladder"_a, "problem"_a, "allow_transforms"_a);
  nb::class_<python::Comparing>(module, "Comparison")
      .def(nb::init<const std::string&, const Problem&, const python::Given&, const Rulebook*>(),
           "ladder"_a, "problem"_a, "arrays"_a, "rulebook"_a.none())
      .def("run", &python::Comparing::run, "rung"_a, "where"_a);
  module.def("run", &python::run, "ladder"_a, "rung"_a, "where"_a, "problem"_a, "arrays"_a,
             "rulebook"_a.none());
}
