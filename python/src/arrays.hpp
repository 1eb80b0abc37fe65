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

/// A copy. @param name for messages
/// @throws BadInput unless its elements are float32, int32 or float16
Array copy_of(const std::string& name, const HostArray& array);

/// The elements as a new NumPy array; bfloat16, which NumPy has not, as float32.
nanobind::object to_numpy(Array array);

}  // namespace convladder::python
