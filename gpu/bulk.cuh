// Bulk copies between memory and shared memory, and the barriers that count their bytes: PTX of sm_90 and later.
//
// Addresses and sizes are multiples of 16 bytes. On the simulated driver functions of the same names stand in.
#pragma once

#ifdef __CUDASIM__
#include <cudasim_bulk.h>
#else
typedef unsigned long long Barrier;  // in shared memory

__device__ __forceinline__ unsigned in_shared(const void *at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

// A phase ends when so many threads have arrived and all bytes that they expect have landed.
__device__ __forceinline__ void begin_barrier(Barrier *at, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(at)), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(Barrier *at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(at)) : "memory");
}

// Arrive, and say how many bytes will land.
__device__ __forceinline__ void expect(Barrier *at, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(at)), "r"(bytes) : "memory");
}

// Wait for the end of a phase, of which only the parity is told.
__device__ __forceinline__ void wait(Barrier *at, unsigned parity)
{
    for (int done = 0; !done;)
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, done;\n"
                     "}"
                     : "=r"(done)
                     : "r"(in_shared(at)), "r"(parity)
                     : "memory");
}

__device__ __forceinline__ void load_bulk(float *to, const float *from, unsigned bytes, Barrier *at)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(in_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(in_shared(at))
                 : "memory");
}

// The same, of which only `wanted` floats from `first` on are looked at: others may be written meanwhile.
__device__ __forceinline__ void load_bulk(float *to, const float *from, unsigned bytes, Barrier *at, int first, int wanted)
{
    load_bulk(to, from, bytes, at);
}

// A store is a group of its own.
__device__ __forceinline__ void store_bulk(float *to, const float *from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(in_shared(from)), "r"(bytes)
                 : "memory");
}

// Until shared memory may be written again: the thread's stores have read it.
__device__ __forceinline__ void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// What the thread has written to shared memory is there for bulk copies, which are of another proxy.
__device__ __forceinline__ void fence_bulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The barrier number `id` of the block, for so many of its threads; whole warps come to it.
__device__ __forceinline__ void meet(unsigned id, unsigned threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#endif

// Runs of floats begin and end anywhere, bulk copies at multiples of 16 bytes. So in shared memory a run lies as far from an
// aligned place as in memory: behind `beyond` floats that are copied with it, and before others. Nobody looks at those, and no
// other number of memory is written. Up to 12 bytes behind an array are read: Device.empty sees to it that they are there.
__device__ __forceinline__ int beyond(const float *memory) { return (int)(reinterpret_cast<unsigned long long>(memory) >> 2) & 3; }
__device__ __forceinline__ unsigned run_bytes(const float *memory, int count) { return (beyond(memory) + count + 3) / 4 * 16; }

// `to` is aligned, the run lies at to + beyond(memory).
__device__ __forceinline__ void load_run(float *to, const float *memory, int count, Barrier *at)
{
    load_bulk(to, memory - beyond(memory), run_bytes(memory, count), at, beyond(memory), count);
}

// What does not fill 16 bytes is written by the thread.
__device__ __forceinline__ void store_run(float *memory, const float *from, int count)
{
    const int first = min(-beyond(memory) & 3, count), last = max(first, count - beyond(memory + count));
    if (last > first) store_bulk(memory + first, from + first, 4 * (last - first));
    for (int k = 0; k < first; ++k) memory[k] = from[k];
    for (int k = last; k < count; ++k) memory[k] = from[k];
}
