/// @file memory_order.hpp
/// @brief Converts between the memory order of a rung's array and the order of its shape.
#pragma once

#include "core/array.hpp"

namespace convladder {

/// The elements of `array` in a rung's memory order. The shape is unchanged.
Array in_memory(const Array& array, const MemoryOrder& order);

/// The inverse conversion.
Array from_memory(Array array, const MemoryOrder& order);

/// The offset in memory of the element at a row-major offset.
std::int64_t place_in_memory(std::int64_t place, const MemoryOrder& order);

}  // namespace convladder
