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

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __fdividef(float a, float b) { return a / b; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }

inline unsigned __float_as_uint(float x) { return cudasim::from_bits<unsigned>(cudasim::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return cudasim::from_bits<float>(cudasim::to_bits(x)); }
