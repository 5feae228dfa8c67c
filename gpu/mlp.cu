// Layers of an MLP: all but the products, in one pass over the rows each way. Twin of cpu/mlp.py.
//
// out, before and out_grad (B, o); spread (B); bias, gain, shift (o), null where the layer has none.
// Where a block works on a row, a thread has the same columns in every loop, so only sums need a barrier.
#include "include/activation.cuh"
#include "include/warp.cuh"

typedef unsigned long long uint64;

enum { GELU = 5, LINEAR = 6 };  // beside those of activation.cuh

__device__ __forceinline__ float value_of(float s, int code)
{
    if (code == LINEAR) return s;
    return code == GELU ? s * normcdff(s) : activate(s, code);
}

// d activation / d s, from s and the activation a, of which GELU needs the first and all others the second.
__device__ __forceinline__ float slope_of(float s, float a, int code)
{
    if (code == LINEAR) return 1;
    return code == GELU ? normcdff(s) + s * 0.3989422804f * expf(-0.5f * s * s) : slope(a, code);
}

// A dropout mask: SplitMix64 begun at key gives a number for every place.
struct Mask {
    uint64 key;
    int64 below;  // of 2^32
    float lift;   // what is not dropped is multiplied by it

    __device__ __forceinline__ float operator()(float value, int64 place) const
    {
        if (!below) return value;
        uint64 x = key + (place + 1) * 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        return (int64)((x ^ (x >> 31)) >> 32) < below ? 0 : value * lift;
    }
};

// bias, norm, activation, dropout and input; the product is in before, or where that is null in out
//   work    a block a row
//   launch  grid: B, block: o rounded up to warps, at most 256
//   bound   memory: 8 bytes a number; 12 with before, 4 more with rest
extern "C" __global__ void finish(float *out, float *before, float *spread, const float *bias, const float *gain,
                                  const float *shift, const float *rest, int code, int64 key, int64 below, float lift,
                                  float epsilon, int o)
{
    __shared__ float parts[8];
    const int64 at = (int64)blockIdx.x * o;
    const Mask mask = {(uint64)key, below, lift};
    float *first = (before ? before : out) + at;
    float mean = 0, scale = 1;
    if (gain) {
        float total = 0, squares = 0;
        for (int i = threadIdx.x; i < o; i += blockDim.x) total += first[i] + (bias ? bias[i] : 0);
        mean = block_sum(total, parts) / o;
        for (int i = threadIdx.x; i < o; i += blockDim.x) {
            const float d = first[i] + (bias ? bias[i] : 0) - mean;
            squares = fmaf(d, d, squares);
        }
        scale = 1 / sqrtf(block_sum(squares, parts) / o + epsilon);
        if (threadIdx.x == 0) spread[blockIdx.x] = scale;
    }
    for (int i = threadIdx.x; i < o; i += blockDim.x) {
        float s = first[i] + (bias ? bias[i] : 0);
        if (gain) s = (s - mean) * scale;
        if (before) first[i] = s;
        if (gain) s = fmaf(gain[i], s, shift[i]);
        const float a = mask(value_of(s, code), at + i);
        out[at + i] = rest ? a + rest[at + i] : a;
    }
}

// From the gradient of out to that of the product, in place; rest, where wanted: the gradient of what was added at the end;
// sums (grid, 3, o): of bias, gain and shift over the rows of a block.
//   work    a block some rows, one after another
//   launch  grid: pieces of the batch, block: as finish
//   order   over the rows in order
//   bound   memory: 12 bytes a number; 8 more with rest, and 8 a sum for each row after the first of a block
extern "C" __global__ void fall(float *rest, float *out_grad, float *sums, const float *out, const float *before,
                                const float *spread, int biased, const float *gain, const float *shift, int code, int64 key,
                                int64 below, float lift, float share, int B, int o)
{
    __shared__ float parts[8];
    const Mask mask = {(uint64)key, below, lift};
    const int begin = (int64)blockIdx.x * B / gridDim.x, end = (int64)(blockIdx.x + 1) * B / gridDim.x;
    float *bias_sum = sums + (int64)blockIdx.x * 3 * o, *gain_sum = bias_sum + o, *shift_sum = gain_sum + o;
    for (int i = threadIdx.x; i < o; i += blockDim.x) bias_sum[i] = gain_sum[i] = shift_sum[i] = 0;
    for (int b = begin; b < end; ++b) {
        const int64 at = (int64)b * o;
        float *delta = out_grad + at;
        float total = 0, along = 0;
        for (int i = threadIdx.x; i < o; i += blockDim.x) {
            float d = delta[i];
            if (rest) rest[at + i] = d;
            const float normal = before ? before[at + i] : 0, s = gain ? fmaf(gain[i], normal, shift[i]) : normal;
            d = mask(d, at + i) * slope_of(s, before ? value_of(s, code) : out[at + i] * share, code);
            if (gain) {
                gain_sum[i] = fmaf(d, normal, gain_sum[i]);
                shift_sum[i] += d;
                d *= gain[i];
                total += d;
                along = fmaf(d, normal, along);
            } else if (biased) {
                bias_sum[i] += d;
            }
            delta[i] = d;
        }
        if (!gain) continue;
        const float mean = block_sum(total, parts) / o, tilt = block_sum(along, parts) / o, scale = spread[b];
        for (int i = threadIdx.x; i < o; i += blockDim.x) {
            const float d = scale * (delta[i] - mean - before[at + i] * tilt);
            delta[i] = d;
            if (biased) bias_sum[i] += d;
        }
    }
}

// The gradients of bias, gain and shift (null: none) += the sums of all blocks of `fall`.
//   work    a thread a column
//   order   over the blocks in order
//   bound   latency: a thread asks for 16 sums at a time
extern "C" __global__ void collect(float *bias, float *gain, float *shift, const float *sums, int pieces, int o)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o) return;
    float *targets[3] = {bias, gain, shift};
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        if (!targets[k]) continue;
        float total = 0;
#pragma unroll 16
        for (int piece = 0; piece < pieces; ++piece) total += sums[((int64)piece * 3 + k) * o + i];
        targets[k][i] += total;
    }
}
