/// @file module.cpp
/// @brief convladder._core: ladders, rungs, and a run of one. The package around it infers sizes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "core/error.hpp"
#include "in_place.hpp"
#include "ladders/best_rung.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
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
      row["idea"] = rung.idea;
      row["where"] = places;
      all.append(row);
    }
  }
  return all;
}

/// Why a rung declines a problem there; None where it takes it.
nb::object declines(const std::string& ladder_name, const std::string& rung_name,
                    const std::string& place, const Problem& problem) {
  const Rung& rung = rung_named(ladder(ladder_name), rung_name);
  const Declined why = code_of(rung, where_named(place)).supports(problem);
  return why ? nb::cast(*why) : nb::none();
}

/// The names of the rungs that take the problem on the CPU, the fastest first: see ranked_rungs().
std::vector<std::string> ranked_names(const std::string& ladder_name, const Problem& problem,
                                      bool allow_transforms) {
  std::vector<std::string> names;
  for (const RankedRung& ranked : ranked_rungs(ladder(ladder_name), problem, allow_transforms))
    names.push_back(ranked.rung->name);
  return names;
}

/// Inputs of a run that must be there, in the types and shapes that the problem wants.
Arrays checked(const Signature& signature, Arrays given) {
  for (const ArraySpec& spec : signature.inputs) {
    auto found = given.find(spec.name);
    if (found == given.end()) throw BadInput(text(spec.name, ": it is missing"));
    Array& array = found->second;
    require(array.shape() == spec.shape, spec.name, text("shape ", to_string(array.shape())),
            text("the problem has ", to_string(spec.shape)));
    if (array.dtype() == spec.dtype) continue;
    require(array.dtype() != DType::i32 && spec.dtype != DType::i32, spec.name,
            name_of(array.dtype()), text("the problem has ", name_of(spec.dtype)));
    array = rounded_to(array, spec.dtype);
  }
  return given;
}

/// Runs a rung, and returns its outputs by name. @param book of a sparse problem; else null
std::pair<nb::dict, double> run(const std::string& ladder_name, const std::string& rung_name,
                                const std::string& place, const Problem& problem,
                                const std::map<std::string, HostArray>& given,
                                const Rulebook* book) {
  const Ladder& of = ladder(ladder_name);
  const Rung& rung = rung_named(of, rung_name);
  const Where where = where_named(place);
  const AnyImplementation& code = code_of(rung, where);
  const Signature signature = of.signature(problem);
  Arrays inputs;
  for (const auto& [name, array] : given) inputs.emplace(name, copy_of(name, array));
  RungRun done;
  {
    const nb::gil_scoped_release others_run;
    if (book != nullptr) inputs.merge(rulebook_inputs(*book, signature));
    if (const Declined why = code.supports(problem)) throw UnsupportedProblem(*why);
    done = run_guarded(of, problem, checked(signature, std::move(inputs)), code, where,
                       {.alone = false});
    if (!done.damage.empty()) throw DeviceError(done.damage);
    done.outputs = canonical(problem, std::move(done.outputs));
  }
  nb::dict outputs;
  for (auto& [name, array] : done.outputs) outputs[name.c_str()] = to_numpy(std::move(array));
  return {outputs, done.milliseconds};
}

}  // namespace
}  // namespace convladder::python

NB_MODULE(_core, module) {
  using namespace convladder;
  nb::exception<BadInput>(module, "BadInput", PyExc_ValueError);
  nb::exception<UnsupportedProblem>(module, "UnsupportedProblem", PyExc_ValueError);
  nb::exception<DeviceError>(module, "DeviceError", PyExc_RuntimeError);
  python::add_problems(module);
  python::add_in_place(module);
  module.def("rungs", &python::rungs);
  module.def("declines", &python::declines, "ladder"_a, "rung"_a, "where"_a, "problem"_a);
  module.def("ranked_rungs", &python::ranked_names, "ladder"_a, "problem"_a, "allow_transforms"_a);
  module.def("run", &python::run, "ladder"_a, "rung"_a, "where"_a, "problem"_a, "arrays"_a,
             "rulebook"_a.none());
}
