// The head of a readout: what lies around its softmax. Twin of cpu/head.py.
#include "warp.cuh"

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
//   work    a thread a number
//   launch  grid: numbers / 256, block: 256
//   bound   memory: 12 bytes a number
extern "C" __global__ void add(float *out, const float *part, int64 count)
{
    const int64 n = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (n < count) out[n] += part[n];
}
