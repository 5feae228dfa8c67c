// Collections of MLPs: a block a unit, for batches of up to 16 examples that share the weights. Twin of cpu/vectors/online.py.
//
// weights of a unit   first (h, n) | first bias (h) | second (o, h) | second bias (o), from w_at[u] on
// signals             x (B, X), hidden (B, H), y (B, Y); unit u has columns x_at[u] to x_at[u] + n, and so on
//
// All products go the same way: a warp takes a row of a matrix, its lanes stride over the columns, so a row is read in runs
// of 128 bytes. Sums have a fixed order: lanes, then a butterfly, then parts in turn. No atomics. Weights come and go in whole
// sectors of 32 bytes, wherever a unit begins: only those at the ends of its matrices are shared with what lies beside them.
#include "include/online.cuh"
#include "include/sweep.cuh"
#include "include/units.cuh"

// The middle of a step: from hidden signals to outputs, errors and what they say of the hidden signals, in shared memory.
// s.inner holds hidden signals, s.wanted targets. s.out and s.inner_delta become the gradients before the activation.
template <bool WHOLE, bool MANY>
__device__ __forceinline__ void answer(const Written &to, const Signals &s, const Unit &unit, const Weights<WHOLE> &w, int code,
                                       int B)
{
    const int h = unit.h, o = unit.o;
    affine<WHOLE, MANY>(s.out, w, unit.second(), s.inner, h, o, B, code);
    __syncthreads();
    scatter(to.hidden, unit.hidden, to.H, s.inner, h, B);

    float squared = 0;
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < o; i += blockDim.x) {
            const float a = s.out[b * o + i], wrong = a - s.wanted[b * o + i], delta = wrong * slope(a, code);
            to.y[b * to.Y + unit.y + i] = a;
            to.y_grad[b * to.Y + unit.y + i] = s.out[b * o + i] = delta;
            squared = fmaf(wrong, wrong, squared);
        }
    squared = block_sum(squared, s.parts);
    if (threadIdx.x == 0) to.loss[unit.number] = squared / 2;
    __syncthreads();

    pull_back<WHOLE, MANY>(s.inner_delta, s.parts, w, unit.second(), s.out, o, h, B);
    for (int i = threadIdx.x; i < B * h; i += blockDim.x) s.inner_delta[i] *= slope(s.inner[i], code);
    __syncthreads();
    scatter(to.hidden_grad, unit.hidden, to.H, s.inner_delta, h, B);
}

// What a step writes, and what it reads. rates: one a unit; null: `rate` is that of all.
#define STEP_ARGUMENTS                                                                                                         \
    float *__restrict__ loss, float *__restrict__ y, float *__restrict__ hidden, float *__restrict__ weights,                  \
        float *__restrict__ velocity, float *__restrict__ y_grad, float *__restrict__ hidden_grad,                             \
        const Unit *__restrict__ units, const float *__restrict__ x, const float *__restrict__ target,                         \
        const float *__restrict__ rates, float rate, float momentum, int code, int B, int64 X, int64 H, int64 Y

// One online step of a unit, its weights read once and written once.
//   work    a block a unit: forward, error, backward, update, with barriers between
//   launch  grid: units of the bin, block: 128, 256 or 512 threads, shared memory: the resident weights and the signals
//   bound   memory: 8 bytes a parameter, 16 with momentum; 4 more for one that shared memory does not hold
//   order   dot products: lanes stride over columns, then a butterfly; gradients: over the batch in order
template <bool WHOLE, bool MANY, int SINK> __device__ __forceinline__ void step(STEP_ARGUMENTS)
{
    if (!MANY) B = 1;  // as the compiler should know
    const Unit unit = units[blockIdx.x];
    const int n = unit.n, h = unit.h, o = unit.o, second = unit.second(), size = unit.size(), from = WHOLE ? 0 : unit.held;
    float *memory = weights + unit.w, *speed = SINK == MOMENTUM ? velocity + unit.w : nullptr;
    if (rates) rate = rates[unit.number];
    const int ahead = skew(memory + from);  // as in memory, so 16 bytes align
    float *held = space + ahead - from;
    const int behind = WHOLE && !MANY ? BEHIND : 0;
    float *in = space + (ahead + size - from), *inner = in + B * n + behind, *out = inner + B * h + behind;
    float *inner_delta = out + B * o;
    float *wanted = inner_delta + B * h;
    const Signals s = {in, inner, out, inner_delta, wanted, wanted + B * o};
    const Weights<WHOLE> w = {held, memory, from};

    fetch_columns(in, x, unit.x, X, n, B);
    if constexpr (WHOLE && !MANY) {
        const int sector = parted(unit, memory);
        fetch(held, memory, 0, sector);
        __pipeline_commit();
        fetch<true>(held, memory, sector, size);
    } else {
        fetch(held, memory, from, max(from, second));
        __pipeline_commit();
        fetch(held, memory, max(from, second), size);
    }
    fetch_columns(wanted, target, unit.y, Y, o, B);
    __pipeline_commit();
    if (SINK == MOMENTUM) prefetch(speed, size);
    const Written to = {loss, y, hidden, y_grad, hidden_grad, H, Y};
    __pipeline_wait_prior(1);
    __syncthreads();
    if constexpr (WHOLE && !MANY) {
        learn_online<SINK == MOMENTUM>(to, s, unit, held, memory, speed, {rate, momentum}, code);
    } else {
        affine<WHOLE, MANY>(inner, w, 0, in, n, h, B, code);
        __pipeline_wait_prior(0);
        __syncthreads();
        answer<WHOLE, MANY>(to, s, unit, w, code, B);
        learn<WHOLE, SINK>(memory, speed, w, second, out, inner, h, o, B, rate, momentum);
        learn<WHOLE, SINK>(memory, speed, w, 0, inner_delta, in, n, h, B, rate, momentum);
    }
}

// Registers are bounded so that three units that share a multiprocessor's memory find room there.
#define STEP(NAME, BOUNDS, WHOLE, MANY, SINK)                                                                                  \
    extern "C" __global__ void __launch_bounds__ BOUNDS NAME(STEP_ARGUMENTS)                                                   \
    {                                                                                                                          \
        step<WHOLE, MANY, SINK>(loss, y, hidden, weights, velocity, y_grad, hidden_grad, units, x, target, rates, rate,        \
                                momentum, code, B, X, H, Y);                                                                   \
    }
STEP(step_whole, (256, 3), true, false, DESCEND)
STEP(step_whole_momentum, (256, 3), true, false, MOMENTUM)
STEP(step_part, (512, 1), false, false, DESCEND)
STEP(step_part_momentum, (512, 1), false, false, MOMENTUM)
STEP(step_whole_many, (256, 3), true, true, DESCEND)
STEP(step_whole_many_momentum, (256, 3), true, true, MOMENTUM)

// hidden and y of a unit.
//   work    a block a unit
//   launch  grid: units, block: 256, shared memory: x and hidden
//   bound   memory: 4 bytes a parameter
extern "C" __global__ void forward(float *__restrict__ y, float *__restrict__ hidden, const Unit *__restrict__ units,
                                   const float *__restrict__ weights, const float *__restrict__ x, int code, int B, int64 X,
                                   int64 H, int64 Y)
{
    const Unit unit = units[blockIdx.x];
    float *in = space, *inner = in + B * unit.n, *out = inner + B * unit.h;
    const Weights<false> w = {nullptr, weights + unit.w, unit.size()};
    gather(in, x, unit.x, X, unit.n, B);
    __syncthreads();
    affine<false, true>(inner, w, 0, in, unit.n, unit.h, B, code);
    __syncthreads();
    affine<false, true>(out, w, unit.second(), inner, unit.h, unit.o, B, code);
    __syncthreads();
    scatter(hidden, unit.hidden, H, inner, unit.h, B);
    scatter(y, unit.y, Y, out, unit.o, B);
}

// d loss / d y comes in as y_grad; x_grad (null: not wanted) is written, the gradient of the weights added to weight_grad.
//   work    a block a unit
//   launch  grid: units, block: 256, shared memory: all signals
//   bound   memory: 4 bytes a parameter read, 8 of its gradient
extern "C" __global__ void backward(float *__restrict__ x_grad, float *__restrict__ weight_grad,
                                    float *__restrict__ y_grad, float *__restrict__ hidden_grad,
                                    const Unit *__restrict__ units, const float *__restrict__ weights,
                                    const float *__restrict__ y, const float *__restrict__ hidden,
                                    const float *__restrict__ x, int code, int B, int64 X, int64 H, int64 Y)
{
    const Unit unit = units[blockIdx.x];
    const int n = unit.n, h = unit.h, o = unit.o;
    float *in = space, *inner = in + B * n, *out_delta = inner + B * h, *inner_delta = out_delta + B * o;
    float *parts = inner_delta + B * h;
    const Weights<false> w = {nullptr, weights + unit.w, unit.size()};
    gather(in, x, unit.x, X, n, B);
    gather(inner, hidden, unit.hidden, H, h, B);
    for (int b = 0; b < B; ++b)
        for (int i = threadIdx.x; i < o; i += blockDim.x) {
            const int64 at = b * Y + unit.y + i;
            y_grad[at] = out_delta[b * o + i] = y_grad[at] * slope(y[at], code);
        }
    __syncthreads();
    pull_back<false, true>(inner_delta, parts, w, unit.second(), out_delta, o, h, B);
    for (int i = threadIdx.x; i < B * h; i += blockDim.x) inner_delta[i] *= slope(inner[i], code);
    __syncthreads();
    scatter(hidden_grad, unit.hidden, H, inner_delta, h, B);
    const Weights<false> gradient = {nullptr, weight_grad + unit.w, unit.size()};
    float *sum = weight_grad + unit.w;
    learn<false, ACCUMULATE>(sum, nullptr, gradient, unit.second(), out_delta, inner, h, o, B, 0, 0);
    learn<false, ACCUMULATE>(sum, nullptr, gradient, 0, inner_delta, in, n, h, B, 0, 0);
    if (x_grad == nullptr) return;
    __syncthreads();  // the signals of x make room for their gradient
    pull_back<false, true>(in, parts, w, 0, inner_delta, h, n, B);
    scatter(x_grad, unit.x, X, in, n, B);
}

// weights += velocity, for the steps whose products cuBLAS adds to the velocity.
//   work    a thread four numbers, grid-stride; the last three by the first threads
//   bound   memory: 12 bytes a parameter
extern "C" __global__ void add(float *weights, float *velocity, int64 size)
{
    sweep<0, false>(weights, nullptr, nullptr, velocity, size, [](float &w, float &, float &, float v) { w += v; });
}

// The second half of a layer whose product cuBLAS has written: out[b][at_u + r] = activation(out[b][at_u + r] + bias_u[r]).
//   work    a thread a number of a unit
//   launch  grid: (units, pieces), since only x may exceed 65,535, block: 256
//   bound   memory: 8 bytes a number
extern "C" __global__ void finish(float *out, const int *sizes, const int64 *at, const int64 *bias_at, const float *weights,
                                  int code, int B, int64 pitch)
{
    const int u = blockIdx.x, rows = sizes[u];
    for (int64 k = blockIdx.y * (int64)blockDim.x + threadIdx.x; k < (int64)B * rows; k += (int64)gridDim.y * blockDim.x) {
        float *place = out + k / rows * pitch + at[u] + k % rows;
        *place = activate(*place + weights[bias_at[u] + k % rows], code);
    }
}

// delta *= d activation / d s, from the activations in `values`.
//   work    a thread four numbers, grid-stride; the last three by the first threads
//   bound   memory: 12 bytes a number
extern "C" __global__ void times_slope(float *delta, float *values, int code, int64 size)
{
    sweep<0, false>(delta, nullptr, nullptr, values, size, [=](float &d, float &, float &, float a) { d *= slope(a, code); });
}

// y_grad = y - target; loss[u] = half its squared length over the unit's outputs and the batch.
//   work    a block of 256 threads a unit
//   order   threads stride, a butterfly in each warp, then the warps in order
//   bound   memory: 12 bytes a number
extern "C" __global__ void miss(float *loss, float *y_grad, const int *outputs, const int64 *y_at, const float *y,
                                const float *target, int B, int64 Y)
{
    __shared__ float parts[8];
    const int u = blockIdx.x, o = outputs[u];
    float squared = 0;
    for (int64 k = threadIdx.x; k < (int64)B * o; k += blockDim.x) {
        const int64 at = k / o * Y + y_at[u] + k % o;
        const float d = y_grad[at] = y[at] - target[at];
        squared = fmaf(d, d, squared);
    }
    squared = block_sum(squared, parts);
    if (threadIdx.x == 0) loss[u] = squared / 2;
}

// bias_u[r] = keep bias_u[r] + scale * (sum over b of delta[b][at_u + r])
//   work    a thread a row of a unit
//   launch  grid: (units, pieces), block: 256
//   order   over the batch in order
//   bound   memory: 4 B bytes a row
extern "C" __global__ void bias(float *weights, const int *sizes, const int64 *at, const int64 *bias_at, const float *delta,
                                float scale, float keep, int B, int64 pitch)
{
    const int u = blockIdx.x;
    for (int r = blockIdx.y * blockDim.x + threadIdx.x; r < sizes[u]; r += gridDim.y * blockDim.x) {
        float total = 0;
        for (int b = 0; b < B; ++b) total += delta[b * pitch + at[u] + r];
        float *place = weights + bias_at[u] + r;
        *place = fmaf(scale, total, keep * *place);
    }
}

// out = -rate_u delta, in the columns of unit u: what cuBLAS multiplies where every unit has a rate of its own.
//   work    a thread a number of a unit
//   launch  grid: (units, pieces), block: 256
//   bound   memory: 8 bytes a number
extern "C" __global__ void changes(float *out, const int *sizes, const int64 *at, const float *delta, const float *rates, int B,
                                   int64 pitch)
{
    const int u = blockIdx.x, rows = sizes[u];
    const float scale = -rates[u];
    for (int64 k = blockIdx.y * (int64)blockDim.x + threadIdx.x; k < (int64)B * rows; k += (int64)gridDim.y * blockDim.x) {
        const int64 place = k / rows * pitch + at[u] + k % rows;
        out[place] = scale * delta[place];
    }
}
