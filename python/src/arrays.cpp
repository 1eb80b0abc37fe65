#include "arrays.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "oracle/memory_order.hpp"

namespace nb = nanobind;

namespace convladder::python {

DType dtype_of(const std::string& name, nb::dlpack::dtype dtype) {
  using nb::dlpack::dtype_code;
  const auto code = static_cast<dtype_code>(dtype.code);
  if (code == dtype_code::Float && dtype.bits == 32) return DType::f32;
  if (code == dtype_code::Float && dtype.bits == 16) return DType::f16;
  if (code == dtype_code::Bfloat && dtype.bits == 16) return DType::bf16;
  if (code == dtype_code::Int && dtype.bits == 32) return DType::i32;
  throw BadInput(text(name, " = elements of ", int{dtype.bits},
                      " bits: they must be float32, float16, bfloat16 or int32"));
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  using nb::dlpack::dtype_code;
  const auto code = dtype == DType::i32    ? dtype_code::Int
                    : dtype == DType::bf16 ? dtype_code::Bfloat
                                           : dtype_code::Float;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

void require_shape(const ArraySpec& spec, const Shape& shape) {
  if (shape == spec.shape) return;  // without messages: this is part of each call
  require(false, spec.name, text("shape ", to_string(shape)),
          text("the problem has ", to_string(spec.shape)));
}

Shape shape_in_memory(const ArraySpec& spec) {
  if (spec.order.view.empty()) return spec.shape;
  Shape shape;
  for (const int axis : spec.order.axes)
    shape.push_back(spec.order.view[static_cast<std::size_t>(axis)]);
  return shape;
}

void require_shape_in_memory(const ArraySpec& spec, const Shape& shape) {
  const Shape wanted = shape_in_memory(spec);
  if (shape == wanted) return;
  std::string axes;
  if (spec.order.view == spec.shape)
    for (const int axis : spec.order.axes) axes += spec.axes[static_cast<std::size_t>(axis)];
  require(false, spec.name, text("shape ", to_string(shape)),
          text("the problem has ", to_string(wanted), axes.empty() ? "" : " (" + axes + ")"));
}

Array from_caller(const ArraySpec& spec, Array array) {
  require_shape_in_memory(spec, array.shape());
  if (spec.order.view.empty()) return array;
  return from_memory(array.reshaped(spec.shape), spec.order);
}

Array to_caller(const ArraySpec& spec, Array array) {
  if (spec.order.view.empty()) return array;
  return in_memory(array, spec.order).reshaped(shape_in_memory(spec));
}

Array copy_of(const std::string& name, const HostArray& array) {
  Array copy(dtype_of(name, array.dtype()), shape_of(array));
  if (copy.size() > 0) std::memcpy(copy.data(), array.data(), copy.size_bytes());
  return copy;
}

void require_possible(const ArraySpec& spec) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(spec.dtype));
  for (const std::int64_t extent : spec.shape) {
    if (!__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) continue;
    require(false, "memory", to_string(spec.shape),
            text(spec.name, " would have more than 2^63 - 1 bytes"));
  }
}

nb::object to_numpy(Array array) {
  if (array.dtype() == DType::bf16) array = rounded_to(array, DType::f32);
  auto kept = std::make_unique<Array>(std::move(array));
  const std::vector<std::size_t> shape(kept->shape().begin(), kept->shape().end());
  const nb::dlpack::dtype dtype = dlpack_of(kept->dtype());
  void* const data = kept->data();
  const nb::capsule owner(kept.release(),
                          [](void* owned) noexcept { delete static_cast<Array*>(owned); });
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, dtype));
}

}  // namespace convladder::python
