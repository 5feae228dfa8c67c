// Kernels whose blocks run together in clusters of four, and what may be wrong with them.
#include <cudasim_cluster.h>

enum Fault { NONE, NO_MEETING, ONE_BLOCK_MISSES, SOME_WAIT_FOR_THEIR_BLOCK };

// Thread i of block b passes b and i on through memory to the next block of its cluster, and keeps them in shared memory meanwhile.
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(64) pass_on(float* y, float* x, int fault) {
    __shared__ float kept[64];
    extern __shared__ float more[];
    const int rank = blockIdx.x % 4, i = threadIdx.x, mine = blockIdx.x * 64 + i;
    const int next = (blockIdx.x - rank + (rank + 1) % 4) * 64 + i;
    kept[i] = more[i] = mine;
    x[mine] = mine;
    if (fault == SOME_WAIT_FOR_THEIR_BLOCK && rank == 2 && i < 32) __syncthreads();
    else if (fault != NO_MEETING && (fault != ONE_BLOCK_MISSES || rank)) meet_cluster();
    y[mine] = kept[i] == mine && more[i] == mine ? x[next] : -1;
}

// A block without work has gone before the others meet.
extern "C" __global__ void __cluster_dims__(4) three_of_four(float* y) {
    if (blockIdx.x % 4 == 3) return;
    y[blockIdx.x] = 1;
    meet_cluster();
    if (blockIdx.x % 4 == 0) y[blockIdx.x] = y[blockIdx.x + 1] + y[blockIdx.x + 2];
}

// Several rounds of a sum that goes round: block b adds what block b - 1 had.
extern "C" __global__ void __cluster_dims__(2) rounds(float* x, int many) {
    const int other = blockIdx.x ^ 1;
    for (int k = 0; k < many; ++k) {
        const float add = x[other];
        meet_cluster();
        x[blockIdx.x] += add;
        meet_cluster();
    }
}
