/// @file
/// @brief One TMA load: from an array in device memory to a box in shared memory, or of contiguous
/// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>

#include "tensor_map.hpp"

namespace cuda_on_cpu {

/// Rounds to the nearest number with 10 fraction bits, ties to even. This is how TMA stores
/// elements of CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 (observed on an H200; the manual does not specify
/// it).
std::uint32_t rounded_to_tf32_by_tma(std::uint32_t bits);

/// The swizzled position of a box's 16-byte chunks: bits 4 to 6 of an address are XORed with bits 7
/// to 9, or with fewer of them. `span` is 32, 64 or 128 bytes, or 0 for no swizzle.
constexpr std::uintptr_t swizzled(std::uintptr_t address, unsigned span) {
  return address ^ (address >> 3 & (span == 0 ? 0u : span - 16u));
}

class TensorLoad {
 public:
  std::array<std::int32_t, kMaxTensorRank> at{};           ///< coordinates, innermost first
  std::array<std::uint16_t, kMaxTensorRank - 2> offset{};  ///< im2col: of the filter's tap
  unsigned char* to = nullptr;
  detail::Site site;      ///< where it was issued
  unsigned thread = 0;    ///< the issuing thread
  TensorMapFields map{};  ///< a copy of the map at the issue
  /// A bulk load: this many bytes from this address, without a map.
  const unsigned char* bulk = nullptr;
  std::size_t bulk_bytes = 0;

  /// The bytes that the load counts at the barrier.
  std::size_t bytes() const;
  /// From `to` to one past the last byte written.
  std::size_t extent() const { return bulk != nullptr ? bulk_bytes : rows() * row_pitch(); }
  /// The reason why the hardware would reject it, or null.
  const char* defect() const;
  /// Fills the destination with NaN bytes until the load completes.
  void clear() const;
  /// Executes the copy.
  void land() const;
  /// The inverse of a tiled load: copies the box at `to` into the array, except for elements
  /// outside of it.
  void store() const;

 private:
  unsigned inner() const { return map.im2col ? map.channels : map.box[0]; }
  /// Elements of a box along dimension `i`.
  unsigned steps(unsigned i) const {
    return (map.box[i] + map.element_strides[i] - 1u) / map.element_strides[i];
  }
  std::size_t rows() const;
  unsigned span() const {
    return map.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16u << map.swizzle;
  }
  std::size_t row_pitch() const;
  unsigned element() const { return element_bytes(static_cast<CUtensorMapDataType>(map.type)); }
  std::size_t row_bytes() const { return std::size_t{element()} * inner(); }
  void store_row(std::size_t row, const unsigned char* bytes) const;
  /// Loads the elements at `position`, which may be outside of the array.
  void load_row(const std::int64_t* position, unsigned char* bytes) const;
  /// Calls visit(row, position) for the rows of a tiled map's box.
  template <class Visit>
  void for_each_row(const Visit& visit) const;
  /// The part of a row at `position` that is inside of the array.
  struct Inside {
    unsigned char* address;     ///< of the first byte
    std::size_t begin, length;  ///< bytes from the row's first byte on
  };
  Inside inside(const std::int64_t* position) const;
  void land_tiles() const;
  void land_columns() const;
};

}  // namespace cuda_on_cpu
