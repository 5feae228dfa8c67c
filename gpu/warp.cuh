// What every kernel says of its place: which lane of which warp of the block.
#pragma once

#define FULL 0xffffffffu  // all lanes take part

typedef long long int64;

__device__ __forceinline__ int lane() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp() { return threadIdx.x >> 5; }
__device__ __forceinline__ int warps() { return blockDim.x >> 5; }
