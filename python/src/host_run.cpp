#include "host_run.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <vector>

#include "core/device.hpp"
#include "core/error.hpp"
#include "interruptible.hpp"
#include "ladders/best_rung.hpp"
#include "oracle/canonical.hpp"
#include "oracle/guarded_run.hpp"
#include "oracle/input_values.hpp"

namespace nb = nanobind;

namespace convladder::python {
namespace {

/// The address of an array without elements: a null pointer would mean that there is no array.
std::byte nowhere[1];

/// The workspace of a rung.
struct Workspace {
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
};

Workspace new_workspace(std::size_t bytes) {
  Device& host = *device_at(Where::cpu);
  return {{host.allocate(bytes), [&host](void* memory) { host.release(memory); }}, bytes};
}

/// Of the last run of this thread: the first access to a page of memory takes longer than the work
/// of most rungs on it.
thread_local Workspace kept_workspace;
constexpr std::size_t kMostKept = std::size_t{64} << 20;

/// The arrays of a run. It owns all of its memory except that of Python's objects.
struct HostRun {
  const Ladder* ladder;
  const AnyImplementation* code;
  Problem problem;
  Signature signature;
  std::vector<Arguments::Slot> inputs, outputs;
  Arrays converted;  ///< Inputs that are copies.
  Arrays made;       ///< Outputs that the rung creates, and those of types that NumPy does not
                     ///< support.
  Workspace workspace;
  double milliseconds = 0;

  /// Runs the rung. @throws BadInput if there is not enough memory
  void compute() {
    const auto create = [this](const std::string& name, DType dtype, const Shape& shape) -> void* {
      return made.insert_or_assign(name, Array(dtype, shape)).first->second.data();
    };
    const Arguments arguments(inputs, outputs, {nullptr, workspace.memory.get()}, create);
    const auto start = std::chrono::steady_clock::now();
    try {
      code->run(problem, arguments);
      code->finish(problem, arguments);
    } catch (const std::bad_alloc&) {
      throw OutOfMemory("asks for more memory, while it runs, than is free");
    }
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    milliseconds = time.count();
  }
};

/// Python's objects that a run reads and writes.
struct Kept {
  Given given;
  nb::dict outputs;
};

/// Whether a rung can read the array without a copy.
bool fits(const ArraySpec& spec, const HostArray& array) {
  return dtype_of(spec.name, array.dtype()) == spec.dtype &&
         reinterpret_cast<std::uintptr_t>(array.data()) % size_of(spec.dtype) == 0;
}

/// Sets the run's inputs. @throws BadInput
void take_inputs(HostRun& run, const Given& given, const Rulebook* book) {
  if (book != nullptr) run.converted = rulebook_inputs(*book, run.signature);
  const std::vector<std::string> checked = restricted_inputs(*run.ladder, run.problem);
  for (const ArraySpec& spec : run.signature.inputs) {
    const auto found = given.find(spec.name);
    if (found == given.end()) {
      if (!run.converted.contains(spec.name)) throw BadInput(text(spec.name, ": it is missing"));
    } else if (std::ranges::find(checked, spec.name) != checked.end() ||
               !fits(spec, found->second)) {
      run.converted.insert_or_assign(spec.name, as_input(spec, copy_of(spec.name, found->second)));
    } else {
      require_shape(spec, shape_of(found->second));
    }
  }
  if (!checked.empty()) require_valid_values(*run.ladder, run.problem, run.converted);
  for (const ArraySpec& spec : run.signature.inputs) {
    const auto copy = run.converted.find(spec.name);
    const void* const data =
        copy != run.converted.end() ? copy->second.data() : given.at(spec.name).data();
    const bool empty = element_count(spec.shape) == 0;
    run.inputs.push_back({spec.name, spec.dtype, empty ? nowhere : const_cast<void*>(data)});
  }
}

double bytes_of(const ArraySpec& spec) {
  return static_cast<double>(element_count(spec.shape)) * static_cast<double>(size_of(spec.dtype));
}

/// @throws BadInput if outputs and workspace take more memory than is available. Linux would
/// allocate it and end the program when it is used.
void require_free_memory(const Signature& signature, std::size_t workspace_bytes) {
  constexpr double kLittle = 0x1p26;  // the query takes longer than a small run
  double bytes = static_cast<double>(workspace_bytes);
  for (const ArraySpec& spec : signature.outputs) bytes += bytes_of(spec);
  if (bytes > kLittle)
    require_memory(*device_at(Where::cpu), {.outputs = signature.outputs}, workspace_bytes);
}

/// A new NumPy array, for which NumPy allocates large pages.
nb::object new_array(const ArraySpec& spec) {
  try {
    return nb::module_::import_("numpy").attr("empty")(nb::tuple(nb::cast(spec.shape)),
                                                       name_of(spec.dtype));
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_MemoryError)) throw;
    throw std::bad_alloc();
  }
}

/// Creates the run's outputs, except for those that the rung creates.
nb::dict make_outputs(HostRun& run) {
  nb::dict made;
  for (const ArraySpec& spec : run.signature.outputs) {
    if (spec.dynamic) continue;
    void* data = nullptr;
    if (spec.dtype == DType::bf16) {
      data = run.made.emplace(spec.name, Array(spec.dtype, spec.shape)).first->second.data();
    } else {
      const nb::object array = new_array(spec);
      data = nb::cast<nb::ndarray<nb::numpy>>(array).data();
      made[spec.name.c_str()] = array;
    }
    run.outputs.push_back({spec.name, spec.dtype, element_count(spec.shape) == 0 ? nowhere : data});
  }
  return made;
}

/// Whether Ctrl-C would have to wait too long for a rung. Starting a thread takes longer than a
/// small run.
bool is_long(const Ladder& of, const Rung& rung, const Problem& problem) {
  constexpr double kPatience = 0.05;  // seconds
  const std::optional<double> seconds = expected_seconds(of, rung, problem);
  return !seconds || *seconds > kPatience;
}

}  // namespace

bool runs_on_host(const Signature& signature) {
  const auto plain = [](const ArraySpec& spec) {
    return spec.order.view.empty() && spec.initial.empty();
  };
  return std::ranges::all_of(signature.inputs, plain) &&
         std::ranges::all_of(signature.outputs, plain);
}

Array as_input(const ArraySpec& spec, Array array) {
  require_shape(spec, array.shape());
  if (array.dtype() == spec.dtype) return array;
  require(array.dtype() != DType::i32 && spec.dtype != DType::i32, spec.name,
          name_of(array.dtype()), text("the problem has ", name_of(spec.dtype)));
  return rounded_input(spec, array);
}

std::pair<nb::dict, double> run_on_host(const Ladder& of, const Rung& rung, const Problem& problem,
                                        Signature signature, const Given& given,
                                        const Rulebook* book) {
  const AnyImplementation& code = *rung.code_at(Where::cpu);
  release_kept();
  auto run = std::make_shared<HostRun>(
      HostRun{.ladder = &of, .code = &code, .problem = problem, .signature = std::move(signature)});
  const auto kept = std::make_shared<Kept>(Kept{.given = given});
  try {
    {
      const nb::gil_scoped_release others_run;
      if (const Declined why = code.supports(problem)) throw UnsupportedProblem(*why);
      take_inputs(*run, given, book);
      std::ranges::for_each(run->signature.outputs, require_possible);
      const std::size_t bytes = code.workspace_bytes(problem);
      require_free_memory(run->signature, bytes);
      run->workspace = std::exchange(kept_workspace, {});
      if (run->workspace.bytes < bytes) run->workspace = new_workspace(bytes);
    }
    kept->outputs = make_outputs(*run);
  } catch (const std::bad_alloc&) {
    throw BadInput(text("memory: there is not enough (cpu) for ", describe(problem)));
  }
  {
    const nb::gil_scoped_release others_run;
    if (is_long(of, rung, problem)) {
      interruptible([run] { run->compute(); }, kept);
    } else {
      run->compute();
    }
    if (run->workspace.bytes <= kMostKept) kept_workspace = std::move(run->workspace);
    run->made = canonical(problem, std::move(run->made));
  }
  for (auto& [name, array] : run->made) kept->outputs[name.c_str()] = to_numpy(std::move(array));
  for (const ArraySpec& spec : run->signature.outputs) {
    if (!spec.optional && !kept->outputs.contains(spec.name.c_str()))
      throw DeviceError("did not create its output " + spec.name);
  }
  return {kept->outputs, run->milliseconds};
}

}  // namespace convladder::python
