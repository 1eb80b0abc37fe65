/// @file message.hpp
/// @brief The messages between the grader and a worker: two memory segments of fixed size.
///
/// The grader trusts nothing in the worker's segment except arrays that it has verified. Every read
/// is checked against the end of the segment, and a text can only lower the result of the worker.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/array.hpp"

namespace convladder::grader {

static_assert(std::endian::native == std::endian::little);

inline constexpr int kCaseFile = 3;    ///< The worker's descriptor of the case, which it may read.
inline constexpr int kResultFile = 4;  ///< That of the memory that it writes.
inline constexpr int kSymbolFile = 5;  ///< Names and lines of its own program (own_symbols.cpp).

/// Drawn for each process; the worker writes it last, so that a result without it is not complete.
using Nonce = std::array<std::byte, 32>;

/// The bytes are not a message.
class Malformed : public std::runtime_error {
 public:
  Malformed() : std::runtime_error("the worker's result makes no sense") {}
};

/// Writes values one behind the other.
class Writer {
 public:
  explicit Writer(std::span<std::byte> to) : to_(to) {}

  /// @throws std::length_error if the memory is too short
  void bytes(const void* from, std::size_t count) {
    if (count > to_.size() - at_) throw std::length_error("the result does not fit");
    if (count != 0) std::memcpy(to_.data() + at_, from, count);
    at_ += count;
  }
  /// A number.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void value(const T& value) {
    bytes(&value, sizeof value);
  }
  /// Characters.
  void string(const std::string& text) {
    value(static_cast<std::uint64_t>(text.size()));
    bytes(text.data(), text.size());
  }
  /// Type, shape and elements.
  void array(const Array& array) {
    value(static_cast<std::int32_t>(array.dtype()));
    value(static_cast<std::uint64_t>(array.shape().size()));
    for (const std::int64_t extent : array.shape()) value(extent);
    bytes(array.data(), array.size_bytes());
  }

 private:
  std::span<std::byte> to_;
  std::size_t at_ = 0;
};

/// Reads them.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}

  /// @throws Malformed beyond the end, as all below
  void bytes(void* to, std::size_t count) {
    if (count > from_.size() - at_) throw Malformed();
    if (count != 0) std::memcpy(to, from_.data() + at_, count);
    at_ += count;
  }
  /// A number.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  T value() {
    T value;
    bytes(&value, sizeof value);
    return value;
  }
  /// Characters.
  std::string string() {
    const auto count = value<std::uint64_t>();
    if (count > from_.size() - at_) throw Malformed();
    std::string text(static_cast<std::size_t>(count), '\0');
    bytes(text.data(), text.size());
    return text;
  }
  /// Type, shape and elements.
  Array array() {
    const auto dtype = value<std::int32_t>();
    if (dtype < 0 || dtype > static_cast<std::int32_t>(DType::f8)) throw Malformed();
    const auto rank = value<std::uint64_t>();
    if (rank > 8) throw Malformed();
    Shape shape;
    std::uint64_t elements = 1;
    for (std::uint64_t i = 0; i < rank; ++i) {
      const auto extent = value<std::int64_t>();
      if (extent < 0 || extent > std::int64_t{1} << 31) throw Malformed();
      if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(extent), &elements))
        throw Malformed();
      shape.push_back(extent);
    }
    if (elements > from_.size() - at_) throw Malformed();  // before memory is asked for
    Array array(static_cast<DType>(dtype), shape);
    bytes(array.data(), array.size_bytes());
    return array;
  }

 private:
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
};

/// How a run ended, in the worker's words.
enum class Ending : std::uint32_t {
  ran,          ///< Arrays follow.
  damaged,      ///< It wrote where it must not, or a call failed.
  declined,     ///< The rung does not take the problem.
  refused,      ///< Nor these inputs, in the words that follow.
  not_written,  ///< It came to a blank.
  memory        ///< More than it may have.
};

}  // namespace convladder::grader
