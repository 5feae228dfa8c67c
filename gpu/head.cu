// The head of a readout: what lies around its softmax. Twin of cpu/head.py.
#include "include/warp.cuh"

constexpr int EACH = 4;  // numbers of a thread of `add`

// slots[b] = slot[target[b]]
//   work    a thread an example
//   launch  grid: B / 256, block: 256
//   bound   memory: 12 bytes an example
extern "C" __global__ void look_up(int *slots, const int *slot, const int *target, int B)
{
    const int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < B) slots[b] = slot[target[b]];
}

// out[n] += part[n]
//   work    a thread EACH numbers, 256 apart, all asked for before the first is written
//   launch  grid: numbers / (256 EACH), block: 256
//   bound   memory: 12 bytes a number
extern "C" __global__ void __launch_bounds__(256) add(float *__restrict__ out, const float *__restrict__ part, int64 count)
{
    const int64 first = (int64)blockIdx.x * EACH * 256 + threadIdx.x;
    float sum[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int64 n = first + 256 * k;
        if (n < count) sum[k] = out[n] + part[n];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int64 n = first + 256 * k;
        if (n < count) out[n] = sum[k];
    }
}
