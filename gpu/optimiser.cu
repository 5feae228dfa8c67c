// How the weights of a dense part move: one pass over weights, state and gradient, which it clears. Twin of cpu/optimiser.py.
//
// All arrays begin where the device allocates, so 16 bytes align. Every rule is a function of one parameter; `sweep` hands it
// over four of them at a time, which keeps enough loads under way.
//   work    a thread four numbers, grid-stride; the last three by the first threads
//   launch  grid: as many blocks of 256 as fill the device
//   bound   memory: bytes a parameter as in cpu/optimiser.py
//   order   parameters are independent
#include "include/sweep.cuh"

// What the gradient is multiplied by: `scale`, and the factor that `clip` has written, where it is clipped.
__device__ __forceinline__ float cut(float scale, const float *factor) { return factor == nullptr ? scale : scale * *factor; }

// grad += part; the rule of a sweep whose gradient is the part
extern "C" __global__ void merge(float *grad, float *part, int64 size)
{
    sweep<0, true>(grad, nullptr, nullptr, part, size, [](float &sum, float &, float &, float &more) { sum += more; });
}

// weights -= rate g
extern "C" __global__ void sgd(float *weights, float *grad, const float *factor, float rate, float shrink, int64 size)
{
    rate = cut(rate, factor);
    sweep<0, true>(weights, nullptr, nullptr, grad, size, [=](float &w, float &, float &, float &g) {
        w = fmaf(-rate, g, w - shrink * w);
    });
}

// velocity <- momentum velocity - rate g; weights += velocity
extern "C" __global__ void momentum(float *weights, float *velocity, float *grad, const float *factor, float rate,
                                    float momentum, float shrink, int64 size)
{
    rate = cut(rate, factor);
    sweep<1, true>(weights, velocity, nullptr, grad, size, [=](float &w, float &v, float &, float &g) {
        v = fmaf(momentum, v, shrink ? -fmaf(rate, g, shrink * w) : -rate * g);
        w += v;
    });
}

// mean and squares follow g and g^2; weights <- keep weights - rate mean / (root of squares * unbias + epsilon)
extern "C" __global__ void adam(float *weights, float *mean, float *squares, float *grad, const float *factor, float rate,
                                float scale, float keep, float decay, float first, float first_rest, float second,
                                float second_rest, float unbias, float epsilon, int64 size)
{
    scale = cut(scale, factor);
    sweep<2, true>(weights, mean, squares, grad, size, [=](float &w, float &m, float &s, float &g) {
        const float slope = fmaf(scale, g, decay * w);
        m = fmaf(first, m, first_rest * slope);
        s = fmaf(second, s, second_rest * slope * slope);
        w = keep * w - rate * m / (sqrtf(s) * unbias + epsilon);
    });
}

// parts[block] = the sum of the squares that the block meets
//   order   threads stride over the grid, whose size the number of squares alone says; a butterfly; the warps in order
extern "C" __global__ void squares(float *parts, const float *grad, int64 size)
{
    __shared__ float sums[8];
    float total = 0;
#pragma unroll 4
    for (int64 k = blockIdx.x * (int64)blockDim.x + threadIdx.x; k < size; k += (int64)gridDim.x * blockDim.x)
        total = fmaf(grad[k], grad[k], total);
    total = block_sum(total, sums);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// factor = min(1, most / (scale root of the sum of parts + near)); a NaN stays one
//   work    one warp
//   order   lanes stride, then a butterfly
extern "C" __global__ void cut_factor(float *factor, const float *parts, int many, float scale, float most, float near)
{
    double total = 0;
    for (int k = lane(); k < many; k += 32) total += parts[k];
    for (int half = 16; half; half >>= 1) total += __shfl_xor_sync(FULL, total, half);
    const double share = most / (scale * sqrt(total) + near);
    if (lane() == 0) *factor = share > 1 ? 1 : (float)share;
}
