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

// Lane l writes number `stride` * l of shared memory and reads it.
template <class T> __device__ void stride_through(float* y, int stride) {
    extern __shared__ __align__(16) unsigned char bytes[];
    T* s = reinterpret_cast<T*>(bytes);
    T one = {};
    s[stride * threadIdx.x] = one;
    __syncthreads();
    one = s[stride * threadIdx.x];
    y[threadIdx.x] = *reinterpret_cast<float*>(&one);
}
extern "C" __global__ void through_floats(float* y, int stride) { stride_through<float>(y, stride); }
extern "C" __global__ void through_pairs(float* y, int stride) { stride_through<float2>(y, stride); }
extern "C" __global__ void through_vectors(float* y, int stride) { stride_through<float4>(y, stride); }
extern "C" __global__ void through_bytes(float* y, int stride) {
    extern __shared__ unsigned char bytes[];
    bytes[stride * threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = bytes[stride * threadIdx.x];
}

// Threads i with the same i / sharers count at one place; places are in memory, or in shared memory.
extern "C" __global__ void count_at(int* y, int sharers) { atomicAdd(&y[threadIdx.x / sharers], 1); }
extern "C" __global__ void count_shared(int* y, int sharers) {
    __shared__ int s[64];
    s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&s[threadIdx.x / sharers], 1);
    atomicAdd(&s[threadIdx.x / sharers], 2);
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void meet_often(float* y, int blocks, int warps) {
    for (int i = 0; i < blocks; ++i) __syncthreads_or(i);
    for (int i = 0; i < warps; ++i) __syncwarp();
}

// Thread i of block b takes `first` + i + 100 b steps in turn.
extern "C" __global__ void take_steps(float* y, int first) {
    for (int i = 0; i < first + threadIdx.x + 100 * blockIdx.x; ++i) cudasim_calls->step_of_chain();
}
