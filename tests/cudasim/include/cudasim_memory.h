// Loads, stores and atomics. Threads take turns only where they meet, so a plain read and write is atomic here.
#pragma once

template <class T> T __ldg(const T* at) { return *at; }
template <class T> T __ldcg(const T* at) { return *at; }
template <class T> T __ldca(const T* at) { return *at; }
template <class T> T __ldcs(const T* at) { return *at; }
template <class T> T __ldlu(const T* at) { return *at; }
template <class T> T __ldcv(const T* at) { return *at; }
template <class T> void __stcg(T* at, T value) { *at = value; }
template <class T> void __stcs(T* at, T value) { *at = value; }
template <class T> void __stwb(T* at, T value) { *at = value; }
template <class T> void __stwt(T* at, T value) { *at = value; }

inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __threadfence_system() { asm volatile("" ::: "memory"); }

// The value is deduced from the address alone: atomicAdd(&count, 1) must work for an unsigned count.
template <class T> struct CudasimSame { using type = T; };
template <class T> using CudasimValue = typename CudasimSame<T>::type;

// Inlined, so that the driver is called from the place of the atomic; volatile, so that it takes no access for a plain one.
#define CUDASIM_ATOMIC(name, expression)                                                                            \
    template <class T> __forceinline__ T name(T* at, CudasimValue<T> value) {                                       \
        volatile T* place = at;                                                                                     \
        T old = *place;                                                                                             \
        *place = (expression);                                                                                      \
        cudasim_calls->atomic(at, sizeof(T));                                                                       \
        return old;                                                                                                 \
    }                                                                                                               \
    template <class T> __forceinline__ T name##_block(T* at, CudasimValue<T> value) { return name(at, value); }

CUDASIM_ATOMIC(atomicAdd, old + value)
CUDASIM_ATOMIC(atomicSub, old - value)
CUDASIM_ATOMIC(atomicMax, old < value ? value : old)
CUDASIM_ATOMIC(atomicMin, value < old ? value : old)
CUDASIM_ATOMIC(atomicExch, value)
CUDASIM_ATOMIC(atomicAnd, old & value)
CUDASIM_ATOMIC(atomicOr, old | value)
CUDASIM_ATOMIC(atomicXor, old ^ value)
CUDASIM_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUDASIM_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef CUDASIM_ATOMIC

template <class T> __forceinline__ T atomicCAS(T* at, CudasimValue<T> expected, CudasimValue<T> value) {
    volatile T* place = at;
    T old = *place;
    if (old == expected) *place = value;
    cudasim_calls->atomic(at, sizeof(T));
    return old;
}

inline long long clock64() { return cudasim_calls->clock(); }
inline long clock() { return static_cast<long>(cudasim_calls->clock()); }
inline void __nanosleep(unsigned) {}
inline void __trap() { cudasim_calls->abort("trap", "", 0, "the kernel called __trap()"); }
