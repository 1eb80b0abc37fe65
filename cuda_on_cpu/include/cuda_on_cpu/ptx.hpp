/// @file
/// @brief What the tensor-core instructions of NVIDIA's "PTX ISA" manual (9.0, section 9.7) do, as
/// functions.
///
/// The instructions with `.sync.aligned` take a whole warp: all 32 lanes must call the same one.
/// The lane below is the calling thread's index in its warp, group = lane / 4 and place = lane % 4.
#pragma once

#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>

namespace cuda_on_cpu::ptx {

/// `ldmatrix.sync.aligned.m8n8.x1.shared.b16`: loads a matrix of 8 rows of 16 bytes from shared
/// memory, and gives each lane the 4 bytes at `place` in row `group`. Lane i tells where row i
/// begins, at a multiple of 16 bytes; what lanes 8 to 31 tell is ignored.
void ldmatrix_x1(std::uint32_t (&fragment)[1], const void* row,
                 detail::Site site = detail::Site::current());
/// `.x2`: two matrices; lanes 8 to 15 tell the rows of the second.
void ldmatrix_x2(std::uint32_t (&fragment)[2], const void* row,
                 detail::Site site = detail::Site::current());
/// `.x4`: four matrices; lane 8 * m + i tells row i of matrix m.
void ldmatrix_x4(std::uint32_t (&fragment)[4], const void* row,
                 detail::Site site = detail::Site::current());

/// `cvt.rna.tf32.f32`: the nearest number with 10 bits of fraction, the one further from zero where
/// two are as near. The 13 low bits of the result are zero.
std::uint32_t cvt_rna_tf32(float value);

/// `mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32`: d += a * b, with matrices a [16][8], b
/// [8][8] and d [16][8] spread over the warp:
///
///     a[0], a[1], a[2], a[3]   a at (group, place), (group + 8, place), (group, place + 4),
///                                   (group + 8, place + 4)
///     b[0], b[1]               b at (place, group), (place + 4, group)
///     d[0], d[1], d[2], d[3]   d at (group, 2 place), (group, 2 place + 1), (group + 8, 2 place),
///                                   (group + 8, 2 place + 1)
///
/// The 13 low bits of a and b are ignored, as by the hardware: a factor that was not rounded before
/// is truncated. The products are exact; their sum with d is rounded once, towards zero. (NVIDIA
/// leaves order and rounding open; GPUs truncate.)
void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      detail::Site site = detail::Site::current());

}  // namespace cuda_on_cpu::ptx
