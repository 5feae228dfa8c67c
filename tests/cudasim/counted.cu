// Tiny kernels whose traffic is known by hand, for the tests of what the simulated driver counts.
#include <cuda_pipeline.h>

extern "C" __global__ void copy(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

extern "C" __global__ void copy_every_eighth(float* y, const float* x) { y[8 * threadIdx.x] = x[8 * threadIdx.x]; }

extern "C" __global__ void copy_vectors(float4* y, const float4* x) { y[threadIdx.x] = x[threadIdx.x]; }

// Four numbers that are used one by one are still one access.
extern "C" __global__ void add_vectors(float* y, const float4* x) {
    float4 v = x[threadIdx.x];
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void same_for_all(float* y, const float* x) { y[threadIdx.x] = x[0]; }

// Reads all of x, and once more behind a barrier, which no compiler can take for one read.
extern "C" __global__ void read_twice(float* y, const float* x) {
    float sum = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = sum + x[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void through_shared_memory(float* y, const float* x) {
    __shared__ __align__(16) float s[128];
    __pipeline_memcpy_async(&s[4 * threadIdx.x], &x[4 * threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    y[threadIdx.x] = s[127 - threadIdx.x];
}

// Lane l takes l + 1 rounds: round r belongs to the lanes from r on.
extern "C" __global__ void triangle(float* y, const float* x) {
    float sum = 0;
    for (int r = 0; r <= threadIdx.x; ++r) sum += x[32 * r + threadIdx.x];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void add_in_place(float* y) { y[threadIdx.x] += 1.0f; }

// Each thread reads what another has written: behind the right meeting, or not.
enum Meeting { NONE, SHUFFLE, WARP, BLOCK };
template <Meeting how> __device__ void pass_on(float* y, int distance) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    if (how == SHUFFLE) __shfl_sync(0xffffffffu, 0, 0);
    if (how == WARP) __syncwarp();
    if (how == BLOCK) __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ distance];
}
extern "C" __global__ void pass_on_unmet(float* y, int distance) { pass_on<NONE>(y, distance); }
extern "C" __global__ void pass_on_shuffled(float* y, int distance) { pass_on<SHUFFLE>(y, distance); }
extern "C" __global__ void pass_on_in_warp(float* y, int distance) { pass_on<WARP>(y, distance); }
extern "C" __global__ void pass_on_in_block(float* y, int distance) { pass_on<BLOCK>(y, distance); }

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
