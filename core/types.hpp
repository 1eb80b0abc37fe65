/// @file types.hpp
/// @brief Small types that the problems of several ladders share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace convladder {

struct Half;       // core/half.hpp
struct BFloat16;   // core/half.hpp
struct Float8;     // core/float8.hpp
struct Signature;  // core/array.hpp

/// Element types. For types shorter than 32 bits see Half, BFloat16 and Float8.
enum class DType { f32, i32, f16, bf16, f8 };

/// The DType of a C++ element type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<T, Half>) {
    return DType::f16;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DType::bf16;
  } else if constexpr (std::is_same_v<T, Float8>) {
    return DType::f8;
  } else {
    static_assert(std::is_same_v<T, std::int32_t>, "no DType for T");
    return DType::i32;
  }
}

/// @throws std::logic_error that names the type of an array and the requested type
[[noreturn]] void throw_wrong_type(DType is);

/// The address of an array's elements, of the type given by the problem; null if the problem has no
/// such array. It converts to a pointer of that type.
template <class Void>
class Elements {
 public:
  Elements() = default;  ///< Null.
  /// Elements of a type that dtype_of() supports.
  template <class T>
    requires(!std::is_void_v<T>)
  Elements(T* data) : Elements(data, dtype_of<std::remove_const_t<T>>()) {}
  /// Elements of a type that is known only at run time.
  Elements(Void* data, DType dtype) : data_(data), dtype_(dtype) {}

  explicit operator bool() const { return data_ != nullptr; }  ///< Whether the pointer is not null.
  /// The first element, or null. @throws std::logic_error if the elements have another type
  template <class T>
  T* as() const {
    if (data_ == nullptr) return nullptr;
    if (dtype_of<std::remove_const_t<T>>() == dtype_) return static_cast<T*>(data_);
    throw_wrong_type(dtype_);
  }
  /// As as().
  template <class T>
  operator T*() const {
    return as<T>();
  }

 private:
  Void* data_ = nullptr;
  DType dtype_ = DType::f32;
};

using Input = Elements<const void>;  ///< An array that a rung reads.
using Output = Elements<void>;       ///< An array that a rung writes.

/// The required precision of a rung's multiplications.
enum class Precision {
  fp32,  ///< Operands unchanged.
  tf32   ///< Operands may be rounded to TF32 first: float's exponent, 10 fraction bits.
};

/// The extents of an array, outermost first.
using Shape = std::vector<std::int64_t>;

/// The tile maps, with CUTLASS's names. cpu_reference/tile_map/maps.cpp defines their orders.
enum class TileMap {
  row_major,   ///< tile row by tile row, in a grid with one axis
  identity1,   ///< GemmIdentityThreadblockSwizzle<1>: tile column by tile column
  identity2,   ///< ...<2>: super-columns up to 2 tiles wide, walked row by row
  identity4,   ///< ...<4>
  identity8,   ///< ...<8>
  horizontal,  ///< GemmHorizontalThreadblockSwizzle: grid.x runs over the tile columns
  grouped,     ///< Triton's GROUP_SIZE_M: super-rows, walked column by column
  hilbert,     ///< along a Hilbert curve
  split_k,     ///< GemmSplitKIdentityThreadblockSwizzle: several blocks share a tile's k-steps
  batched,     ///< GemmBatchedIdentityThreadblockSwizzle: grid.z runs over a batch of GEMMs
  stream_k     ///< equal shares of all k-steps, which cross tile borders (Osama et al., 2023)
};

}  // namespace convladder
