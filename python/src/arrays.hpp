/// @file arrays.hpp
/// @brief NumPy's arrays as the project's, and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "core/array.hpp"

namespace convladder::python {

/// What a caller hands in: anything that speaks DLPack or the buffer protocol, on the host.
using HostArray = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

/// The type of a tensor's elements. @param name for messages
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

/// The shape of an array as a caller passes it and gets it: that of its elements in memory. In the
/// layout nhwc, x is [N][H][W][C].
Shape shape_in_memory(const ArraySpec& spec);

/// Throws BadInput unless a caller's array of that shape can be the array `spec`.
void require_shape_in_memory(const ArraySpec& spec, const Shape& shape);

/// The array `spec` of a caller's one, which has shape_in_memory(). @throws BadInput if it has not
Array from_caller(const ArraySpec& spec, Array array);

/// The way back.
Array to_caller(const ArraySpec& spec, Array array);

/// A copy. @param name for messages
/// @throws BadInput unless its elements are of one of the types above
Array copy_of(const std::string& name, const HostArray& array);

/// Throws BadInput unless there can be such an array in Python: libraries count the bytes of an
/// empty one as if its extents of 0 were 1, and up to 2^63 - 1.
void require_possible(const ArraySpec& spec);

/// The elements as a new NumPy array; bfloat16, which NumPy has not, as float32.
nanobind::object to_numpy(Array array);

}  // namespace convladder::python
