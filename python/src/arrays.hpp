/// @file arrays.hpp
/// @brief Conversion between NumPy's arrays and the project's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "core/array.hpp"

namespace convladder::python {

/// An argument: any object that supports DLPack or the buffer protocol, on the host.
using HostArray = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

/// The element type of a tensor. @param name for messages
/// @throws BadInput unless it is float32, float16, bfloat16 or int32
DType dtype_of(const std::string& name, nanobind::dlpack::dtype dtype);

/// The same for DLPack.
nanobind::dlpack::dtype dlpack_of(DType dtype);

/// The extents of a tensor.
template <class... Options>
Shape shape_of(const nanobind::ndarray<Options...>& tensor) {
  Shape shape;
  for (std::size_t axis = 0; axis < tensor.ndim(); ++axis)
    shape.push_back(static_cast<std::int64_t>(tensor.shape(axis)));
  return shape;
}

/// Throws BadInput unless the shape of an array is that of `spec`.
void require_shape(const ArraySpec& spec, const Shape& shape);

/// The shape of an array as seen by a caller: that of its elements in memory. In the layout nhwc, x
/// is [N][H][W][C].
Shape shape_in_memory(const ArraySpec& spec);

/// Throws BadInput unless a caller's array of that shape can be the array `spec`.
void require_shape_in_memory(const ArraySpec& spec, const Shape& shape);

/// The array `spec` from the caller's array, which must have shape_in_memory(). @throws BadInput
/// otherwise
Array from_caller(const ArraySpec& spec, Array array);

/// The inverse conversion.
Array to_caller(const ArraySpec& spec, Array array);

/// A copy. @param name for messages
/// @throws BadInput unless its elements have one of the types above
Array copy_of(const std::string& name, const HostArray& array);

/// Throws BadInput unless Python can represent such an array: libraries count the bytes of an empty
/// array as if its extents of 0 were 1, and up to 2^63 - 1.
void require_possible(const ArraySpec& spec);

/// The elements as a new NumPy array; bfloat16, which NumPy does not support, as float32.
nanobind::object to_numpy(Array array);

}  // namespace convladder::python
