// What a block does with its unit, in shared memory: fetch weights, gather signals, multiply, pull back, learn. See units.cu.
#pragma once
#include <cuda_pipeline.h>

#include "activation.cuh"
#include "warp.cuh"

extern __shared__ __align__(16) float space[];  // what a block holds of its unit

// What a launch says of a unit: 64 bytes, read 16 at a time. Twin of UNIT in plan.py.
struct __align__(16) Unit {
    int n, h, o, number;
    int64 w, x, hidden, y;  // where its parts begin
    int held;               // the first weight that shared memory holds
    __device__ int second() const { return h * (n + 1); }
    __device__ int size() const { return h * (n + 1) + o * (h + 1); }
};
static_assert(sizeof(Unit) == 64);

// The signals of a unit in shared memory: (B, n), (B, h), ...; parts: for sums that warps take in parts.
struct Signals {
    float *in, *inner, *out, *inner_delta, *wanted, *parts;
};

// What a step writes beside weights; H, Y: columns of its arrays.
struct Written {
    float *__restrict__ loss, *__restrict__ y, *__restrict__ hidden, *__restrict__ y_grad, *__restrict__ hidden_grad;
    int64 H, Y;
};

// A unit's weights, of which those from index `from` on are in shared memory; WHOLE: all of them.
template <bool WHOLE> struct Weights {
    const float *shared;  // where index 0 would be
    const float *memory;
    int from;
    __device__ const float *at(int k) const { return WHOLE || k >= from ? shared + k : memory + k; }
};

// How many floats there are from an address to the next sector, the 32 bytes that memory moves at least.
__device__ __forceinline__ int to_sector(const float *memory)
{
    return -(int)(reinterpret_cast<unsigned long long>(memory) >> 2) & 7;
}

// Begin to copy floats [first, last) of the unit to where index 0 would be at `shared`; 16 bytes at a time, whose places are
// aligned in the device's memory and in `shared`, and each number before and behind them alone. ALIGNED: there is none before.
template <bool ALIGNED = false>
__device__ __forceinline__ void fetch(float *shared, const float *memory, int first, int last)
{
    const int begin = ALIGNED ? first : min(first + to_sector(memory + first), last);
    const int end = last - (last - begin) % 4, stride = 4 * blockDim.x, mine = begin + 4 * threadIdx.x;
    float *to = shared + mine;
    const float *from = memory + mine;
    int left = end - mine;
#pragma unroll 1
    for (; left > stride; left -= 2 * stride, to += 2 * stride, from += 2 * stride) {
        __pipeline_memcpy_async(to, from, 16);
        __pipeline_memcpy_async(to + stride, from + stride, 16);
    }
    if (left > 0) __pipeline_memcpy_async(to, from, 16);
    const int thread = threadIdx.x;
    if (!ALIGNED && thread < begin - first) __pipeline_memcpy_async(shared + first + thread, memory + first + thread, 4);
    if (thread < last - end) __pipeline_memcpy_async(shared + end + thread, memory + end + thread, 4);
}

// Floats [first, last) of the unit go back to memory, as `fetch` brings them.
template <bool ALIGNED>
__device__ __forceinline__ void put_back(float *memory, const float *shared, int first, int last)
{
    const int begin = ALIGNED ? first : min(first + (to_sector(memory + first) & 3), last);
    const int end = last - (last - begin) % 4, stride = blockDim.x, mine = begin + 4 * threadIdx.x;
    float4 *to = reinterpret_cast<float4 *>(memory + mine);
    const float4 *from = reinterpret_cast<const float4 *>(shared + mine);
    int left = (end - mine) >> 2;
#pragma unroll 1
    for (; left > stride; left -= 2 * stride, to += 2 * stride, from += 2 * stride) {
        const float4 one = from[0], two = from[stride];
        __stcs(to, one);
        __stcs(to + stride, two);
    }
    if (left > 0) __stcs(to, *from);
    const int thread = threadIdx.x;
    if (!ALIGNED && thread < begin - first) memory[first + thread] = shared[first + thread];
    if (thread < last - end) memory[end + thread] = shared[end + thread];
}

// The lines of memory that will be read later are brought into the L2 cache meanwhile.
__device__ __forceinline__ void prefetch(const float *memory, int count)
{
    for (int k = 32 * threadIdx.x; k < count; k += 32 * blockDim.x) bring(memory + k);
}

// out (B, columns) in shared memory = columns [at, at + columns) of in (B, pitch)
__device__ __forceinline__ void gather(float *out, const float *in, int64 at, int64 pitch, int columns, int B)
{
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < columns; i += blockDim.x) out[b * columns + i] = in[b * pitch + at + i];
}

// The same, begun only: it is done when the pipeline has been waited for.
__device__ __forceinline__ void fetch_columns(float *out, const float *in, int64 at, int64 pitch, int columns, int B)
{
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < columns; i += blockDim.x)
            __pipeline_memcpy_async(out + b * columns + i, in + b * pitch + at + i, 4);
}

// out[b][r] = activation(w[r] . x[b] + bias[r]); four dot products at a time: four rows, or four
// examples of one row.
template <bool WHOLE, bool MANY>
__device__ __forceinline__ void affine(float *out, const Weights<WHOLE> &w, int at, const float *x, int n, int rows, int B,
                                       int code)
{
    const int groups = MANY ? (B + 3) / 4 : 1, tasks = MANY ? rows * groups : (rows + 3) / 4;
    for (int task = warp(); task < tasks; task += warps()) {
        const float *row[4], *v[4];
        for (int k = 0; k < 4; ++k) {  // past the last is the last again, and not written
            row[k] = w.at(at + (MANY ? task / groups : min(4 * task + k, rows - 1)) * n);
            v[k] = x + (MANY ? min(task % groups * 4 + k, B - 1) * n : 0);
        }
        float total[4] = {};
        constexpr int READ = WHOLE ? 1 : 4;  // chunks of columns that are asked for before the first is used
        for (int i = lane(); i < n; i += 32 * READ) {
            float weight[READ][MANY ? 1 : 4];
#pragma unroll
            for (int j = 0; j < READ; ++j)
#pragma unroll
                for (int k = 0; k < (MANY ? 1 : 4); ++k) weight[j][k] = i + 32 * j < n ? row[k][i + 32 * j] : 0;
#pragma unroll
            for (int j = 0; j < READ; ++j)
                if (i + 32 * j < n)
#pragma unroll
                    for (int k = 0; k < 4; ++k)
                        total[k] = fmaf(weight[j][MANY ? 0 : k], v[MANY ? k : 0][i + 32 * j], total[k]);
        }
        const float sum = sums<4>(total);
        const int k = lane() / 8, r = MANY ? task / groups : 4 * task + k, b = MANY ? task % groups * 4 + k : 0;
        if (lane() % 8 == 0 && r < rows && b < B) out[b * rows + r] = activate(sum + *w.at(at + rows * n + r), code);
    }
}

// out[b][j] = sum over r of w[r][j] delta[b][r]; a warp takes 32 columns and a part of the rows. parts (P, B, columns).
template <bool WHOLE, bool MANY>
__device__ __forceinline__ void pull_back(float *out, float *parts, const Weights<WHOLE> &w, int at, const float *delta,
                                          int rows, int columns, int B)
{
    constexpr int G = MANY ? 4 : 1;  // examples at a time
    const int chunks = (columns + 31) / 32, groups = (B + G - 1) / G, P = max(1, warps() / (chunks * groups));
    for (int task = warp(); task < chunks * groups * P; task += warps()) {
        const int j = task % chunks * 32 + lane(), b = task / chunks % groups * G, p = task / (chunks * groups);
        float total[G] = {};
        if (j < columns) {
#pragma unroll 4
            for (int r = p; r < rows; r += P) {
                const float value = w.at(at + r * columns)[j];
                for (int k = 0; k < G; ++k) total[k] = fmaf(value, delta[min(b + k, B - 1) * rows + r], total[k]);
            }
            for (int k = 0; k < G; ++k)
                if (b + k < B) parts[(p * B + b + k) * columns + j] = total[k];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < B * columns; i += blockDim.x) {
        float total = 0;
        for (int p = 0; p < P; ++p) total += parts[p * B * columns + i];
        out[i] = total;
    }
    __syncthreads();
}

// Where the gradient of a weight goes.
enum Sink { DESCEND, MOMENTUM, ACCUMULATE };

template <int SINK>
__device__ __forceinline__ void move(float *memory, float *speed, int64 k, float now, float before, float g, float rate,
                                     float momentum)
{
    if (SINK == DESCEND) __stcs(memory + k, fmaf(-rate, g, now));
    if (SINK == ACCUMULATE) memory[k] = now + g;
    if (SINK == MOMENTUM) {
        const float v = fmaf(momentum, before, -rate * g);
        __stcs(speed + k, v);
        __stcs(memory + k, now + v);
    }
}

// The gradient of matrix and bias at `at`, g[r][i] = sum over b of delta[b][r] x[b][i], goes down the sink.
// Threads take them as they lie in memory, from the first whole sector on, so a warp writes whole sectors. What a thread needs
// from memory for several numbers is asked for before the first is used.
template <bool WHOLE, int SINK>
__device__ __forceinline__ void learn(float *memory, float *speed, const Weights<WHOLE> &w, int at, const float *delta,
                                      const float *x, int n, int rows, int B, float rate, float momentum)
{
    const auto ask = [&](int k, float &now, float &before) {
        now = *w.at(k);
        if (SINK == MOMENTUM) before = __ldcs(speed + k);
    };
    const auto go = [&](int k, int r, int i, float now, float before) {
        float g = 0;
        for (int b = 0; b < B; ++b) g = fmaf(delta[b * rows + r], x[b * n + i], g);
        move<SINK>(memory, speed, k, now, before, g, rate, momentum);
    };
    const int thread = threadIdx.x, threads = blockDim.x, first = at, bias = at + rows * n;
    const int head = min(to_sector(memory + first), bias - first);
    constexpr int ASKED = WHOLE ? 4 : 12;
    float now[ASKED], before[ASKED] = {};
    if (thread < head) {
        ask(first + thread, now[0], before[0]);
        go(first + thread, thread / n, thread % n, now[0], before[0]);
    }
    const int rows_on = threads / n, columns_on = threads % n;
    int r = (head + thread) / n, i = (head + thread) % n;
    for (int k = first + head + thread; k < bias; k += ASKED * threads) {
#pragma unroll
        for (int j = 0; j < ASKED; ++j)
            if (k + j * threads < bias) ask(k + j * threads, now[j], before[j]);
#pragma unroll
        for (int j = 0; j < ASKED; ++j) {
            if (k + j * threads < bias) go(k + j * threads, r, i, now[j], before[j]);
            r += rows_on, i += columns_on;
            if (i >= n) ++r, i -= n;
        }
    }
    for (int row = thread; row < rows; row += threads) {
        float g = 0;
        for (int b = 0; b < B; ++b) g += delta[b * rows + row];
        const float before = SINK == MOMENTUM ? speed[bias + row] : 0;
        move<SINK>(memory, speed, bias + row, *w.at(bias + row), before, g, rate, momentum);
    }
}

// values (B, columns) in shared memory -> columns [at, at + columns) of out (B, pitch)
__device__ __forceinline__ void scatter(float *out, int64 at, int64 pitch, const float *values, int columns, int B)
{
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < columns; i += blockDim.x) out[b * pitch + at + i] = values[b * columns + i];
}
