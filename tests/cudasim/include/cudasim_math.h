// Arithmetic that C++ does not have, or calls otherwise. Fast intrinsics are exact here.
#pragma once

template <class A, class B> constexpr auto min(A a, B b) {
    using T = decltype(true ? a : b);
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B> constexpr auto max(A a, B b) {
    using T = decltype(true ? a : b);
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
// A NaN loses, as in fminf and on a device.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

namespace cudasim {
inline float fast_exp(float x) { return expf(x); }
inline float fast_exp10(float x) { return powf(10.0f, x); }
inline float fast_log(float x) { return logf(x); }
inline float fast_log2(float x) { return log2f(x); }
inline float fast_log10(float x) { return log10f(x); }
inline float fast_sin(float x) { return sinf(x); }
inline float fast_cos(float x) { return cosf(x); }
inline float fast_tan(float x) { return tanf(x); }
inline float fast_pow(float x, float y) { return powf(x, y); }
inline void fast_sincos(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
}  // namespace cudasim
// glibc declares functions of these names without defining them, so ours stand behind macros.
#define __expf cudasim::fast_exp
#define __exp10f cudasim::fast_exp10
#define __logf cudasim::fast_log
#define __log2f cudasim::fast_log2
#define __log10f cudasim::fast_log10
#define __sinf cudasim::fast_sin
#define __cosf cudasim::fast_cos
#define __tanf cudasim::fast_tan
#define __powf cudasim::fast_pow
#define __sincosf cudasim::fast_sincos

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
    return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(int64_t{a} * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((uint64_t{high} << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (shift & 31));
}

inline int __float_as_int(float x) { return cudasim::from_bits<int>(cudasim::to_bits(x)); }
inline unsigned __float_as_uint(float x) { return cudasim::from_bits<unsigned>(cudasim::to_bits(x)); }
inline float __int_as_float(int x) { return cudasim::from_bits<float>(cudasim::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return cudasim::from_bits<float>(cudasim::to_bits(x)); }
inline long long __double_as_longlong(double x) { return cudasim::from_bits<long long>(cudasim::to_bits(x)); }
inline double __longlong_as_double(long long x) { return cudasim::from_bits<double>(cudasim::to_bits(x)); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
