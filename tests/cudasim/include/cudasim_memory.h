// Loads, stores and atomics. Threads take turns only where they meet, so a plain read and write is atomic here.
#pragma once

template <class T> T __ldcg(const T* at) { return *at; }
template <class T> T __ldca(const T* at) { return *at; }
template <class T> T __ldcs(const T* at) { return *at; }
template <class T> void __stcs(T* at, T value) { *at = value; }

// The value is deduced from the address alone: atomicAdd(&count, 1) must work for an unsigned count.
template <class T> struct CudasimSame { using type = T; };
template <class T> using CudasimValue = typename CudasimSame<T>::type;

// Inlined, so that the driver is called from the place of the atomic; volatile, so that it takes no access for a plain one.
template <class T> __forceinline__ T atomicAdd(T* at, CudasimValue<T> value) {
    volatile T* place = at;
    T old = *place;
    *place = old + value;
    cudasim_calls->atomic(at, sizeof(T));
    return old;
}
