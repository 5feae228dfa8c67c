// What a block does with its unit, in shared memory: fetch weights, gather signals, multiply, pull back, learn. See units.cu.
#pragma once
#include <cuda_pipeline.h>

#include "activation.cuh"
#include "warp.cuh"

extern __shared__ __align__(16) float space[];  // what a block holds of its unit

struct Unit {
    int n, h, o;
    int64 w, x, hidden, y;  // where its parts begin
    __device__ int second() const { return h * (n + 1); }
    __device__ int size() const { return h * (n + 1) + o * (h + 1); }
};

__device__ __forceinline__ Unit unit_of(int u, const int *inputs, const int *hiddens, const int *outputs,
                                        const int64 *w_at, const int64 *x_at, const int64 *h_at, const int64 *y_at)
{
    return {inputs[u], hiddens[u], outputs[u], w_at[u], x_at[u], h_at[u], y_at[u]};
}

// A unit's weights, of which those from index `from` on are in shared memory; WHOLE: all of them.
template <bool WHOLE> struct Weights {
    const float *shared;  // where index 0 would be
    const float *memory;
    int from;
    __device__ const float *at(int k) const { return WHOLE || k >= from ? shared + k : memory + k; }
};

// Begin to copy floats [first, last) of the unit to where index 0 would be at `shared`; 16 bytes at a time where the
// device's memory is aligned, which `shared` is as well.
__device__ __forceinline__ void fetch(float *shared, const float *memory, int first, int last)
{
    const int skew = (reinterpret_cast<unsigned long long>(memory) >> 2) & 3;
    for (int k = (first + skew) / 4 * 4 - skew + 4 * threadIdx.x; k < last; k += 4 * blockDim.x) {
        if (k >= first && k + 4 <= last) {
            __pipeline_memcpy_async(shared + k, memory + k, 16);
        } else {
            for (int i = max(k, first); i < min(k + 4, last); ++i) __pipeline_memcpy_async(shared + i, memory + i, 4);
        }
    }
    __pipeline_commit();
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

// out[b][r] = activation(w[r] . x[b] + bias[r]); four dot products at a time: four rows, or four examples of one row.
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
        for (int i = lane(); i < n; i += 32)
            for (int k = 0; k < 4; ++k) total[k] = fmaf(row[MANY ? 0 : k][i], v[MANY ? k : 0][i], total[k]);
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

// The gradient of matrix and bias at `at`, g[r][i] = sum over b of delta[b][r] x[b][i], goes down the sink. A warp a row;
// what each lane needs from memory for four columns is asked for before the first is used.
template <bool WHOLE, int SINK>
__device__ __forceinline__ void learn(float *memory, float *speed, const Weights<WHOLE> &w, int at, const float *delta,
                                      const float *x, int n, int rows, int B, float rate, float momentum)
{
    for (int r = warp(); r < rows; r += warps()) {
        const float *row = w.at(at + r * n);
        const int64 start = at + (int64)r * n;
        for (int first = lane(); first < n; first += 128) {
            float now[4] = {}, before[4] = {};
            for (int k = 0; k < 4; ++k) {
                const int i = first + 32 * k;
                if (i < n) now[k] = row[i];
                if (SINK == MOMENTUM && i < n) before[k] = __ldcs(speed + start + i);
            }
            for (int k = 0; k < 4; ++k) {
                const int i = first + 32 * k;
                if (i >= n) break;
                float g = 0;
                for (int b = 0; b < B; ++b) g = fmaf(delta[b * rows + r], x[b * n + i], g);
                move<SINK>(memory, speed, start + i, now[k], before[k], g, rate, momentum);
            }
        }
    }
    const int bias = at + rows * n;
    for (int r = threadIdx.x; r < rows; r += blockDim.x) {
        float g = 0;
        for (int b = 0; b < B; ++b) g += delta[b * rows + r];
        move<SINK>(memory, speed, bias + r, *w.at(bias + r), SINK == MOMENTUM ? speed[bias + r] : 0, g, rate, momentum);
    }
}

// values (B, columns) in shared memory -> columns [at, at + columns) of out (B, pitch)
__device__ __forceinline__ void scatter(float *out, int64 at, int64 pitch, const float *values, int columns, int B)
{
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < columns; i += blockDim.x) out[b * pitch + at + i] = values[b * columns + i];
}
