// Tables of vectors, one row an id: gathers, and scatters where equal ids move their row in order. Twin of cpu/rows.py.
//
// table (R, D), out and grad (N, D) or (B, D); R D may pass 2^31, N D too. Any D. `aligned`: all rows begin at 16 bytes, and
// are read and written by 16 bytes; else by 4.
#include "include/scatter.cuh"

constexpr int ROWS = 8;  // that a warp gathers: their ids fill a sector

// The ROWS rows of a warp: lane k < ROWS knows the id of row n + k.
template <int V>
__device__ __forceinline__ void copy_rows(float *__restrict__ out, const float *__restrict__ table, int id, int n, int N, int D)
{
    int from[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; ++k) from[k] = __shfl_sync(FULL, id, k);
    for (int d = lane() * V; d < D; d += 32 * V) {
        float v[ROWS][V];
#pragma unroll
        for (int k = 0; k < ROWS; ++k)
            if (n + k < N) load<V>(v[k], table + (int64)from[k] * D + d);
#pragma unroll
        for (int k = 0; k < ROWS; ++k)
            if (n + k < N) store<V>(out + (int64)(n + k) * D + d, v[k]);
    }
}

// out[n] = table[ids[n]]
//   work    a warp ROWS rows, all asked for before the first is written; lanes stride over the columns
//   launch  grid: rows / (8 ROWS), block: 256
//   bound   memory: 8 D + 4 bytes a row
extern "C" __global__ void gather(float *__restrict__ out, const float *__restrict__ table, const int *__restrict__ ids, int N,
                                  int D, int aligned)
{
    const int n = (blockIdx.x * warps() + warp()) * ROWS;
    if (n >= N) return;
    const int id = lane() < ROWS && n + lane() < N ? ids[n + lane()] : 0;
    if (aligned)
        copy_rows<4>(out, table, id, n, N, D);
    else
        copy_rows<1>(out, table, id, n, N, D);
}

// out[b] = mean of table[ids[n]] over the n of bag b, 0 for an empty bag; with values, the sum of values[n] table[ids[n]]
//   work    a warp a bag, lanes stride over the columns; TOGETHER rows are asked for at once
//   launch  grid: bags / 8, block: 256
//   bound   memory: 4 D bytes an id and 4 D a bag
//   order   over the bag in order: the same bits as the twin's
template <bool VALUES, int V>
__device__ __forceinline__ void collect_bag(float *out, const float *table, const int64 *bag_at, const int *ids,
                                            const float *values, int b, int D)
{
    const int64 first = bag_at[b], last = bag_at[b + 1];
    const float many = last > first ? (float)(last - first) : 1;
    for (int d = lane() * V; d - lane() * V < D; d += 32 * V) {
        float total[V] = {};
        for (int64 n = first; n < last; n += 32) {
            const int count = min((int64)32, last - n);
            const int id = lane() < count ? ids[n + lane()] : 0;
            const float value = VALUES && lane() < count ? values[n + lane()] : 0;
            for (int i = 0; i < count; i += TOGETHER) {
                float row[TOGETHER][V];
                int from[TOGETHER];
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) from[k] = __shfl_sync(FULL, id, i + k);
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    if (i + k < count && d < D) load<V>(row[k], table + (int64)from[k] * D + d);
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) {
                    const float times = VALUES ? __shfl_sync(FULL, value, i + k) : 1;
                    if (i + k >= count) continue;
#pragma unroll
                    for (int c = 0; c < V; ++c) total[c] = VALUES ? fmaf(times, row[k][c], total[c]) : total[c] + row[k][c];
                }
            }
        }
#pragma unroll
        for (int c = 0; c < V; ++c) total[c] = VALUES ? total[c] : total[c] / many;
        if (d < D) store<V>(out + (int64)b * D + d, total);
    }
}

extern "C" __global__ void gather_mean(float *out, const float *table, const int64 *bag_at, const int *ids,
                                       const float *values, int B, int D, int aligned)
{
    const int b = blockIdx.x * warps() + warp();
    if (b >= B) return;
    if (values)
        aligned ? collect_bag<true, 4>(out, table, bag_at, ids, values, b, D)
                : collect_bag<true, 1>(out, table, bag_at, ids, values, b, D);
    else
        aligned ? collect_bag<false, 4>(out, table, bag_at, ids, values, b, D)
                : collect_bag<false, 1>(out, table, bag_at, ids, values, b, D);
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

// Of each visit n, of the gradient grad[n], or share[n] * grad[bag[n]] where there are bags: norm2[n] = the sum of its squares,
// factor[n] = -1 or -share[n]
//   work    a warp a visit
//   launch  grid: visits / 8, block: 256
//   bound   memory: 4 D bytes a visit
//   order   lanes stride over the columns, then a butterfly
extern "C" __global__ void measure(float *norm2, float *factor, const int *bag, const float *share, const float *grad,
                                   int N, int D)
{
    const int n = blockIdx.x * warps() + warp();
    if (n >= N) return;
    const float *g = grad + (int64)(bag ? bag[n] : n) * D;
    float total[1] = {0};
#pragma unroll 4
    for (int d = lane(); d < D; d += 32) total[0] = fmaf(g[d], g[d], total[0]);
    const float times = share ? share[n] : 1, square = times * times * sums<1>(total);
    if (lane()) return;
    norm2[n] = square;
    factor[n] = -times;
}

// Rows with one square each: it takes in the visits of its row, and factor[m] is multiplied with the step of each.
//   squares  (R,)
//   work    a warp at each sorted place, of which the first of a row does the work, 32 visits at a time
//   launch  grid: visits / 8, block: 256
//   bound   memory: 20 bytes a visit
//   order   over the visits of a row in order, 32 by a scan at a time
extern "C" __global__ void steps(float *factor, float *squares, const int *keys, const int *places, const float *norm2,
                                 float rate, int N, int D)
{
    const int n = blockIdx.x * warps() + warp();
    if (n >= N) return;
    const int key = keys[n];
    if (n && keys[n - 1] == key) return;
    float square = squares[key];
    for (int first = n, last = 0; !last; first += 32 * GROUPS) {
        Places at[GROUPS];
        float mean[GROUPS];
#pragma unroll
        for (int q = 0; q < GROUPS; ++q) at[q].ask(keys, places, first + 32 * q, N);
#pragma unroll
        for (int q = 0; q < GROUPS; ++q) {
            const float size = norm2[at[q].place];
            mean[q] = at[q].key == key ? size / D : 0;
        }
#pragma unroll
        for (int q = 0; q < GROUPS; ++q) {
            for (int step = 1; step < 32; step *= 2) {
                const float other = __shfl_up_sync(FULL, mean[q], step);
                if (lane() >= step) mean[q] += other;
            }
            if (at[q].key == key) factor[at[q].place] *= step_of(rate, square + mean[q]);
            square += __shfl_sync(FULL, mean[q], 31);
        }
        last = __any_sync(FULL, at[GROUPS - 1].key != key);
    }
    __syncwarp();  // all have read it
    if (!lane()) squares[key] = square;
}

// table[keys[i]] moves by factor[m], or scale, times grad[bag[m]], or grad[m], for every m = places[i] in the order of i
// (scatter.cuh); `squared` is Adagrad with a square a number
//   keys, places  of the ids, sorted: gpu/sort.cu
//   factor, bag   (N,), may be null
//   launch  grid: ids / 8, block: 256
//   bound   memory: 4 D bytes an id and 8 D a distinct id, 16 D with squares
//   order   over n in order, one fused multiply-add each: under plain SGD the same bits as the twin's
#define SCATTER(NAME, ROW)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                                       \
        NAME(float *table, float *squares, const int *keys, const int *places, const int *bag, const float *factor,            \
             const float *grad, float scale, float rate, int N, int D, int aligned)                                            \
    {                                                                                                                          \
        move<ROW>({table, squares, rate}, {keys, places, bag, factor, grad, scale, N, D}, aligned);                            \
    }
SCATTER(scatter, Plain)
SCATTER(scatter_squared, Squared)
