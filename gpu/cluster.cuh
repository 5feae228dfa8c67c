// Blocks that run together, as a cluster: PTX of sm_90 and later. On the simulated driver a function of the same name stands in.
#pragma once

#if __CUDA_ARCH__ >= 900
#define CLUSTERS_OF(BLOCKS) __cluster_dims__(BLOCKS, 1, 1)
#else
#define CLUSTERS_OF(BLOCKS)
#endif

#ifdef __CUDASIM__
#include <cudasim_cluster.h>
#else
// All threads of the cluster that have not ended meet here, in whole warps: what each has written to memory before, all read
// behind.
__device__ __forceinline__ void meet_cluster()
{
#if __CUDA_ARCH__ >= 900
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::: "memory");
#endif
}
#endif
