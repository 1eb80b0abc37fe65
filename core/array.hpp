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

/// How the elements of an array follow one another where a rung computes. Its shape, messages and
/// files do not change with it.
struct MemoryOrder {
  Shape view;  ///< The shape, with axes split where an order needs that; empty: as it is.
  std::vector<int> axes;  ///< The view's axes, outermost first in memory.
};

/// "2 x 3 x 5"; a scalar's shape is empty.
inline std::string to_string(const Shape& shape) { return joined(shape, " x "); }

/// The number of elements. @throws BadInput on overflow.
std::int64_t element_count(const Shape& shape);

/// What an input or an output of a rung is.
struct ArraySpec {
  std::string name;  ///< As in files and messages: x, weights, y ...
  std::string axes;  ///< One letter an axis, for messages: "nkpq".
  Shape shape;       ///< Row-major; for `dynamic` outputs the extent that is not known is 0.
  DType dtype = DType::f32;  ///< Type of its elements.
  bool dynamic = false;      ///< The rung creates this output itself, once it knows its size.
  std::string initial = {};  ///< The input that this output starts as; empty: unwritten (NaN).
  bool optional = false;     ///< A dynamic output that a rung may leave out.
  MemoryOrder order = {};  ///< In the memory that a rung gets; row-major unless it says otherwise.
};

/// Everything that a rung reads and writes.
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
  /// The same elements in another shape, of as many.
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
  /// The elements, to read. @throws std::logic_error if T is not the element type.
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
