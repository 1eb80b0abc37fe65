/// @file workspace_cutter.hpp
/// @brief Divides a workspace among arrays, front to back.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// Hands out a workspace piece by piece. Without one it hands out null, and still counts: so the
/// same lines say how much workspace there must be, and where everything is in it.
class WorkspaceCutter {
 public:
  /// @param begin  the workspace, or null
  explicit WorkspaceCutter(std::byte* begin) : begin_(begin) {}

  /// Room for `count` of T, from the next multiple of 256 bytes on: right behind the piece before,
  /// where that has so many bytes.
  template <class T>
  T* take(std::integral auto count) {
    const std::size_t at = ceil_div<std::size_t>(end_, kAlignment) * kAlignment;
    end_ = at + static_cast<std::size_t>(count) * sizeof(T);
    return begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + at);
  }

  /// Bytes up to the end of what has been handed out.
  std::size_t bytes() const { return end_; }

 private:
  static constexpr std::size_t kAlignment = 256;  ///< As of the workspace itself.

  std::byte* begin_;
  std::size_t end_ = 0;
};

}  // namespace convladder::BACKEND
