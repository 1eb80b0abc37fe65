/// @file workspace_cutter.hpp
/// @brief Divides a workspace among arrays, from front to back.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Allocates arrays from a workspace. Without a workspace it returns null and still counts: the
/// same code thus computes the size of the workspace and the addresses of the arrays.
class WorkspaceCutter {
 public:
  /// @param begin  the workspace, or null
  explicit WorkspaceCutter(std::byte* begin) : begin_(begin) {}

  /// Room for `count` elements of T at the next multiple of 256 bytes.
  template <class T>
  T* take(std::integral auto count) {
    const std::size_t at = ceil_div<std::size_t>(end_, kAlignment) * kAlignment;
    end_ = at + static_cast<std::size_t>(count) * sizeof(T);
    return begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + at);
  }

  /// Bytes allocated so far.
  std::size_t bytes() const { return end_; }

 private:
  static constexpr std::size_t kAlignment = 256;  ///< Alignment, also of the workspace itself.

  std::byte* begin_;
  std::size_t end_ = 0;
};

}  // namespace convladder::BACKEND
