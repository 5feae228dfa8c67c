// Kernels in which threads share numbers, behind the right meeting or not, for the tests of races.
#include <cuda_pipeline.h>

// Each thread reads what another has written.
enum Meeting { NONE, SHUFFLE, WARP, BLOCK };
template <Meeting how> __device__ void pass_on(float* y, float* s, int distance) {
    s[threadIdx.x] = threadIdx.x;
    if (how == SHUFFLE) __shfl_sync(0xffffffffu, 0, 0);
    if (how == WARP) __syncwarp();
    if (how == BLOCK) __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ distance];
}
#define PASS_ON(NAME, HOW)                                                                                          \
    extern "C" __global__ void pass_on_##NAME(float* y, int distance) {                                            \
        __shared__ float s[64];                                                                                     \
        pass_on<HOW>(y, s, distance);                                                                               \
    }                                                                                                               \
    extern "C" __global__ void pass_on_in_memory_##NAME(float* y, float* x, int distance) {                        \
        pass_on<HOW>(y, x, distance);                                                                               \
    }
PASS_ON(unmet, NONE)
PASS_ON(shuffled, SHUFFLE)
PASS_ON(in_warp, WARP)
PASS_ON(in_block, BLOCK)

// All threads read a number before one of them writes it.
extern "C" __global__ void overwrite(float* y) {
    __shared__ float s[1];
    if (threadIdx.x == 0) s[0] = 1;
    __syncthreads();
    y[threadIdx.x] = s[0];
    if (threadIdx.x == 0) s[0] = 2;
}

extern "C" __global__ void count_together(int* y) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    __syncthreads();
    y[threadIdx.x] = count;
}

// Nobody waits before he looks how far the others have counted.
extern "C" __global__ void look_early(int* y) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    y[threadIdx.x] = count;
}

// What is copied is read by the time that the copy is waited for.
extern "C" __global__ void copy_while_written(float* y, int writes_early) {
    __shared__ float s[1];
    if (threadIdx.x == 0) {
        __pipeline_memcpy_async(s, y, 4);
        __pipeline_commit();
    }
    __syncthreads();
    if (threadIdx.x == 1 && writes_early) y[0] = 1;
    if (threadIdx.x == 0) __pipeline_wait_prior(0);
    __syncthreads();
    if (threadIdx.x == 1 && !writes_early) y[0] = 1;
}

// Threads i with the same i / sharers write one number: all the same value, or each his own.
extern "C" __global__ void write_same(float* y, int sharers) { y[threadIdx.x / sharers] = 7; }
extern "C" __global__ void write_own(float* y, int sharers) { y[threadIdx.x / sharers] = threadIdx.x; }
extern "C" __global__ void write_same_shared(float* y, int sharers) {
    __shared__ float s[64];
    s[threadIdx.x / sharers] = 7;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x / sharers];
}

// Block b writes numbers from `pitch` * b on.
extern "C" __global__ void tile(float* y, int pitch) { y[pitch * blockIdx.x + threadIdx.x] = blockIdx.x; }
extern "C" __global__ void tile_bytes(unsigned char* y, int pitch) { y[pitch * blockIdx.x + threadIdx.x] = blockIdx.x; }
// Block b reads what block b - 1 writes.
extern "C" __global__ void shift_in_place(float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = i < blockDim.x ? 0 : y[i - blockDim.x];
}
extern "C" __global__ void count_blocks(int* y) { y[0] += 1; }
extern "C" __global__ void count_blocks_atomically(int* y) { atomicAdd(y, 1); }
extern "C" __global__ void count_and_look(int* y) {
    if (blockIdx.x) atomicAdd(y, 1);
    else y[1] = y[0];
}
