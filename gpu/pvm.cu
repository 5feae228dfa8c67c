// One tick of a Predictive Vision Model: a block a unit, each weight read once from memory and
// written once. Twin of cpu/pvm.py.
//
// world (B, W), tape (B, T), signals (B, S)   see hybrid/pvm/layout.py; a stream a row, B at most MOST
// units, runs                                 that layout as tables, made by gpu/pvm.py
//
// A unit's phases are divided by barriers: gather what it sees, find its errors, pull them back to its inner layers, visit
// its dense layers in order, publish. Each dense layer is one pass over its matrix: a row is multiplied with the new input
// and moved along the old one. Only matrices behind the first are read before, in part, to pull errors back; they come
// from the L2 cache when they are visited. Sums have a fixed order: lanes, a butterfly, then parts in turn. No atomics.
#include "include/pvm_columns.cuh"

// A dense layer of up to MOST streams: the same, with the change of a weight summed over the streams in order.
template <bool MOMENTUM>
__device__ __forceinline__ void visit_many(const Tick &t, const Layer &layer, const Moving &moving)
{
    constexpr int R = 2, K = 4;
    const float rate = moving.rate, momentum = moving.momentum;
    const bool learns = moving.learns;
    const int rows = layer.rows, n = layer.columns, last = rows * (warp() + 1) / warps(), B = t.B;
    const bool after = learns && !t.predict_first;
    float *matrix = t.weights + layer.w, *speeds = MOMENTUM ? t.velocity + layer.w : nullptr;
    const float *x = t.tape + layer.in, *old = t.record + layer.in, *delta = t.delta + layer.out;
    for (int r = rows * warp() / warps(); r < last; r += R) {
        const int count = min(R, last - r), mine = lane() % R, stream = lane() / R, bias = rows * n + r + mine;
        const float start = mine < count ? matrix[bias] : 0;
        float speed = MOMENTUM && mine < count ? speeds[bias] : 0;
        float total[MOST * R] = {};  // of a stream all rows
        for (int i = lane(); i < n; i += 32 * K) {
            float w[R][K], v[R][K], change[R][K] = {};
#pragma unroll
            for (int k = 0; k < R; ++k)
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    const bool here = k < count && i + 32 * c < n;
                    w[k][c] = here ? __ldcs(matrix + (r + k) * n + i + 32 * c) : 0;
                    if (MOMENTUM) v[k][c] = here && learns ? __ldcs(speeds + (r + k) * n + i + 32 * c) : 0;
                }
            for (int b = 0; learns && b < B; ++b) {
                const float *d = delta + b * t.T + r;
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    const float then = i + 32 * c < n ? old[b * t.T + i + 32 * c] : 0;
#pragma unroll
                    for (int k = 0; k < R; ++k) change[k][c] = fmaf(d[min(k, count - 1)], then, change[k][c]);
                }
            }
#pragma unroll
            for (int k = 0; k < R; ++k)
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    if (!learns || k >= count || i + 32 * c >= n) continue;
                    const int at = (r + k) * n + i + 32 * c;
                    const float next = moved<MOMENTUM>(w[k][c], v[k][c], rate * change[k][c], momentum);
                    if (MOMENTUM) __stcs(speeds + at, v[k][c]);
                    __stcs(matrix + at, next);
                    if (after) w[k][c] = next;
                }
#pragma unroll
            for (int b = 0; b < MOST; ++b) {
                if (b >= B) continue;
#pragma unroll
                for (int c = 0; c < K; ++c) {
                    const float now = i + 32 * c < n ? x[b * t.T + i + 32 * c] : 0;
#pragma unroll
                    for (int k = 0; k < R; ++k) total[b * R + k] = fmaf(w[k][c], now, total[b * R + k]);
                }
            }
        }
        const float sum = sums<MOST * R>(total);
        __syncwarp();  // the streams have read their row's bias
        if (mine >= count || stream >= B) continue;
        float next = start;
        if (learns) {
            float change = 0;
            for (int b = 0; b < B; ++b) change += delta[b * t.T + r + mine];
            next = moved<MOMENTUM>(start, speed, rate * change, momentum);
            if (MOMENTUM && stream == 0) speeds[bias] = speed;
            if (stream == 0) matrix[bias] = next;
        }
        t.tape[stream * t.T + layer.out + r + mine] = activate(sum + (after ? next : start), t.code);
    }
}

// One tick.
//   work    a block a unit, the largest first
//   launch  grid: units, block: ONE threads, or half of them where units are many, shared memory: what is held; MANY threads for
//           several streams
//   bound   memory: 8 bytes a parameter, 16 with momentum; 4 where the unit does not learn
//   order   dot products: lanes stride over columns, then a butterfly; gradients: over the streams in order;
//           errors pulled back: rows in parts, the parts in turn
template <bool MOMENTUM> __device__ __forceinline__ void one_tick(const Tick &t)
{
    const Unit &unit = own_unit(t);
    Keeping::load(t, unit);
    const Moving moving = begin<false, Keeping>(t, unit);
    for (int k = unit.depth - 1; moving.learns && k >= 0; --k) {
        const Layer &layer = unit.layers[k];
        if (!layer.pulled) continue;
        if (Keeping::holds(layer))
            pull_back<false, Keeping>(t, layer, Keeping::held(t, layer));
        else
            pull_back<true, Keeping>(t, layer, t.weights + layer.w);
    }
#pragma unroll 1
    for (int k = 0; k < unit.depth; ++k) {
        visit<MOMENTUM>(t, unit.layers[k], moving);
        __syncthreads();
    }
    publish<false, Keeping>(t, unit);
}
template <bool MOMENTUM> __device__ __forceinline__ void many_tick(const Tick &t)
{
    const Unit &unit = own_unit(t);
    const Moving moving = begin<true, Block>(t, unit);
    for (int k = unit.depth - 1; moving.learns && k >= 0; --k) {
        const Layer &layer = unit.layers[k];
        if (layer.pulled) pull_back_many(t, layer, t.weights + layer.w);
    }
#pragma unroll 1
    for (int k = 0; k < unit.depth; ++k) {
        visit_many<MOMENTUM>(t, unit.layers[k], moving);
        __syncthreads();
    }
    publish<true, Block>(t, unit);
}

// Registers are bounded so that a multiprocessor has room for two blocks.
#define TICK(NAME, BOUNDS, WAY, MOMENTUM)                                                                                      \
    extern "C" __global__ void __launch_bounds__ BOUNDS NAME(ARGUMENTS)                                                         \
    {                                                                                                                           \
        const Tick t = GIVEN;                                                                                                   \
        WAY<MOMENTUM>(t);                                                                                                \
    }
TICK(tick_one, (ONE, 2), one_tick, false)
TICK(tick_one_momentum, (ONE, 2), one_tick, true)
TICK(tick_many, (MANY, 2), many_tick, false)
TICK(tick_many_momentum, (MANY, 2), many_tick, true)

// world[b, n] = scale frame[b, n], of the first `size` of the W numbers of a stream
//   work    a thread a number
//   launch  grid: (size / 256, B), block: 256
//   bound   memory: 5 or 8 bytes a number
template <typename Number>
__device__ void show(float *world, const Number *frame, float scale, int64 size, int64 W)
{
    const int64 n = blockIdx.x * (int64)blockDim.x + threadIdx.x;
    if (n < size) world[blockIdx.y * W + n] = scale * frame[blockIdx.y * size + n];
}
extern "C" __global__ void show_bytes(float *world, const unsigned char *frame, float scale, int64 size, int64 W)
{
    show(world, frame, scale, size, W);
}
extern "C" __global__ void show_numbers(float *world, const float *frame, float scale, int64 size, int64 W)
{
    show(world, frame, scale, size, W);
}

// out[b, n] = source[b, index[n]]
//   work    a thread a number
//   launch  grid: (N / 256, B), block: 256
//   bound   memory: 8 bytes a number, 4 of its index
extern "C" __global__ void collect(float *out, const float *source, const int *index, int64 N, int64 M)
{
    const int64 n = blockIdx.x * (int64)blockDim.x + threadIdx.x;
    if (n < N) out[blockIdx.y * N + n] = source[blockIdx.y * M + index[n]];
}

// out[b, index[n]] = source[b, n]
//   work    a thread a number
//   launch  grid: (N / 256, B), block: 256
//   bound   memory: 8 bytes a number, 4 of its index
extern "C" __global__ void spread(float *out, const float *source, const int *index, int64 N, int64 M)
{
    const int64 n = blockIdx.x * (int64)blockDim.x + threadIdx.x;
    if (n < N) out[blockIdx.y * M + index[n]] = source[blockIdx.y * N + n];
}
