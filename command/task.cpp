#include "command/task.hpp"

#include <algorithm>
#include <cmath>

#include "command/exactness.hpp"
#include "command/files.hpp"
#include "command/ladders/ladder_command.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"
#include "oracle/input_values.hpp"
#include "oracle/reference.hpp"

namespace convladder::command {
namespace {

/// Throws BadInput unless every array has the shape in the problem's signature.
void require_shapes(const Task& task, const Parameters& parameters) {
  const Signature signature = task.ladder->signature(task.problem);
  for (const auto& [name, array] : task.given) {
    const auto spec =
        std::find_if(signature.inputs.begin(), signature.inputs.end(),
                     [&, &name = name](const ArraySpec& s) { return s.name == name; });
    if (spec == signature.inputs.end()) throw std::logic_error("no input is called " + name);
    if (array.shape() == spec->shape) continue;
    throw BadInput(text(parameters.source(name, array.shape()), ": does not fit the problem (",
                        describe(task.problem), "), which needs ", to_string(spec->shape)));
  }
}

/// Values of the inputs that were not given.
Arrays made_up(const Signature& signature, const Task& task, Data data, std::uint64_t seed) {
  Signature missing = signature;
  std::erase_if(missing.inputs, [&](const ArraySpec& spec) {
    return task.given.contains(spec.name) || task.drawn.contains(spec.name);
  });
  return make_inputs(missing, data, seed, exact_sum(task.ladder->name, task.problem));
}

bool all_whole(const Array& array) {
  if (array.dtype() != DType::f32) return true;
  const auto values = array.as<float>();
  return std::all_of(values.begin(), values.end(), [](float v) { return v == std::nearbyint(v); });
}

}  // namespace

std::vector<Task> read_tasks(const Options& options) {
  const Ladder& ladder = convladder::ladder(*options.ladder);
  std::vector<Task> tasks = command_of(ladder.name).read(ladder, options);
  for (const Task& task : tasks) {
    if (!task.given.empty()) require_shapes(task, options.problem);
  }
  return tasks;
}

Prepared prepare(Task task, std::optional<Data> wanted, std::uint64_t seed) {
  const Signature signature = task.ladder->signature(task.problem);
  // Checked before anything is allocated: the inputs, and for each output the reference's values
  // and magnitudes in double, a rung's result, and the copy of that result on the host.
  double bytes = 0;
  for (const ArraySpec& spec : signature.inputs)
    bytes += 2.0 * 4 * static_cast<double>(element_count(spec.shape));
  for (const ArraySpec& spec : signature.outputs)
    bytes += (2.0 * 8 + 2.0 * 4) * static_cast<double>(element_count(spec.shape));
  require_available(bytes, text("the problem (", describe(task.problem), ")"));

  require_valid_values(*task.ladder, task.problem, task.given);
  if (exactness_of(task.problem) == Exactness::never) {
    require(wanted != Data::integer, "data", "integer",
            "the roots of unity are irrational, and sums of their multiples are not exact; see "
            "--ring mersenne");
    wanted = Data::real;
  }
  if (exactness_of(task.problem) == Exactness::always) {
    require(wanted != Data::real, "data", "real", "the ring mersenne supports integers only");
    wanted = Data::integer;
  }
  if (wanted == Data::integer) {
    for (const auto& [name, array] : task.given) {
      require(all_whole(array), "data", "integer",
              text("the array ", name, " holds numbers that are not integers"));
    }
  }
  Data kind = wanted.value_or(Data::integer);
  Arrays inputs;
  try {
    inputs = made_up(signature, task, kind, seed);
  } catch (const BadInput& error) {
    if (wanted) throw BadInput(text("data = integer: ", error.what()));
    task.notes.push_back(text("data: ", error.what(), " instead"));
    kind = Data::real;
    inputs = made_up(signature, task, kind, seed);
  }
  const bool ours = task.given.empty() && task.drawn.empty();
  for (const auto* arrays : {&task.given, &task.drawn}) {
    for (const auto& [name, array] : *arrays) inputs.insert_or_assign(name, array);
  }
  for (const ArraySpec& spec : signature.inputs) {
    Array& array = inputs.at(spec.name);
    if (array.dtype() == spec.dtype) continue;
    Array rounded = rounded_input(spec, array);
    if (!std::ranges::equal(rounded_to(rounded, DType::f32).as<float>(), array.as<float>()))
      task.notes.push_back(text(spec.name, ": rounded to ", name_of(spec.dtype)));
    array = std::move(rounded);
  }
  if (!ours && kind == Data::integer && exactness_of(task.problem) != Exactness::always) {
    const bool exact = sums_are_exact(task.ladder->name, task.problem, inputs);
    require(exact || !wanted, "data", "integer",
            "sums of these arrays are not exact in float: the numbers are too large");
    if (!exact) kind = Data::real;
  }
  return {std::move(task), std::move(inputs), kind};
}

}  // namespace convladder::command
