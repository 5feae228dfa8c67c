// A batch in the order of a tree's leaves, from left to right, and the paths of its examples: for tree_batch.cu.
//
// A path is not walked from its leaf to the root, a pointer after another: HOPS lanes start at places of it that are known
// beforehand, and each walks a stretch.
//
// hops (V, HOPS)   the pointers to parents, 2 * node + turn, that are met 0, stretch, 2 stretch ... steps up from each leaf;
//                  -1 past the root. HOPS * stretch is at least the tree's depth
#pragma once

#include "warp.cuh"

constexpr int HOPS = 8;     // a sector of memory a class
constexpr int LINED = 8;    // examples of a block of `line_up`: HOPS lanes climb each, and a warp ranks it
constexpr int FEW = 2048;   // examples of a batch that it ranks
constexpr int CLIMBERS = LINED * HOPS;  // threads

static_assert(CLIMBERS % 32 == 0, "whole warps climb");

// The pointer `steps` steps up from one.
__device__ __forceinline__ int above(int up, const int *node_up, int steps)
{
    for (; steps > 0 && up >= 0; --steps) up = node_up[up >> 1];
    return up;
}

//   work    a thread a class, when the plan of a tree is made
//   launch  grid: V / 256, block: 256
extern "C" __global__ void hop(int *hops, const int *leaf_up, const int *node_up, int stretch, int V)
{
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= V) return;
    for (int k = 0, up = leaf_up[v]; k < HOPS; ++k, up = above(up, node_up, stretch)) hops[(int64)v * HOPS + k] = up;
}

// How many nodes the path has whose stretches start at `up` in HOPS lanes. The walk leaves pointers in the L1 cache.
__device__ __forceinline__ int length_of(int up, const int *node_up, int stretch)
{
    int count = 0;
    for (; count < stretch && up >= 0; ++count) up = node_up[up >> 1];
    for (int step = HOPS / 2; step; step /= 2) count += __shfl_xor_sync(FULL, count, step);
    return count;
}

// This lane's stretch of the path of `length` nodes, at place p; what lies past the end of the path has no entries.
__device__ __forceinline__ void write_stretch(int *entries, int *seen, int up, const int *node_up, int stretch, int length,
                                              int depth, int p, int B)
{
    const int first = threadIdx.x % HOPS * stretch;
    for (int i = first; i < min(first + stretch, depth); ++i) {
        const int64 at = (int64)(up >= 0 ? length - 1 - i : i) * B + p;
        entries[at] = up;
        if (seen) seen[at] = -1;
        if (up >= 0) up = node_up[up >> 1];
    }
}

// place[order[p]] = p, and the path of the example at each p
//   work    HOPS threads an example
//   launch  grid: HOPS B / 256, block: 256
//   bound   latency: a target, its hops, `stretch` pointers one after another
extern "C" __global__ void climb(int *place, int *entries, int *seen, const int *hops, const int *node_up, const int *order,
                                 const int *target, int stretch, int depth, int B)
{
    const int n = blockIdx.x * blockDim.x + threadIdx.x, p = min(n / HOPS, B - 1), b = order[p];
    const int up = hops[(int64)target[b] * HOPS + n % HOPS], length = length_of(up, node_up, stretch);
    if (n / HOPS >= B) return;
    if (n % HOPS == 0) place[b] = p;
    write_stretch(entries, seen, up, node_up, stretch, length, depth, p, B);
}

// All of it in one launch: order[p] is the example at place p, which has the p-th least rank; equal ranks keep their order.
//   work    a block LINED examples: HOPS threads climb each path while a warp each compares their ranks with all others
//   launch  grid: B / LINED, block: CLIMBERS + 32 LINED; B at most FEW
//   bound   latency: a target, its rank or hops, `stretch` pointers; B^2 comparisons
extern "C" __global__ void __launch_bounds__(CLIMBERS + 32 * LINED)
    line_up(int *place, int *order, int *entries, int *seen, const int *hops, const int *node_up, const int *rank,
            const int *target, int stretch, int depth, int B)
{
    __shared__ int keys[FEW], places[LINED];
    const bool climbs = threadIdx.x < CLIMBERS;
    const int own = climbs ? threadIdx.x / HOPS : warp() - CLIMBERS / 32, b = blockIdx.x * LINED + own;
    int up = -1, length = 0;
    if (climbs) {
        up = hops[(int64)target[min(b, B - 1)] * HOPS + threadIdx.x % HOPS];
        length = length_of(up, node_up, stretch);
    } else {
#pragma unroll 4
        for (int m = threadIdx.x - CLIMBERS; m < B; m += 32 * LINED) keys[m] = rank[target[m]];
    }
    __syncthreads();
    if (!climbs && b < B) {
        int before = 0;
#pragma unroll 4
        for (int m = lane(); m < B; m += 32) before += keys[m] < keys[b] + (m < b);
        for (int step = 16; step; step /= 2) before += __shfl_xor_sync(FULL, before, step);
        if (lane() == 0) places[own] = place[b] = before, order[before] = b;
    }
    __syncthreads();
    if (climbs && b < B) write_stretch(entries, seen, up, node_up, stretch, length, depth, places[own], B);
}
