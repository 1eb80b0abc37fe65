/// @file
/// @brief CUDA's mathematical functions beyond <cmath>, and its intrinsics.
///
/// Intrinsics with a rounding suffix (_rn) are exact to the bit; the approximate ones (__expf,
/// rsqrtf, __fdividef) are computed with full precision.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace cuda_on_cpu {
namespace detail {

template <class A, class B>
using Common = std::common_type_t<A, B>;
template <class A, class B>
concept Arithmetic = std::is_arithmetic_v<A> && std::is_arithmetic_v<B>;

}  // namespace detail

/// min and max of mixed arithmetic types; if one operand is a NaN, the other is returned, as in
/// CUDA.
template <class A, class B>
  requires detail::Arithmetic<A, B>
constexpr detail::Common<A, B> min(A a, B b) {
  using T = detail::Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return y;
  }
  return y < x ? y : x;
}
template <class A, class B>
  requires detail::Arithmetic<A, B>
constexpr detail::Common<A, B> max(A a, B b) {
  using T = detail::Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return y;
  }
  return x < y ? y : x;
}

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
constexpr float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

constexpr float __fadd_rn(float a, float b) { return a + b; }
constexpr float __fsub_rn(float a, float b) { return a - b; }
constexpr float __fmul_rn(float a, float b) { return a * b; }
constexpr float __fdiv_rn(float a, float b) { return a / b; }
constexpr float __fdividef(float a, float b) { return a / b; }
constexpr float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frsqrt_rn(float a) { return static_cast<float>(1.0 / std::sqrt(double{a})); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
constexpr double __dadd_rn(double a, double b) { return a + b; }
constexpr double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// --- Integers

constexpr int __popc(unsigned x) { return std::popcount(x); }
constexpr int __popcll(unsigned long long x) { return std::popcount(x); }
constexpr int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
constexpr int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
/// Position of the lowest set bit counted from 1; 0 if there is none.
constexpr int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
constexpr int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
constexpr unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
constexpr unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
constexpr unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32);
}
constexpr int __mulhi(int a, int b) {
  return static_cast<int>((std::int64_t{a} * std::int64_t{b}) >> 32);
}
__extension__ using Uint128 = unsigned __int128;
constexpr unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((Uint128{a} * b) >> 64);
}
/// The low 32 bits of the product of the two values' low 24 bits.
constexpr unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
constexpr int __mul24(int a, int b) {
  const auto low24 = [](int x) { return static_cast<int>(static_cast<unsigned>(x) << 8) >> 8; };
  return static_cast<int>(static_cast<unsigned>(low24(a)) * static_cast<unsigned>(low24(b)));
}
/// The upper half of `high:low << shift`, shift taken modulo 32.
constexpr unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) << (shift & 31u) >> 32);
}
/// The lower half of `high:low >> shift`, shift taken modulo 32.
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31u));
}

// --- Conversions and reinterpretations

constexpr int __float_as_int(float x) { return std::bit_cast<int>(x); }
constexpr unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
constexpr float __int_as_float(int x) { return std::bit_cast<float>(x); }
constexpr float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
constexpr long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
constexpr double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
constexpr float __int2float_rn(int x) { return static_cast<float>(x); }
constexpr float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
constexpr float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
constexpr int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }

// --- Loads and stores with a cache hint, which is ignored

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
template <class T>
void __stcg(T* address, T value) {
  *address = value;
}

}  // namespace cuda_on_cpu

// glibc declares functions with these names, so only macros can replace them.
#define __expf(x) (::std::exp(float{x}))
#define __exp10f(x) (::std::pow(10.0f, float{x}))
#define __logf(x) (::std::log(float{x}))
#define __log2f(x) (::std::log2(float{x}))
#define __log10f(x) (::std::log10(float{x}))
#define __sinf(x) (::std::sin(float{x}))
#define __cosf(x) (::std::cos(float{x}))
#define __tanf(x) (::std::tan(float{x}))
#define __powf(x, y) (::std::pow(float{x}, float{y}))
