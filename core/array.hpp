/// @file array.hpp
/// @brief Arrays as programs hold them: an element type, a shape, and row-major elements on the
/// host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/type_names.hpp"

namespace convladder {

/// The order of an array's elements in the memory of a rung. Shape, messages and files do not
/// depend on it.
struct MemoryOrder {
  Shape view;  ///< The shape, with axes split if the order requires it; empty: unchanged.
  std::vector<int> axes;  ///< The axes of the view, outermost first in memory.
};

/// "2 x 3 x 5"; a scalar's shape is empty.
inline std::string to_string(const Shape& shape) { return joined(shape, " x "); }

/// The number of elements. @throws BadInput on overflow.
std::int64_t element_count(const Shape& shape);

/// The specification of an input or output of a rung.
struct ArraySpec {
  std::string name;          ///< The name in files and messages: x, weights, y ...
  std::string axes;          ///< One letter per axis, for messages: "nkpq".
  Shape shape;               ///< Row-major; for `dynamic` outputs, the unknown extent is 0.
  DType dtype = DType::f32;  ///< Type of its elements.
  bool dynamic = false;      ///< The rung creates this output itself when it knows the size.
  std::string initial = {};  ///< The input with which this output is initialised; empty: unwritten
                             ///< (NaN).
  bool optional = false;     ///< A dynamic output that a rung may omit.
  MemoryOrder order = {};    ///< The order in a rung's memory; row-major by default.
};

/// All inputs and outputs of a rung.
struct Signature {
  std::vector<ArraySpec> inputs;   ///< In the order in which messages name them.
  std::vector<ArraySpec> outputs;  ///< Likewise.
};

/// A row-major array on the host.
class Array {
 public:
  Array() = default;
  /// Zero-initialised. @throws BadInput if the size overflows.
  Array(DType dtype, Shape shape)
      : dtype_(dtype), shape_(std::move(shape)),
        bytes_(static_cast<std::size_t>(element_count(shape_)) * size_of(dtype)) {}

  DType dtype() const { return dtype_; }         ///< Type of the elements.
  const Shape& shape() const { return shape_; }  ///< Extents, outermost first.
  /// Number of elements.
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size() / size_of(dtype_)); }
  /// The same elements in another shape of the same size.
  Array reshaped(Shape shape) const {
    if (element_count(shape) != size()) throw std::logic_error("reshaped to another size");
    Array result = *this;
    result.shape_ = std::move(shape);
    return result;
  }
  std::size_t size_bytes() const { return bytes_.size(); }  ///< Bytes of all elements.
  std::byte* data() { return bytes_.data(); }               ///< The first byte.
  const std::byte* data() const { return bytes_.data(); }   ///< The first byte.

  /// The elements. @throws std::logic_error if T is not the element type.
  template <class T>
  std::span<T> as() {
    check<T>();
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  /// The elements, read-only. @throws std::logic_error if T is not the element type.
  template <class T>
  std::span<const T> as() const {
    check<T>();
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  template <class T>
  void check() const {
    if (dtype_of<T>() != dtype_) throw std::logic_error(text("the array holds ", name_of(dtype_)));
  }

  DType dtype_ = DType::f32;
  Shape shape_ = {0};
  std::vector<std::byte> bytes_;
};

/// The same floating-point numbers, rounded to the type.
Array rounded_to(const Array& array, DType dtype);

}  // namespace convladder
