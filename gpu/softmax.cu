// The full softmax over V classes, in chunks of the classes. Twin of cpu/softmax.py; the products are cuBLAS's.
//
// logits  (B, pitch)  of the classes from `begin` on, `count` of them; pitch is a multiple of 4, so rows are aligned
// most, sums (B,)     the largest logit of all chunks so far, and the sum of exp(logit - most)
// bias    (count,)    of the chunk's classes, or null: a logit is what the product gave, plus this
//
// Logits are float32, or bfloat16 for the kernels named half; sums are float32 everywhere.
// Everywhere a block a row, 256 threads, which read 16 bytes at a time. NaN stays visible: a maximum passes it by, but the
// sum does not. Sums have a fixed order; the only atomic counts integers, in shared memory.
#include <cfloat>

#include "include/half.cuh"
#include "include/warp.cuh"

#define THREADS 256
#define QUADS 4                // float4s of a thread under way at once
#define TILE (4 * THREADS)     // classes that a block of `choose` looks at between two barriers

typedef unsigned long long uint64;

// Of some logits, as sum exp(logit - most).
struct Sum {
    float most, sum;  // most is finite in an empty sum, since infinity - infinity is NaN
};

__device__ __forceinline__ Sum both(Sum a, Sum b)
{
    const float most = fmaxf(a.most, b.most);
    return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

// Logits 4 q to 4 q + 3 of a row; -infinity, which adds nothing to a sum, beyond the last. bias begins anywhere.
template <class T> __device__ __forceinline__ float4 logits_of(const T *row, const float *bias, int q, int count)
{
    float4 v = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    if (4 * q + 4 <= count) {
        v = four(row, q);
    } else {
        if (4 * q < count) v.x = number(row[4 * q]);
        if (4 * q + 1 < count) v.y = number(row[4 * q + 1]);
        if (4 * q + 2 < count) v.z = number(row[4 * q + 2]);
    }
    if (!bias) return v;
    if (4 * q < count) v.x += bias[4 * q];
    if (4 * q + 1 < count) v.y += bias[4 * q + 1];
    if (4 * q + 2 < count) v.z += bias[4 * q + 2];
    if (4 * q + 3 < count) v.w += bias[4 * q + 3];
    return v;
}

template <class T> __device__ __forceinline__ void put(T *row, int q, int count, float4 v)
{
    if (4 * q + 4 <= count) {
        put_four(row, q, v);
        return;
    }
    if (4 * q < count) set(row[4 * q], v.x);
    if (4 * q + 1 < count) set(row[4 * q + 1], v.y);
    if (4 * q + 2 < count) set(row[4 * q + 2], v.z);
}

__device__ __forceinline__ float largest(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }

// A thread's share of a row's sum: QUADS float4s at a time, one change of base for all.
template <class T> __device__ __forceinline__ Sum share(const T *row, const float *bias, int count)
{
    Sum mine = {-FLT_MAX, 0};
    for (int q = threadIdx.x; 4 * q < count; q += QUADS * THREADS) {
        float4 v[QUADS];
        float most = mine.most;
#pragma unroll
        for (int i = 0; i < QUADS; ++i) v[i] = logits_of(row, bias, q + i * THREADS, count);
#pragma unroll
        for (int i = 0; i < QUADS; ++i) most = fmaxf(most, largest(v[i]));
        mine.sum *= expf(mine.most - most);
        mine.most = most;
#pragma unroll
        for (int i = 0; i < QUADS; ++i)
            mine.sum += (expf(v[i].x - most) + expf(v[i].y - most)) + (expf(v[i].z - most) + expf(v[i].w - most));
    }
    return mine;
}

// (most, sums)[b] take in a chunk; out[b] = sign * log p(target[b]), as far as it is known: the last chunk completes it; it is
// multiplied by weight[b] where there are weights
//   work    a block a row; the target's logit is kept in score[b] when its chunk comes by
//   launch  block 256, grid B; first: nothing has been summed yet. target null: no score, no out
//   bound   memory: 4 bytes a logit (half: 2), read once; 1 exponential a logit
//   order   a thread's logits in turn, a butterfly over the warp, the warps in turn, the chunks in turn
template <class T>
__device__ __forceinline__ void measure_row(Sum *parts, float *out, float *most, float *sums, float *score, const T *logits,
                                            const float *bias, const int *target, const float *weight, int begin, int count,
                                            int pitch, int first, float sign)
{
    const int b = blockIdx.x;
    const T *row = logits + int64(b) * pitch;
    Sum sum = share(row, bias, count);
    for (int step = 16; step; step >>= 1)
        sum = both(sum, {__shfl_xor_sync(FULL, sum.most, step), __shfl_xor_sync(FULL, sum.sum, step)});
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < THREADS / 32; ++warp) sum = both(sum, parts[warp]);
    if (!first) sum = both({most[b], sums[b]}, sum);
    most[b] = sum.most;
    sums[b] = sum.sum;
    if (!target) return;
    const int hit = target[b] - begin;
    if (hit >= 0 && hit < count) score[b] = number(row[hit]) + (bias ? bias[hit] : 0);
    if (weight) sign *= weight[b];
    out[b] = sign * ((score[b] - sum.most) - logf(sum.sum));  // in this order: exact where the target has all the mass
}

#define MEASURE(NAME, T)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
    NAME(float *out, float *most, float *sums, float *score, const T *logits, const float *bias, const int *target,      \
         const float *weight, int begin, int count, int pitch, int first, float sign)                                    \
    {                                                                                                                    \
        __shared__ Sum parts[THREADS / 32];                                                                              \
        measure_row(parts, out, most, sums, score, logits, bias, target, weight, begin, count, pitch, first, sign);      \
    }
MEASURE(measure, float)
MEASURE(measure_half, Half)

__device__ __forceinline__ float4 probabilities(float4 v, float most, float scale)
{
    return make_float4(expf(v.x - most) * scale, expf(v.y - most) * scale, expf(v.z - most) * scale,
                       expf(v.w - most) * scale);
}

// logits[b, j] <- exp(logits[b, j] - most[b]) / sums[b], less 1 at the target: d loss / d logit; times weight[b], if any
//   work    a block a row, a thread QUADS float4s at a time
//   launch  block 256, grid B; bias and weight may be null
//   bound   memory: 8 bytes a logit (half: 4), read and written once; 1 exponential a logit
template <class T>
__device__ __forceinline__ void miss_row(T *logits, const float *bias, const float *most, const float *sums,
                                         const int *target, const float *weight, int begin, int count, int pitch)
{
    const int b = blockIdx.x;
    T *row = logits + int64(b) * pitch;
    const float times = weight ? weight[b] : 1;
    const float base = most[b], scale = times / sums[b];
    const int hit = target[b] - begin;
    for (int q = threadIdx.x; 4 * q < count; q += QUADS * THREADS) {
        float4 v[QUADS];
#pragma unroll
        for (int i = 0; i < QUADS; ++i) v[i] = logits_of(row, bias, q + i * THREADS, count);
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const int at = q + i * THREADS;
            v[i] = probabilities(v[i], base, scale);
            v[i].x -= hit == 4 * at ? times : 0;
            v[i].y -= hit == 4 * at + 1 ? times : 0;
            v[i].z -= hit == 4 * at + 2 ? times : 0;
            v[i].w -= hit == 4 * at + 3 ? times : 0;
            put(row, at, count, v[i]);
        }
    }
}

#define MISS(NAME, T)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
    NAME(T *logits, const float *bias, const float *most, const float *sums, const int *target, const float *weight,     \
         int begin, int count, int pitch)                                                                                \
    {                                                                                                                    \
        miss_row(logits, bias, most, sums, target, weight, begin, count, pitch);                                         \
    }
MISS(miss, float)
MISS(miss_half, Half)

// out[i] = in[i], rounded to the nearest, of ties to the even one
//   launch  block 256, grid: as many as fill the device; a chunk's rows begin anywhere, so numbers are read one by one
//   bound   memory: 6 bytes a number
extern "C" __global__ void __launch_bounds__(THREADS) halve(Half *out, const float *in, int64 count)
{
    const int64 each = int64(gridDim.x) * THREADS;
#pragma unroll 8
    for (int64 i = int64(blockIdx.x) * THREADS + threadIdx.x; i < count; i += each) set(out[i], in[i]);
}

extern __shared__ __align__(16) uint64 keys[];  // of `choose`: the k best, then those that wait to be compared

// A class as a number that is the larger the better it is: a higher logit, then a lower id; NaN above all, 0 below all.
__device__ __forceinline__ uint64 key(float score, int id)
{
    unsigned int bits = __float_as_uint(score + 0.0f);  // -0 becomes 0, its equal
    bits ^= bits >> 31 ? ~0u : 1u << 31;
    if (isnan(score)) bits = ~0u;
    return uint64(bits) << 32 | ~static_cast<unsigned int>(id);
}

__device__ __forceinline__ int id_of(uint64 key) { return key ? int(~static_cast<unsigned int>(key)) : -1; }

__device__ __forceinline__ float score_of(uint64 key)
{
    const unsigned int bits = key >> 32;
    if (!key) return -INFINITY;
    return __uint_as_float(bits >> 31 ? bits == ~0u ? bits : bits ^ 1u << 31 : ~bits);
}

// Bitonic: the keys fall; size is a power of two.
__device__ void sort(int size)
{
    for (int span = 2; span <= size; span *= 2) {
        for (int gap = span / 2; gap; gap /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size / 2; i += THREADS) {
                const int low = 2 * i - (i & (gap - 1)), high = low + gap;
                const uint64 a = keys[low], c = keys[high];
                if ((a < c) == !(low & span)) {
                    keys[low] = c;
                    keys[high] = a;
                }
            }
        }
    }
    __syncthreads();
}

// The k best come first, and nothing waits; those that were beaten may stay behind them, they do not come back.
__device__ void settle(int *waiting, int size)
{
    sort(size);
    if (!threadIdx.x) *waiting = 0;
    __syncthreads();
}

__device__ __forceinline__ void offer(int *waiting, int k, uint64 worst, float score, int id)
{
    const uint64 mine = key(score, id);
    if (mine > worst) keys[k + atomicAdd(waiting, 1)] = mine;  // in any order: they are sorted, and all differ
}

// (ids, log_probs)[b, :k] take in a chunk: the best classes so far and their logits; `last` turns these into log p
//   work    a block a row; what beats the worst of the k best waits, until so many wait that all are sorted
//   launch  block 256, grid B, 8 * size bytes of shared memory; size a power of two, at least k + TILE
//   bound   memory: 4 bytes a logit; a sort takes log2(size)^2 / 2 rounds of shared memory, and falling logits need few
extern "C" __global__ void __launch_bounds__(THREADS)
choose(int *ids, float *log_probs, const float *most, const float *sums, const float *logits, const float *bias,
       int begin, int count, int pitch, int k, int size, int first, int last)
{
    __shared__ int waiting;
    const int b = blockIdx.x;
    const float *row = logits + int64(b) * pitch;
    ids += int64(b) * k;
    log_probs += int64(b) * k;
    for (int i = threadIdx.x; i < size; i += THREADS)
        keys[i] = !first && i < k && ids[i] >= 0 ? key(log_probs[i], ids[i]) : 0;
    if (!threadIdx.x) waiting = 0;
    __syncthreads();
    uint64 worst = keys[k - 1];
    const volatile int &so_far = waiting;  // read while others add to it
    for (int at = 0; at < count; at += TILE) {
        const int j = at + 4 * threadIdx.x;
        const float4 v = logits_of(row, bias, j / 4, count);
        if (j < count) offer(&waiting, k, worst, v.x, begin + j);
        if (j + 1 < count) offer(&waiting, k, worst, v.y, begin + j + 1);
        if (j + 2 < count) offer(&waiting, k, worst, v.z, begin + j + 2);
        if (j + 3 < count) offer(&waiting, k, worst, v.w, begin + j + 3);
        // Who came last reads all that wait; and nobody adds to it before all have read
        if (__syncthreads_or(so_far > size - k - TILE)) {
            settle(&waiting, size);
            worst = keys[k - 1];
        }
    }
    settle(&waiting, size);
    const float base = last ? most[b] : 0, rest = last ? logf(sums[b]) : 0;
    for (int i = threadIdx.x; i < k; i += THREADS) {
        ids[i] = id_of(keys[i]);
        log_probs[i] = (score_of(keys[i]) - base) - rest;
    }
}
