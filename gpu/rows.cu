// Tables of vectors, one row an id: gathers, and scatters where equal ids move their row in order. Twin of cpu/rows.py.
//
// table (R, D), out and grad (N, D) or (B, D); R D may pass 2^31, N D too. Any D: nothing is read by more than 4 bytes, as
// rows of 128 numbers are read in whole lines all the same.
#include "segments.cuh"
#include "visit.cuh"

constexpr int TOGETHER = 8;  // rows that a thread asks for before it adds the first

// out[n] = table[ids[n]]
//   work    a warp a row, lanes stride over the columns
//   launch  grid: rows / 8, block: 256
//   bound   memory: 8 D + 4 bytes a row
extern "C" __global__ void gather(float *__restrict__ out, const float *__restrict__ table, const int *__restrict__ ids, int N,
                                  int D)
{
    const int n = blockIdx.x * warps() + warp();
    if (n >= N) return;
    const float *row = table + (int64)ids[n] * D;
#pragma unroll 4
    for (int d = lane(); d < D; d += 32) out[(int64)n * D + d] = row[d];
}

// out[b] = mean of table[ids[n]] over the n of bag b, 0 for an empty bag; with values, the sum of values[n] table[ids[n]]
//   work    a block a bag, a thread a column
//   launch  grid: bags, block: D rounded up to warps, at most 256
//   bound   memory: 4 D bytes an id and 4 D a bag
//   order   over the bag in order: the same bits as the twin's
template <bool VALUES>
__device__ __forceinline__ void collect_bag(float *out, const float *table, const int64 *bag_at, const int *ids,
                                            const float *values, int D)
{
    const int b = blockIdx.x;
    const int64 first = bag_at[b], last = bag_at[b + 1];
    const float many = last > first ? (float)(last - first) : 1;
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float total = 0;
        for (int64 n = first; n < last; n += TOGETHER) {
            float row[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                if (n + k < last) row[k] = table[(int64)ids[n + k] * D + d];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                if (n + k < last) total = VALUES ? fmaf(values[n + k], row[k], total) : total + row[k];
        }
        out[(int64)b * D + d] = VALUES ? total : total / many;
    }
}

extern "C" __global__ void gather_mean(float *out, const float *table, const int64 *bag_at, const int *ids, int D)
{
    collect_bag<false>(out, table, bag_at, ids, nullptr, D);
}

extern "C" __global__ void gather_sum(float *out, const float *table, const int64 *bag_at, const int *ids,
                                      const float *values, int D)
{
    collect_bag<true>(out, table, bag_at, ids, values, D);
}

// bag[n - from] = b and share[n - from] = scale / size(b), or scale values[n], for every n of bag b with from <= n < to
//   work    a warp a bag
//   launch  grid: bags / 8, block: 256
//   bound   memory: 8 bytes an id, 16 a bag
extern "C" __global__ void label(int *bag, float *share, const int64 *bag_at, const float *values, float scale, int from,
                                 int to, int B)
{
    const int b = blockIdx.x * warps() + warp();
    if (b >= B) return;
    const int64 first = bag_at[b], last = bag_at[b + 1], end = last < to ? last : to;
    for (int64 n = (first > from ? first : from) + lane(); n < end; n += 32) {
        bag[n - from] = b;
        share[n - from] = values ? scale * values[n] : scale / (float)(last - first);
    }
}

// The places of this block's id, each warp's from warp * each on, and how many a warp has found; false: another block leads.
__device__ __forceinline__ bool lead(unsigned short *places, int *counts, const int *ids, int N, int each)
{
    const int n = blockIdx.x, id = ids[n], before = (n + warps() - 1) / warps();
    if (__syncthreads_or(met(ids, 0, id, warp() * before, min((warp() + 1) * before, n)))) return false;
    const int first = n + warp() * each;
    const int count = collect(places + warp() * each, ids, 0, id, first, min(first + each, N));
    if (lane() == 0) counts[warp()] = count;
    __syncthreads();
    return true;
}

// table[ids[n]] += scale * grad[n] in the order of n, for up to WINDOW ids; with bags, share[n] * grad[bag[n]].
//   work    a block an id; the first of equal ids collects them, its warps each from a share of the list, and adds them all:
//           a thread a column, TOGETHER rows of grad under way at once
//   launch  grid: ids, block: D rounded up to warps, at most 256
//   bound   memory: 4 D bytes an id and 8 D a distinct id; finding equal ids reads 4 N bytes an id from the L1 cache
//   order   over n in order, one fused multiply-add each: the same bits as the twin's
template <bool BAGS>
__device__ __forceinline__ void add(float *table, const int *ids, const int *bag, const float *share, const float *grad,
                                    float scale, int N, int D, unsigned short *places, int *counts)
{
    constexpr int TOGETHER = BAGS ? 8 : 16;
    const int n = blockIdx.x, each = (N - n + warps() - 1) / warps();
    if (!lead(places, counts, ids, N, each)) return;
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float *place = table + (int64)ids[n] * D + d;
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
    scatter(float *table, const int *ids, const float *grad, float scale, int N, int D)
{
    __shared__ unsigned short places[WINDOW];
    __shared__ int counts[8];
    add<false>(table, ids, nullptr, nullptr, grad, scale, N, D, places, counts);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    scatter_mean(float *table, const int *ids, const int *bag, const float *share, const float *grad, int N, int D)
{
    __shared__ unsigned short places[WINDOW];
    __shared__ int counts[8];
    add<true>(table, ids, bag, share, grad, 0, N, D, places, counts);
}

// norm2[n] = the sum of squares of a visit's gradient: grad[n], or share[n] * grad[bag[n]] where there are bags
//   work    a warp a visit
//   launch  grid: visits / 8, block: 256
//   bound   memory: 4 D bytes a visit
//   order   lanes stride over the columns, then a butterfly
extern "C" __global__ void measure(float *norm2, const int *bag, const float *share, const float *grad, int N, int D)
{
    const int n = blockIdx.x * warps() + warp();
    if (n >= N) return;
    const float *g = grad + (int64)(bag ? bag[n] : n) * D;
    float total[1] = {0};
#pragma unroll 4
    for (int d = lane(); d < D; d += 32) total[0] = fmaf(g[d], g[d], total[0]);
    const float sum = sums<1>(total), times = share ? share[n] : 1;
    if (lane() == 0) norm2[n] = times * times * sum;
}

// As `scatter` and `scatter_mean`, but a row moves by a rule (visit.cuh), against g = grad[n] or share[n] * grad[bag[n]].
//   squares  (R,): one a row; (R, D) where `wide`; null: none
//   norm2    (N,) of the gradients, by `measure`
//   order   over n in order
template <bool BAGS>
__device__ __forceinline__ void visit(float *table, float *squares, bool wide, const int *ids, const int *bag,
                                      const float *share, const float *grad, const float *norm2, Rule rule, int N, int D,
                                      unsigned short *places, int *counts)
{
    constexpr int TOGETHER = 8;
    const int n = blockIdx.x, each = (N - n + warps() - 1) / warps();
    if (!lead(places, counts, ids, N, each)) return;
    float square = 0;
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        const int64 at = (int64)ids[n] * D + d;
        float value = table[at];
        square = !squares ? 0 : squares[wide ? at : ids[n]];
        for (int w = 0; w < warps(); ++w) {
            const int many = counts[w], from = w * each;
            for (int i = 0; i < many; i += TOGETHER) {
                float g[TOGETHER], size[TOGETHER];
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    if (i + k < many) {
                        const int m = n + from + places[from + i + k];
                        g[k] = BAGS ? share[m] * grad[(int64)bag[m] * D + d] : grad[(int64)m * D + d];
                        size[k] = norm2[m];
                    }
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    if (i + k < many) {
                        const float part = cut(size[k], rule.clip);
                        if (squares && wide) {
                            value = moved(value, square, part * g[k], rule.rate, rule.keep);
                        } else {
                            const float mean = part * part * size[k] / D;
                            const float step = squares ? step_of_row(square, mean, rule.rate) : rule.rate;
                            value = fmaf(-step * part, g[k], rule.keep * value);
                        }
                    }
            }
        }
        table[at] = value;
        if (squares && wide) squares[at] = square;
    }
    if (!squares || wide) return;
    __syncthreads();  // all have read it
    if (threadIdx.x == 0) squares[ids[n]] = square;
}

#define SCATTER(NAME, BAGS)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256, 3)                                                                       \
        NAME(float *table, float *squares, const int *ids, const int *bag, const float *share, const float *grad,              \
             const float *norm2, float rate, float keep, float clip, int wide, int N, int D)                                   \
    {                                                                                                                          \
        __shared__ unsigned short places[WINDOW];                                                                              \
        __shared__ int counts[8];                                                                                              \
        visit<BAGS>(table, squares, wide, ids, bag, share, grad, norm2, {rate, keep, clip}, N, D, places, counts);             \
    }
SCATTER(scatter_ruled, false)
SCATTER(scatter_mean_ruled, true)
