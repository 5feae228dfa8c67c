// A dense layer of one stream whose signals a warp keeps in registers for all of its rows.
//
// A lane has every 32nd column of the new input and of the old one, C of each, and reads them once. A warp's rows lie side by
// side and go by few at a time: their weights are all asked for before the first is used. What is left for a weight is a load,
// two products and a store, and for a row its error. The sums of up to 32 rows come together, one in each lane: bias, activation and
// output take one turn, not one for every few rows. Same bits as visit_rows.
#pragma once
#include <cuda_pipeline.h>

#include "pvm_rows.cuh"

constexpr int CHUNKS = 6;  // of 32 columns, in registers at most
constexpr int KEPT = 2;  // chunks of 32 columns of a matrix that stays, at most

// The threads of a block begin to copy a run of floats; it lies at to + skew(memory), where `to` is at a multiple of 16 bytes.
__device__ __forceinline__ void copy_run(float *to, const float *memory, int count)
{
    to += skew(memory);
    const int first = min(-skew(memory) & 3, count), last = max(first, count - skew(memory + count));
    for (int k = first + 4 * threadIdx.x; k < last; k += 4 * blockDim.x) __pipeline_memcpy_async(to + k, memory + k, 16);
    const int edge = threadIdx.x < first ? threadIdx.x : last + threadIdx.x - first;
    if (edge < count) __pipeline_memcpy_async(to + edge, memory + edge, 4);
}

// The threads of a block. A matrix that errors are pulled back through is read once, where there is room: it comes to shared
// memory while the unit gathers, and is visited there.
struct Keeping : Block {
    static __device__ int threads()  // read anew each time: no register keeps it
    {
#ifdef __CUDASIM__
        return blockDim.x;
#else
        int count;
        asm volatile("mov.u32 %0, %%ntid.x;" : "=r"(count));
        return count;
#endif
    }
    static __device__ int warps() { return threads() / 32; }
    static __device__ bool holds(const Layer &layer) { return layer.held >= 0; }
    static __device__ void settle()
    {
        __pipeline_commit();
        __pipeline_wait_prior(0);
    }
    static __device__ void load(const Tick &t, const Unit &unit)
    {
        for (int k = 0; k < unit.depth; ++k) {
            const Layer &layer = unit.layers[k];
            if (holds(layer)) copy_run(space + layer.held, t.weights + layer.w, layer.rows * layer.columns);
        }
    }
    static __device__ const float *held(const Tick &t, const Layer &layer)  // where it lies
    {
        return space + layer.held + skew(t.weights + layer.w);
    }
};

#if __CUDA_ARCH__ >= 1200
constexpr bool SPARING = true;  // ptxas takes two registers more than for others
#else
constexpr bool SPARING = false;
#endif

// What a lane keeps of a layer of up to 32 C columns, and how rows pass by.
template <int C, bool MOMENTUM, bool AFTER, bool HELD> struct Columns {
    static constexpr int WIDTH = C + (C == 5 && (AFTER || SPARING));  // AFTER takes some registers more
    static constexpr int R = MOMENTUM ? (WIDTH > 5 ? 1 : C > 1 ? 2 : 4) : WIDTH > 5 ? 2 : C > 2 || HELD || SPARING ? 4 : 8;  // rows at a time
    const Moving m;
    const int n;
    const bool tail;  // has the lane a column of the last chunk
    float now[C], then[C];

    __device__ __forceinline__ Columns(const Tick &t, const Layer &layer, const Moving &moving, int lane)
        : m(moving), n(layer.columns), tail(lane + 32 * (C - 1) < layer.columns)
    {
        const float *x = t.tape + layer.in + lane, *old = t.record + layer.in + lane;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            now[c] = has(c) ? x[32 * c] : 0;
            then[c] = has(c) ? old[32 * c] : 0;
        }
    }
    __device__ __forceinline__ bool has(int c) const { return c < C - 1 || tail; }

    // `count` rows, at most ROWS, of which row 0 is at `at`, and read at `from` where it is held; lane `done` + r has how far row r
    // moves. Lane l gets the sum of row l / (32 / ROWS). A row past the last is the last again, and not written.
    template <int ROWS>
    __device__ __forceinline__ float pass(const float *from, float *at, float *fast, float change, int done, int count) const
    {
        float *row[ROWS], *speeds[ROWS], w[ROWS][C], v[ROWS][C], total[ROWS] = {};
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
            row[k] = as_it_is(at + min(k, count - 1) * n);
            if (MOMENTUM) speeds[k] = as_it_is(fast + min(k, count - 1) * n);
#pragma unroll
            for (int c = 0; c < C; ++c) {
                w[k][c] = !has(c) ? 0 : HELD ? from[min(k, count - 1) * n + 32 * c] : __ldcs(row[k] + 32 * c);
                if (MOMENTUM) v[k][c] = has(c) && m.learns ? __ldcs(speeds[k] + 32 * c) : 0;
            }
        }
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
            const float push = __shfl_sync(FULL, change, done + k);
            const bool moves = m.learns && k < count;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const float next = moved<MOMENTUM>(w[k][c], v[k][c], push * then[c], m.momentum);
                total[k] = fmaf(AFTER ? next : w[k][c], now[c], total[k]);
                if (!moves || !has(c)) continue;
                if (MOMENTUM) __stcs(speeds[k] + 32 * c, v[k][c]);
                __stcs(row[k] + 32 * c, next);
            }
        }
        return sums<ROWS>(total);
    }
};

// The warp's rows of a layer of up to 32 C columns. AFTER: what is computed now takes weights that have moved.
template <int C, bool MOMENTUM, bool AFTER, bool HELD>
__device__ __forceinline__ void visit_columns(const Tick &t, const Layer &layer, const Moving &m)
{
    typedef Columns<C, MOMENTUM, AFTER, HELD> Kind;
    constexpr int R = Kind::R;
    const int lane = as_it_is(::lane());
    const Kind columns(t, layer, m, lane);
    const int n = layer.columns, many = layer.rows, own_warp = as_it_is(warp()), parts = Keeping::warps();
    const int last = many * (own_warp + 1) / parts;
    float *matrix = t.weights + layer.w, *speeds = MOMENTUM ? t.velocity + layer.w : nullptr;
    const float *held = HELD ? Keeping::held(t, layer) + lane : nullptr;
#pragma unroll 1
    for (int first = many * own_warp / parts; first < last; first += 32) {
        const int own = min(32, last - first);
        const float change = m.rate * t.delta[layer.out + first + min(lane, own - 1)];  // unused where the unit does not learn
        float *at = as_it_is(matrix + first * n + lane), *fast = MOMENTUM ? as_it_is(speeds + first * n + lane) : nullptr;
        const float *from = HELD ? held + first * n : nullptr;
        float sum = 0;
        int done = 0;
        const auto go = [&](auto rows, int here) {
            constexpr int ROWS = decltype(rows)::value;
            const float total = columns.template pass<ROWS>(from, at, fast, change, done, here);
            const float other = __shfl_sync(FULL, total, (lane - done) * (32 / ROWS) & 31);
            if (unsigned(lane - done) < ROWS) sum = other;  // lane `done` + k takes that of row k
            done += ROWS, at += ROWS * n, from += HELD ? ROWS * n : 0, fast += MOMENTUM ? ROWS * n : 0;
        };
#pragma unroll 1
        while (done + (HELD ? R : 1) <= own) go(Count<R>(), HELD ? R : min(R, own - done));
#pragma unroll 1
        while (HELD && done < own) go(Count<1>(), 1);  // in shared memory a row waits for nothing
        if (lane < own) {
            const int mine = first + as_it_is(lane), bias = as_it_is(n) * many + mine;  // not computed before the rows
            const float start = matrix[bias];
            float speed = MOMENTUM && m.learns ? speeds[bias] : 0;
            const float next = m.learns ? moved<MOMENTUM>(start, speed, change, m.momentum) : start;
            t.tape[layer.out + mine] = activate(sum + (AFTER ? next : start), t.code);
            if (MOMENTUM && m.learns) speeds[bias] = speed;
            if (m.learns) matrix[bias] = next;
        }
    }
}

// A layer of more columns: a warp takes four rows at a time, and reads the signals for each.
template <bool MOMENTUM>
__device__ __forceinline__ void visit_wide(const Tick &t, const Layer &layer, const Moving &moving)
{
    const int many = layer.rows, own_warp = as_it_is(warp()), parts = Keeping::warps();
    const int last = many * (own_warp + 1) / parts;
    float *matrix = t.weights + layer.w, *speeds = MOMENTUM ? t.velocity + layer.w : nullptr;
#pragma unroll 1
    for (int r = many * own_warp / parts; r < last; r += 4)
        visit_rows<4, 2, MOMENTUM>(t, layer, matrix, speeds, r, min(4, last - r), moving);
}

template <bool MOMENTUM> __device__ __forceinline__ void visit(const Tick &t, const Layer &layer, const Moving &moving)
{
    const bool after = moving.learns && !t.predict_first;
    if (layer.columns > 32 * CHUNKS) return visit_wide<MOMENTUM>(t, layer, moving);
    switch (2 * ((layer.columns + 31) / 32 + (Keeping::holds(layer) ? CHUNKS : 0)) + after) {
#define VISIT(C, HELD)                                                          \
    case 2 * (C + CHUNKS * HELD):                                               \
        return visit_columns<C, MOMENTUM, false, HELD>(t, layer, moving);       \
    case 2 * (C + CHUNKS * HELD) + 1:                                           \
        return visit_columns<C, MOMENTUM, true, HELD>(t, layer, moving);
        VISIT(1, false)
        VISIT(2, false)
        VISIT(3, false)
        VISIT(4, false)
        VISIT(5, false)
        VISIT(CHUNKS, false)
        VISIT(1, true)
        VISIT(KEPT, true)
#undef VISIT
    }
}
