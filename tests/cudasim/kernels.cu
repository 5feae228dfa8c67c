// Small kernels for the simulator's own tests; some are wrong on purpose, and say how.
#include <cuda_pipeline.h>

extern "C" __global__ void twice(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

extern "C" __global__ void accumulate(float* sum, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] += x[i];
}

// Reverses a block through shared memory.
template <bool meet> __device__ void reverse(float* y, const float* x) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    if (meet) __syncthreads();
    y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void reverse_right(float* y, const float* x) { reverse<true>(y, x); }
__device__ int tile(int x) { return x + 1; }  // its name is that of reverse's variable, which is not this kernel's
extern "C" __global__ void has_no_shared_memory(int* y) { y[0] = tile(y[0]); }
extern "C" __global__ void reverse_without_barrier(float* y, const float* x) { reverse<false>(y, x); }

extern "C" __global__ void half_initialised(float* y) {
    __shared__ float s[32];
    if (threadIdx.x < 16) s[threadIdx.x] = 1.0f;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void last_of_dynamic(float* y, int n) {
    extern __shared__ __align__(16) unsigned char bytes[];
    float* s = reinterpret_cast<float*>(bytes);
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) y[0] = s[n - 1];
}

extern "C" __global__ void uses_static(float* y) {
    __shared__ float s[1024];
    s[threadIdx.x] = 1.0f;
    __syncthreads();
    y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void diverge(float* y) {
    if (threadIdx.x < 7) {
        __syncthreads();
        y[0] = 1.0f;
    } else {
        __syncthreads();
        y[1] = 2.0f;
    }
}

extern "C" __global__ void wait_for_nobody(float* y) {
    if (threadIdx.x < 8) y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
    __syncthreads();
}

extern "C" __global__ void early_exit(float* y, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
    y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void write_at(float* y, long long at) { y[at] = 1.0f; }
extern "C" __global__ void read_at(float* y, const float* x, long long at) { y[0] = x[at]; }
extern "C" __global__ void as_float4(float4* y, const float4* x) { y[0] = x[0]; }
extern "C" __global__ void follow(float* y, float* const* table) { y[0] = table[0][0]; }
extern "C" __global__ void divide(int* y, int n) { y[0] = 7 / n; }
extern "C" __global__ void spin(volatile int* flag) {
    while (*flag) {
    }
}
__device__ __attribute__((noinline)) int deeper(volatile int* y, int depth) {
    return depth ? deeper(y, depth - 1) + y[depth % 4] : 0;
}
extern "C" __global__ void recurse(int* y, int depth) { y[0] = deeper(y, depth); }
extern "C" __global__ void index_array(float* y, int at) {
    __shared__ float s[32];
    s[threadIdx.x + at] = 1.0f;
    y[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(64, 2) at_most_64(float* y) { y[threadIdx.x] = 1.0f; }
__global__ void mangled(float* y) { y[0] = 1.0f; }

template <bool wait> __device__ void pipeline(float* y, const float* x) {
    __shared__ __align__(16) float s[128];
    __pipeline_memcpy_async(&s[4 * threadIdx.x], &x[4 * threadIdx.x], 16);
    __pipeline_commit();
    if (wait) __pipeline_wait_prior(0);
    __syncthreads();
    for (int i = threadIdx.x; i < 128; i += blockDim.x) y[i] = s[127 - i];
}
extern "C" __global__ void pipeline_right(float* y, const float* x) { pipeline<true>(y, x); }
extern "C" __global__ void pipeline_without_wait(float* y, const float* x) { pipeline<false>(y, x); }

// `count` floats from x + at into shared memory by one asynchronous copy.
extern "C" __global__ void pipeline_of(float* y, const float* x, int at, int count) {
    __shared__ __align__(16) float s[8];
    __pipeline_memcpy_async(s, x + at, 4 * count);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[0] = s[0];
}

// One value a lane for every intrinsic: row r of y is the r-th.
extern "C" __global__ void intrinsics(float* y, unsigned* counts) {
    unsigned lane = threadIdx.x % 32, all = 0xffffffffu;
    float v = lane;
    int row = 0;
    auto put = [&](float value) { y[32 * row++ + lane] = value; };
    put(__shfl_sync(all, v, 5));
    put(__shfl_sync(all, v, 5, 8));
    put(__shfl_up_sync(all, v, 3, 16));
    put(__shfl_xor_sync(all, v, 9));
    put(__shfl_xor_sync(all, static_cast<long long>(lane) << 40, 1) >> 40);
    put(__popc(__ballot_sync(all, lane % 3 == 0)));
    put(__any_sync(all, lane == 31) + 2 * __any_sync(all, lane == 32));
    put(__syncthreads_count(lane < 10));
    put(lane < 16 ? __shfl_xor_sync(0xffffu, v, 1) : __shfl_xor_sync(0xffff0000u, v, 2));
    put(__ffs(lane));
    put(__uint_as_float(__float_as_uint(v)) + min(3, static_cast<int>(lane)) + max(2.5f, v));
    atomicAdd(&counts[0], 1);
}
