/// @file memory_order.hpp
/// @brief Between the order in which a rung gets an array's elements and the order of its shape.
#pragma once

#include "core/array.hpp"

namespace convladder {

/// The elements of `array` as they follow one another in a rung's memory. The shape stays.
Array in_memory(const Array& array, const MemoryOrder& order);

/// The way back.
Array from_memory(Array array, const MemoryOrder& order);

/// Where in memory the element at a row-major offset lies.
std::int64_t place_in_memory(std::int64_t place, const MemoryOrder& order);

}  // namespace convladder
