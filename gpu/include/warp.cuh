// What every kernel says of its place, which lane of which warp of the block, and what a warp does together.
#pragma once

#define FULL 0xffffffffu  // all lanes take part

typedef long long int64;

__device__ __forceinline__ int lane() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp() { return threadIdx.x >> 5; }
__device__ __forceinline__ int warps() { return blockDim.x >> 5; }

// How many floats lie between a multiple of 16 bytes and `memory`.
__device__ __forceinline__ int skew(const float *memory) { return (int)(reinterpret_cast<unsigned long long>(memory) >> 2) & 3; }

// A number that a lambda takes as a template argument.
template <int N> struct Count {
    static constexpr int value = N;
};

// N sums over the warp at once, N a power of two: v[0] of all lanes, v[1] ...; lane l returns the sum of value l / (32 / N).
// While there are values left, each shuffle hands half of them over: 6 shuffles for 4 sums instead of 20. v is lost.
template <int N> __device__ __forceinline__ float sums(float *v)
{
#pragma unroll
    for (int step = 16, half = N / 2; step; step /= 2, half /= 2) {
        const bool upper = lane() & step;
        if (!half) v[0] += __shfl_xor_sync(FULL, v[0], step);
#pragma unroll
        for (int k = 0; k < N / 2; ++k)
            if (k < half) v[k] = (upper ? v[half + k] : v[k]) + __shfl_xor_sync(FULL, upper ? v[k] : v[half + k], step);
    }
    return v[0];
}

// The sum over the block, for all threads: a butterfly in each warp, then the warps in order. parts: shared, a number a warp.
__device__ __forceinline__ float block_sum(float value, float *parts)
{
    for (int half = 16; half; half >>= 1) value += __shfl_xor_sync(FULL, value, half);
    __syncthreads();  // the sum before has been read
    if (lane() == 0) parts[warp()] = value;
    __syncthreads();
    float total = 0;
    for (int k = 0; k < warps(); ++k) total += parts[k];
    return total;
}

// A step of a chain, each of which waits for the one before: the simulated driver counts them, a device does nothing.
__device__ __forceinline__ void step_of_chain()
{
#ifdef __CUDASIM__
    cudasim_calls->step_of_chain();
#endif
}

// The line of memory that will be read later is brought into the L2 cache meanwhile.
__device__ __forceinline__ void bring(const float *memory)
{
#ifndef __CUDASIM__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(memory));
#endif
}

// The compiler shall take an address or a number as it is, in its registers, not as the sum that it came from; and not compute
// what follows from it in front of a loop, where it would lie in registers from then on. What is behind such an address is read by
// __ldca and the like: that it is memory is no longer known.
template <class T> __device__ __forceinline__ T *as_it_is(T *at)
{
#ifndef __CUDASIM__
    asm volatile("" : "+l"(at));
#endif
    return at;
}
__device__ __forceinline__ int as_it_is(int number)
{
#ifndef __CUDASIM__
    asm volatile("" : "+r"(number));
#endif
    return number;
}
