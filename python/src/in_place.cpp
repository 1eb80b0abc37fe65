#include "in_place.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "core/array.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"
#include "table.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace convladder::python {
namespace {

/// A tensor of any library, shared without a copy.
using Tensor = nb::ndarray<nb::ro>;
/// A new tensor, which Python sees as an object that supports DLPack.
using OwnTensor = nb::ndarray<nb::array_api>;
using Tensors = std::map<std::string, Tensor>;

/// Whether the elements are contiguous, the last axis innermost. DLPack counts strides in elements.
bool contiguous(const Tensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t axis = tensor.size() == 0 ? 0 : tensor.ndim(); axis-- > 0;) {
    if (tensor.shape(axis) != 1 && tensor.stride(axis) != expected) return false;
    expected *= static_cast<std::int64_t>(tensor.shape(axis));
  }
  return true;
}

/// The address of the array `spec`. @throws BadInput if the tensor does not match it
void* memory_of(const ArraySpec& spec, const Tensors& tensors, Where where) {
  const auto found = tensors.find(spec.name);
  if (found == tensors.end()) throw BadInput(text(spec.name, ": it is missing"));
  const Tensor& tensor = found->second;
  const int device = where == Where::gpu ? nb::device::cuda::value : nb::device::cpu::value;
  require(tensor.device_type() == device, spec.name,
          text("a tensor of device ", tensor.device_type()),
          text("it must lie where the rung runs (", name_of(where), ")"));
  require(tensor.device_id() == 0, spec.name, text("a tensor on GPU ", tensor.device_id()),
          "it must be on GPU 0 (the environment variable CUDA_VISIBLE_DEVICES selects that GPU)");
  require_shape_in_memory(spec, shape_of(tensor));
  const DType dtype = dtype_of(spec.name, tensor.dtype());
  require(dtype == spec.dtype, spec.name, name_of(dtype),
          text("the problem has ", name_of(spec.dtype)));
  require(contiguous(tensor), spec.name, "a view with gaps or with its axes exchanged",
          "its elements must be contiguous, as after PyTorch's .contiguous() and "
          "cupy.ascontiguousarray()");
  return const_cast<void*>(static_cast<const void*>(tensor.data()));
}

std::vector<Arguments::Slot> slots(const std::vector<ArraySpec>& specs, const Tensors& tensors,
                                   Where where) {
  std::vector<Arguments::Slot> all;
  for (const ArraySpec& spec : specs)
    all.push_back({spec.name, spec.dtype, memory_of(spec, tensors, where)});
  return all;
}

/// Runs a rung on the tensors' own memory, in a stream, without waiting for it.
void run_in_place(const std::string& ladder_name, const std::string& rung_name,
                  const std::string& place, const Problem& problem, const Tensors& inputs,
                  const Tensors& outputs, const Tensor& workspace, std::uintptr_t stream) {
  const Ladder& of = ladder(ladder_name);
  const Where where = where_named(place);
  const AnyImplementation& code = code_of(rung_named(of, rung_name), where);
  if (const Declined why = code.supports(problem)) throw UnsupportedProblem(*why);
  const Signature signature = of.signature(problem);
  require(workspace.nbytes() >= code.workspace_bytes(problem), "workspace", workspace.nbytes(),
          text("the rung requires ", code.workspace_bytes(problem), " bytes"));
  const Arguments arguments(
      slots(signature.inputs, inputs, where), slots(signature.outputs, outputs, where),
      {reinterpret_cast<CUstream_st*>(stream), const_cast<void*>(workspace.data())}, {});
  const nb::gil_scoped_release others_run;
  code.run(problem, arguments);
}

/// (name, type, shape) of the arrays that a rung writes, which the caller provides.
std::vector<std::tuple<std::string, std::string, Shape>> outputs(const std::string& ladder_name,
                                                                 const Problem& problem) {
  std::vector<std::tuple<std::string, std::string, Shape>> all;
  for (const ArraySpec& spec : ladder(ladder_name).signature(problem).outputs) {
    require_possible(spec);
    all.emplace_back(spec.name, name_of(spec.dtype), shape_in_memory(spec));
  }
  return all;
}

/// Throws BadInput unless a caller's arrays of these shapes can be the problem's inputs.
void require_shapes(const std::string& ladder_name, const Problem& problem,
                    const std::map<std::string, Shape>& shapes) {
  for (const ArraySpec& spec : ladder(ladder_name).signature(problem).inputs) {
    if (const auto found = shapes.find(spec.name); found != shapes.end())
      require_shape_in_memory(spec, found->second);
  }
}

std::size_t workspace_bytes(const std::string& ladder_name, const std::string& rung_name,
                            const std::string& place, const Problem& problem) {
  return code_of(rung_named(ladder(ladder_name), rung_name), where_named(place))
      .workspace_bytes(problem);
}

Device& device_named(const std::string& place) {
  Device* const device = device_at(where_named(place));
  require(device != nullptr, "where", place,
          "this computer, or this build of the module, has none");
  return *device;
}

DType dtype_named(const std::string& word) {
  for (const DType dtype : {DType::f32, DType::i32, DType::f16, DType::bf16})
    if (word == name_of(dtype)) return dtype;
  throw BadInput(text("dtype = '", word, "': it must be one of float32, int32, float16, bfloat16"));
}

/// New memory at that place, freed with the tensor. It supports DLPack.
OwnTensor empty(const std::string& place, const std::string& dtype, const Shape& shape) {
  Device& device = device_named(place);
  const DType type = dtype_named(dtype);
  const auto bytes = static_cast<std::size_t>(element_count(shape)) * size_of(type);
  void* const memory = device.allocate(bytes + (bytes == 0));
  const nb::capsule owner(
      memory, place == name_of(Where::gpu)
                  ? [](void* owned) noexcept { device_at(Where::gpu)->release(owned); }
                  : [](void* owned) noexcept { device_at(Where::emulated)->release(owned); });
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  return OwnTensor(memory, extents.size(), extents.data(), owner, nullptr, dlpack_of(type),
                   place == name_of(Where::gpu) ? nb::device::cuda::value : nb::device::cpu::value);
}

/// The forms of the rulebook that a problem reads: (name, shape).
std::vector<std::pair<std::string, Shape>> forms(const Rulebook& book,
                                                 const std::string& ladder_name,
                                                 const Problem& problem) {
  std::vector<std::pair<std::string, Shape>> all;
  for (const auto& [name, array] : rulebook_inputs(book, ladder(ladder_name).signature(problem)))
    all.emplace_back(name, array.shape());
  return all;
}

/// One of them in the memory of that place.
OwnTensor uploaded_form(const Rulebook& book, const std::string& ladder_name,
                        const Problem& problem, const std::string& name, const std::string& place) {
  const Array form = rulebook_inputs(book, ladder(ladder_name).signature(problem)).at(name);
  OwnTensor copy = empty(place, name_of(form.dtype()), form.shape());
  if (form.size() > 0) device_named(place).upload(copy.data(), form.data(), form.size_bytes());
  return copy;
}

}  // namespace

void add_in_place(nb::module_& module) {
  module.def("run_in_place", &run_in_place, "ladder"_a, "rung"_a, "where"_a, "problem"_a,
             "inputs"_a, "outputs"_a, "workspace"_a, "stream"_a);
  module.def("require_shapes", &require_shapes, "ladder"_a, "problem"_a, "shapes"_a);
  module.def("outputs", &outputs, "ladder"_a, "problem"_a);
  module.def("workspace_bytes", &workspace_bytes, "ladder"_a, "rung"_a, "where"_a, "problem"_a);
  module.def("empty", &empty, "where"_a, "dtype"_a, "shape"_a);
  module.def(
      "synchronize",
      [](const std::string& place) {
        const nb::gil_scoped_release others_run;
        device_named(place).synchronize();
      },
      "where"_a);
  module.def("forms", &forms, "rulebook"_a, "ladder"_a, "problem"_a);
  module.def("uploaded_form", &uploaded_form, "rulebook"_a, "ladder"_a, "problem"_a, "name"_a,
             "where"_a);
}

}  // namespace convladder::python
