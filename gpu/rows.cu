// Tables of vectors, one row an id: gathers, and scatters where equal ids are added in order. Twin of cpu/rows.py.
//
// table (R, D), out and grad (N, D) or (B, D); R D may pass 2^31, N D too. Any D: nothing is read by more than 4 bytes, as
// rows of 128 numbers are read in whole lines all the same.
#include "segments.cuh"

constexpr int TOGETHER = 8;  // rows that a thread asks for before it adds the first

// out[n] = table[ids[n]]
//   work    a warp a row, lanes stride over the columns
//   launch  grid: rows / 8, block: 256
//   bound   memory: 8 D + 4 bytes a row
extern "C" __global__ void gather(float *out, const float *table, const int *ids, int N, int D)
{
    const int n = blockIdx.x * warps() + warp();
    if (n >= N) return;
    const float *row = table + (int64)ids[n] * D;
#pragma unroll 4
    for (int d = lane(); d < D; d += 32) out[(int64)n * D + d] = row[d];
}

// out[b] = mean of table[ids[n]] over the n of bag b; 0 for an empty bag
//   work    a block a bag, a thread a column
//   launch  grid: bags, block: D rounded up to warps, at most 256
//   bound   memory: 4 D bytes an id and 4 D a bag
//   order   over the bag in order: the same bits as the twin's
extern "C" __global__ void gather_mean(float *out, const float *table, const int64 *bag_at, const int *ids, int D)
{
    const int b = blockIdx.x;
    const int64 first = bag_at[b], last = bag_at[b + 1];
    const float many = last > first ? (float)(last - first) : 1;
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float total = 0;
        for (int64 n = first; n < last; n += TOGETHER) {
            float value[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                if (n + k < last) value[k] = table[(int64)ids[n + k] * D + d];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                if (n + k < last) total += value[k];
        }
        out[(int64)b * D + d] = total / many;
    }
}

// bag[n - from] = b and share[n - from] = scale / size(b) for every n of bag b with from <= n < to
//   work    a warp a bag
//   launch  grid: bags / 8, block: 256
//   bound   memory: 8 bytes an id, 16 a bag
extern "C" __global__ void label(int *bag, float *share, const int64 *bag_at, float scale, int from, int to, int B)
{
    const int b = blockIdx.x * warps() + warp();
    if (b >= B) return;
    const int64 first = bag_at[b], last = bag_at[b + 1], end = last < to ? last : to;
    for (int64 n = (first > from ? first : from) + lane(); n < end; n += 32) {
        bag[n - from] = b;
        share[n - from] = scale / (float)(last - first);
    }
}

// table[ids[n]] += scale * grad[n] in the order of n, for up to WINDOW ids; with bags, share[n] * grad[bag[n]].
//   work    a block an id; the first of equal ids collects them, its warps each from a share of the list, and adds them all:
//           a thread a column, TOGETHER rows of grad under way at once
//   launch  grid: ids, block: D rounded up to warps, at most 256
//   bound   memory: 4 D bytes an id and 8 D a distinct id; finding equal ids reads 4 N bytes an id from the L1 cache
//   order   over n in order, one fused multiply-add each: the same bits as the twin's
template <bool BAGS>
__device__ __forceinline__ void scatter(float *table, const int *ids, const int *bag, const float *share, const float *grad,
                                        float scale, int N, int D, unsigned short *places, int *counts)
{
    constexpr int TOGETHER = BAGS ? 8 : 16;
    const int n = blockIdx.x, id = ids[n], before = (n + warps() - 1) / warps(), each = (N - n + warps() - 1) / warps();
    if (__syncthreads_or(met(ids, 0, id, warp() * before, min((warp() + 1) * before, n)))) return;  // the whole block
    const int first = n + warp() * each;
    const int count = collect(places + warp() * each, ids, 0, id, first, min(first + each, N));
    if (lane() == 0) counts[warp()] = count;
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float *place = table + (int64)id * D + d;
        float value = *place;
        for (int w = 0; w < warps(); ++w) {
            const int many = counts[w], from = w * each;
            for (int i = 0; i < many; i += TOGETHER) {
                float g[TOGETHER], s[TOGETHER];
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    if (i + k < many) {
                        const int m = n + from + places[from + i + k];
                        g[k] = grad[(int64)(BAGS ? bag[m] : m) * D + d];
                        s[k] = BAGS ? share[m] : scale;
                    }
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    if (i + k < many) value = fmaf(s[k], g[k], value);
            }
        }
        *place = value;
    }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    scatter_add(float *table, const int *ids, const float *grad, float scale, int N, int D)
{
    __shared__ unsigned short places[WINDOW];
    __shared__ int counts[8];
    scatter<false>(table, ids, nullptr, nullptr, grad, scale, N, D, places, counts);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    scatter_mean(float *table, const int *ids, const int *bag, const float *share, const float *grad, int N, int D)
{
    __shared__ unsigned short places[WINDOW];
    __shared__ int counts[8];
    scatter<true>(table, ids, bag, share, grad, 0, N, D, places, counts);
}
