/// @file
/// @brief dim3 and the vector types char1 ... double4, with CUDA's sizes and alignments.
#pragma once

namespace cuda_on_cpu {

// A compiler's instrumentation misses the store of a function's result, `*p = make_float4(...)`.
// With a user-defined assignment, the assignment of a vector is one store of all its bytes.
#if defined(CUDA_ON_CPU_INSPECT)
#define CUDA_ON_CPU_ASSIGNED(type)                                           \
  type& operator=(const type& other) {                                       \
    struct alignas(alignof(type)) Bytes {                                    \
      unsigned char byte[sizeof(type)];                                      \
    };                                                                       \
    *reinterpret_cast<Bytes*>(this) = reinterpret_cast<const Bytes&>(other); \
    return *this;                                                            \
  }
#else
#define CUDA_ON_CPU_ASSIGNED(type)
#endif

// clang-format off
#define CUDA_ON_CPU_VECTORS(name, element, align2, align4)                                       \
  struct name##1 { element x; };                                                                 \
  struct alignas(align2) name##2 { element x, y; CUDA_ON_CPU_ASSIGNED(name##2) };                \
  struct name##3 { element x, y, z; CUDA_ON_CPU_ASSIGNED(name##3) };                             \
  struct alignas(align4) name##4 { element x, y, z, w; CUDA_ON_CPU_ASSIGNED(name##4) };          \
  constexpr name##1 make_##name##1(element x) { return {x}; }                                    \
  constexpr name##2 make_##name##2(element x, element y) { return {x, y}; }                      \
  constexpr name##3 make_##name##3(element x, element y, element z) { return {x, y, z}; }        \
  constexpr name##4 make_##name##4(element x, element y, element z, element w) {                 \
    return {x, y, z, w};                                                                         \
  }
// clang-format on

// Pairs and quadruples are aligned to their size, up to 16 bytes, so that one load instruction
// reads them.
CUDA_ON_CPU_VECTORS(char, signed char, 2, 4)
CUDA_ON_CPU_VECTORS(uchar, unsigned char, 2, 4)
CUDA_ON_CPU_VECTORS(short, short, 4, 8)
CUDA_ON_CPU_VECTORS(ushort, unsigned short, 4, 8)
CUDA_ON_CPU_VECTORS(int, int, 8, 16)
CUDA_ON_CPU_VECTORS(uint, unsigned int, 8, 16)
CUDA_ON_CPU_VECTORS(long, long, 16, 16)
CUDA_ON_CPU_VECTORS(ulong, unsigned long, 16, 16)
CUDA_ON_CPU_VECTORS(longlong, long long, 16, 16)
CUDA_ON_CPU_VECTORS(ulonglong, unsigned long long, 16, 16)
CUDA_ON_CPU_VECTORS(float, float, 8, 16)
CUDA_ON_CPU_VECTORS(double, double, 16, 16)

#undef CUDA_ON_CPU_VECTORS
#undef CUDA_ON_CPU_ASSIGNED

/// The extents of a grid or a block; omitted extents are 1.
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

}  // namespace cuda_on_cpu
