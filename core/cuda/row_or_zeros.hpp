/// @file row_or_zeros.hpp
/// @brief Loads a part of a row that may not exist, without a branch.
#pragma once

#include <cstdint>

#include "core/cuda/launch.hpp"

namespace convladder::BACKEND {

/// 16 bytes of row `row`, or zeros if it is negative: then nothing is read. Rows begin `pitch`
/// bytes apart; `rows` is the address of the part in row 0, a multiple of 16 bytes. The data must
/// not change while the kernel runs. The load is predicated; written as an `if`, each of several
/// consecutive loads would be a branch at which a warp's lanes diverge and reconverge.
__device__ inline uint4 row_or_zeros(const void* rows, std::int32_t row, unsigned pitch) {
  uint4 piece{};
#ifdef __CUDACC__
  asm("{\n"
      ".reg .pred exists;\n"
      ".reg .u64 at;\n"
      "mov.u32 %0, 0;\n"
      "mov.u32 %1, 0;\n"
      "mov.u32 %2, 0;\n"
      "mov.u32 %3, 0;\n"
      "setp.ge.s32 exists, %5, 0;\n"
      "mad.wide.u32 at, %5, %6, %4;\n"
      "@exists ld.global.v4.u32 {%0, %1, %2, %3}, [at];\n"
      "}"
      : "=&r"(piece.x), "=&r"(piece.y), "=&r"(piece.z), "=&r"(piece.w)
      : "l"(__cvta_generic_to_global(rows)), "r"(row), "r"(pitch));
#else
  if (row >= 0) {
    const auto* const at = static_cast<const char*>(rows) +
                           static_cast<std::uint64_t>(static_cast<unsigned>(row)) * pitch;
    piece = *reinterpret_cast<const uint4*>(at);
  }
#endif
  return piece;
}

}  // namespace convladder::BACKEND
