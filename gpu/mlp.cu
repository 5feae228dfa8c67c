// Layers of an MLP: all but the products, in one pass over the rows each way. Twin of cpu/mlp.py.
//
// out and out_grad (B, o); bias (o), null where the layer has none.
#include "include/activation.cuh"
#include "include/warp.cuh"

typedef unsigned long long uint64;

enum { LINEAR = 5 };  // beside those of activation.cuh

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

// bias, activation and dropout; the product is in out
//   work    a block a row
//   launch  grid: B, block: o rounded up to warps, at most 256
//   bound   memory: 8 bytes a number
extern "C" __global__ void finish(float *out, const float *bias, int code, int64 key, int64 below, float lift, int o)
{
    const int64 at = (int64)blockIdx.x * o;
    const Mask mask = {(uint64)key, below, lift};
    for (int i = threadIdx.x; i < o; i += blockDim.x) {
        const float s = out[at + i] + (bias ? bias[i] : 0);
        out[at + i] = mask(code == LINEAR ? s : activate(s, code), at + i);
    }
}

// From the gradient of out to that of the product, in place; sums (grid, o), where the layer has a bias: over the rows of a block.
//   work    a block some rows, one after another
//   launch  grid: pieces of the batch, block: as finish
//   order   over the rows in order
//   bound   memory: 12 bytes a number
extern "C" __global__ void fall(float *out_grad, float *sums, const float *out, int code, int64 key, int64 below, float lift,
                                float share, int B, int o)
{
    const Mask mask = {(uint64)key, below, lift};
    const int begin = (int64)blockIdx.x * B / gridDim.x, end = (int64)(blockIdx.x + 1) * B / gridDim.x;
    for (int i = threadIdx.x; i < o; i += blockDim.x) {
        float sum = 0;
        for (int64 at = (int64)begin * o + i; at < (int64)end * o; at += o) {
            const float a = out[at] * share;
            const float d = mask(out_grad[at], at) * (code == LINEAR ? 1 : slope(a, code));
            sum += d;
            out_grad[at] = d;
        }
        if (sums) sums[(int64)blockIdx.x * o + i] = sum;
    }
}
