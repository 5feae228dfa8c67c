// Visits of rows, sorted by row (gpu/sort.cu): those of one row lie side by side, in their order. Who makes them, and how.
//
// A warp stands at every place of the sorted list. Those of one row's segment share its columns, since numbers of a row wait
// for each other only down a column:
//   short segments  as many warps as there are visits at most, each with stretches of 32 or 128 columns: whole lines
//   long segments   a warp SLICE columns, where there are warps enough for all. Lanes ask for many visits at once, as many as
//                   hide the latency of memory; then each is handed to all lanes in turn, which add it up together
// So a row that is met 65,536 times takes as long as the additions that wait for each other, on D / SLICE warps.
#pragma once

#include "visit.cuh"
#include "warp.cuh"

// V numbers side by side, V 1 or 4: four are read and written at once, from 16 bytes on.
template <int V> __device__ __forceinline__ void load(float *to, const float *from)
{
    static_assert(V == 1 || V == 4, "a number or a float4");
    if (V == 1) {
        to[0] = from[0];
    } else {
        const float4 v = *reinterpret_cast<const float4 *>(from);
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    }
}

template <int V> __device__ __forceinline__ void store(float *to, const float *from)
{
    if (V == 1)
        to[0] = from[0];
    else
        *reinterpret_cast<float4 *>(to) = make_float4(from[0], from[1], from[2], from[3]);
}

constexpr int TOGETHER = 8;         // visits of a short segment whose gradients are asked for at once
constexpr int SLICE = 8;            // columns of a warp in a long segment: a sector
constexpr int STRIDE = 32 / SLICE;  // visits that its lanes ask for with one load
constexpr int GROUPS = 4;           // of 32 visits, asked for at once

// All visits of a batch. The one at place m moves its row by factor[m], or `scale`, times grad[bag[m]], or grad[m].
struct Visits {
    const int *keys, *places, *bag;
    const float *factor, *grad;
    float scale;
    int N, D;
};

// What moves: rows (R, D), with squares (R, D) where each number has its own.
struct Table {
    float *rows, *squares;
    float rate;
};

// V numbers of a row under plain SGD, and with a square each.
template <int V> struct Plain {
    float value[V];

    __device__ __forceinline__ void take(const Table &t, int64 at) { load<V>(value, t.rows + at); }
    __device__ __forceinline__ void put(const Table &t, int64 at) const { store<V>(t.rows + at, value); }
    __device__ __forceinline__ void visit(const Table &, float factor, const float *g)
    {
#pragma unroll
        for (int c = 0; c < V; ++c) value[c] = fmaf(factor, g[c], value[c]);
    }
};

template <int V> struct Squared {
    float value[V], square[V];

    __device__ __forceinline__ void take(const Table &t, int64 at)
    {
        load<V>(value, t.rows + at);
        load<V>(square, t.squares + at);
    }
    __device__ __forceinline__ void put(const Table &t, int64 at) const
    {
        store<V>(t.rows + at, value);
        store<V>(t.squares + at, square);
    }
    __device__ __forceinline__ void visit(const Table &t, float factor, const float *g)
    {
#pragma unroll
        for (int c = 0; c < V; ++c) value[c] = moved(value[c], square[c], factor * g[c], t.rate);
    }
};

// 32 places of the sorted list, one a lane; past its end the key is -1.
struct Places {
    int key, place;

    __device__ __forceinline__ void ask(const int *keys, const int *places, int first, int N)
    {
        const int i = first + lane();
        key = i < N ? keys[i] : -1;
        place = i < N ? places[i] : 0;
    }
};

// Of these the visits of one row, which come first: how many, and of lane l's its gradient's row and what that is multiplied with.
struct Some {
    int count, row;
    float factor;

    __device__ __forceinline__ Some(const Visits &v, const Places &at, int key)
    {
        const bool mine = at.key == key;
        count = __popc(__ballot_sync(FULL, mine));
        row = mine && v.bag ? v.bag[at.place] : at.place;
        factor = mine && v.factor ? v.factor[at.place] : v.scale;
    }
};

// How many of the keys at `from`, from + step, ... are `key`, before the first that is not; at most `most`.
__device__ __forceinline__ int equal(const int *keys, int N, int key, int from, int step, int most)
{
    int count = 0;
    while (count < most) {
        const int i = from + step * (count + lane());
        const unsigned others = __ballot_sync(FULL, i < 0 || i >= N || keys[i] != key);
        if (others) return min(count + __ffs(others) - 1, most);
        count += 32;
    }
    return most;
}

// A short segment from `first` on: the stretches own, own + warps, ... of the row's columns.
template <int V, template <int> class Row>
__device__ __forceinline__ void stretches(const Table &t, const Visits &v, int key, int first, int own, int warps)
{
    for (int stretch = own; stretch * 32 * V < v.D; stretch += warps) {
        const int d = (stretch * 32 + lane()) * V;
        const int64 at = (int64)key * v.D + d;
        Row<V> row;
        if (d < v.D) row.take(t, at);
        for (int n = first, count = 32; count == 32; n += 32) {
            Places places;
            places.ask(v.keys, v.places, n, v.N);
            const Some some(v, places, key);
            count = some.count;
            for (int i = 0; i < count; i += TOGETHER) {
                float g[TOGETHER][V];
                int from[TOGETHER];
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) from[k] = __shfl_sync(FULL, some.row, i + k);
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    if (i + k < count && d < v.D) load<V>(g[k], v.grad + (int64)from[k] * v.D + d);
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) {
                    const float factor = __shfl_sync(FULL, some.factor, i + k);
                    if (i + k < count) row.visit(t, factor, g[k]);
                }
            }
        }
        if (d < v.D) row.put(t, at);
    }
}

// A long segment from `first` on: SLICE columns of its row, from SLICE * own on.
template <template <int> class Row>
__device__ __forceinline__ void slice(const Table &t, const Visits &v, int key, int first, int own)
{
    const int column = lane() % SLICE, d = SLICE * own + column;
    const bool writes = lane() < SLICE && d < v.D;  // the other lanes bring gradients
    const int64 at = (int64)key * v.D + d;
    Row<1> row;
    if (writes) row.take(t, at);
    Places places[GROUPS];
#pragma unroll
    for (int q = 0; q < GROUPS; ++q) places[q].ask(v.keys, v.places, first + 32 * q, v.N);
    for (int n = first, count = 32; count == 32; n += 32 * GROUPS) {
        float g[GROUPS][SLICE], factors[GROUPS];
        int counts[GROUPS];
#pragma unroll
        for (int q = 0; q < GROUPS; ++q) {
            const Some some(v, places[q], key);
            counts[q] = count = some.count;
            factors[q] = some.factor;
#pragma unroll
            for (int k = 0; k < SLICE; ++k) {
                const int i = k * STRIDE + lane() / SLICE;
                const int64 from = __shfl_sync(FULL, some.row, i);
                g[q][k] = i < count && d < v.D ? v.grad[from * v.D + d] : 0;
            }
        }
#pragma unroll
        for (int q = 0; q < GROUPS; ++q) places[q].ask(v.keys, v.places, n + 32 * (GROUPS + q), v.N);
#pragma unroll
        for (int q = 0; q < GROUPS; ++q) {
            if (!counts[q]) break;
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                const float one = __shfl_sync(FULL, g[q][i / STRIDE], i % STRIDE * SLICE + column);
                const float factor = __shfl_sync(FULL, factors[q], i);
                if (i < counts[q]) row.visit(t, factor, &one);
            }
        }
    }
    if (writes) row.put(t, at);
}

// The part of all visits that falls to a warp.
template <template <int> class Row> __device__ __forceinline__ void move(const Table &t, const Visits &v, bool aligned)
{
    const int n = blockIdx.x * warps() + warp();
    if (n >= v.N) return;
    const int key = v.keys[n], slices = (v.D + SLICE - 1) / SLICE;
    const int before = equal(v.keys, v.N, key, n - 1, -1, slices);
    if (before == slices) return;
    const int visits = before + 1 + equal(v.keys, v.N, key, n + 1, 1, slices - 1 - before);
    if (visits == slices)
        slice<Row>(t, v, key, n - before, before);
    else if (aligned)
        stretches<4, Row>(t, v, key, n - before, before, visits);
    else
        stretches<1, Row>(t, v, key, n - before, before, visits);
}
