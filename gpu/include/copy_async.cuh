// Copies from memory to shared memory that no register waits for: PTX of sm_80 and later. Elsewhere the thread copies by itself.
#pragma once
#include "warp.cuh"

#if __CUDA_ARCH__ >= 800 && !defined(__CUDASIM__)
#define ASYNCHRONOUS
#endif

// The thread copies; `to` is in shared memory, and both are at multiples of the size.
__device__ __forceinline__ void copy_4(float *to, const float *from)
{
#ifdef ASYNCHRONOUS
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(__cvta_generic_to_global(from)) : "memory");
#else
    *to = *from;
#endif
}
__device__ __forceinline__ void copy_16(float *to, const float *from)
{
#ifdef ASYNCHRONOUS
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(__cvta_generic_to_global(from)) : "memory");
#else
    *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from);
#endif
}

// What the thread has copied is there.
__device__ __forceinline__ void wait_copies()
{
#ifdef ASYNCHRONOUS
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// How many floats lie between a multiple of 16 bytes and `memory`.
__device__ __forceinline__ int skew(const float *memory) { return (int)(reinterpret_cast<unsigned long long>(memory) >> 2) & 3; }

// The threads of a block copy a run of floats; it lies at to + skew(memory), where `to` is at a multiple of 16 bytes.
__device__ __forceinline__ void copy_run(float *to, const float *memory, int count)
{
    to += skew(memory);
    const int first = min(-skew(memory) & 3, count), last = max(first, count - skew(memory + count));
    for (int k = first + 4 * threadIdx.x; k < last; k += 4 * blockDim.x) copy_16(to + k, memory + k);
    const int edge = threadIdx.x < first ? threadIdx.x : last + threadIdx.x - first;
    if (edge < count) copy_4(to + edge, memory + edge);
}
