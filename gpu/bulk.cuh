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
